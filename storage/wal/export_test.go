package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// resealSegment makes the checksum of a segment header fit its bytes.
func resealSegment(h []byte) {
	binary.LittleEndian.PutUint32(h[36:], crc32.Checksum(h[:36], castagnoli))
}
