package handlers

import (
	"math/bits"
	"sync"
)

// Buffers of bodies are pooled by size, powers of two from 64 KiB to 8 MiB, so
// that a small body never holds a large buffer. Larger ones are not kept.
const (
	minBufferBits = 16
	maxBufferBits = 23
)

var bufferPools [maxBufferBits - minBufferBits + 1]sync.Pool // of *[]byte

// bufferSize returns the size of the buffer that getBuffer gives for size.
func bufferSize(size int64) int64 {
	switch {
	case size <= 1<<minBufferBits:
		return 1 << minBufferBits
	case size > 1<<maxBufferBits:
		return size
	default:
		return 1 << bits.Len64(uint64(size-1))
	}
}

// getBuffer returns an empty buffer of a size that bufferSize returned.
func getBuffer(size int64) []byte {
	if size <= 1<<maxBufferBits {
		if b, ok := bufferPools[bits.Len64(uint64(size))-1-minBufferBits].Get().(*[]byte); ok {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, size)
}

// putBuffer keeps a buffer of getBuffer for the next body.
func putBuffer(b []byte) {
	if size := int64(cap(b)); size > 0 && size <= 1<<maxBufferBits {
		bufferPools[bits.Len64(uint64(size))-1-minBufferBits].Put(&b)
	}
}
