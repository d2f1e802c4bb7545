package sst

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/varvedb/varve/table"
)

// Parquet's hybrid of run lengths and bit packing, in which dictionary codes
// and definition levels are stored.

var errHybrid = errors.New("run-length data ends early or is not what it says")

// appendHybrid appends codes, each of which fits in width bits (1 to 32).
// Runs of eight and more equal codes become run lengths, the rest is packed in
// groups of eight.
func appendHybrid(dst []byte, codes []uint32, width int) []byte {
	packed := 0 // start of the codes that wait to be packed
	for i := 0; i+8 <= len(codes); {
		c := codes[i]
		if c != codes[i+1] || c != codes[i+2] || c != codes[i+3] || !equalGroup(codes[i:i+8]) {
			i += 8
			continue
		}
		end := i + 8
		for end < len(codes) && codes[end] == c {
			end++
		}
		if end < len(codes) { // what follows must start a group
			end -= (end - i) & 7
		}
		dst = appendPacked(dst, codes[packed:i], width)
		dst = appendRun(dst, c, end-i, width)
		i, packed = end, end
	}
	return appendPacked(dst, codes[packed:], width)
}

func equalGroup(g []uint32) bool {
	return g[0] == g[4] && g[0] == g[5] && g[0] == g[6] && g[0] == g[7]
}

func appendRun(dst []byte, code uint32, n, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for ; width > 0; width -= 8 {
		dst = append(dst, byte(code))
		code >>= 8
	}
	return dst
}

// appendPacked appends codes as one bit-packed run, padded to a group of eight.
func appendPacked(dst []byte, codes []uint32, width int) []byte {
	if len(codes) == 0 {
		return dst
	}
	groups := (len(codes) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	end := len(dst) + groups*width
	acc, n := uint64(0), 0
	for _, c := range codes {
		acc |= uint64(c) << n
		if n += width; n >= 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(acc))
			acc >>= 32
			n -= 32
		}
	}
	for len(dst) < end {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst
}

// anyCode is a limit that is not checked.
const anyCode = ^uint32(0)

// decodeHybrid fills out with codes of width bits below limit.
func decodeHybrid(out []uint32, src []byte, width int, limit uint32) error {
	if width > 32 {
		return errHybrid
	}
	for len(out) > 0 {
		header, n := binary.Uvarint(src)
		if n <= 0 {
			return errHybrid
		}
		src = src[n:]
		var done, size int
		if header&1 == 0 {
			var code uint32
			if size = (width + 7) / 8; size > len(src) {
				return errHybrid
			}
			for i := size - 1; i >= 0; i-- {
				code = code<<8 | uint32(src[i])
			}
			if done = int(min(header>>1, uint64(len(out)))); done == 0 || code >= limit && limit != anyCode {
				return errHybrid
			}
			fill(out[:done], code)
		} else {
			groups := header >> 1
			if groups == 0 || groups > uint64(len(src)) && width > 0 {
				return errHybrid
			}
			if size = int(groups) * width; size > len(src) {
				return errHybrid
			}
			done = min(int(groups)*8, len(out))
			unpack(out[:done], src, width)
			if limit != anyCode && maxCode(out[:done]) >= limit {
				return errHybrid
			}
		}
		out, src = out[done:], src[size:]
	}
	return nil
}

func fill[T any](out []T, v T) {
	for i := range out {
		out[i] = v
	}
}

func maxCode(codes []uint32) (m uint32) {
	for _, c := range codes {
		m = max(m, c)
	}
	return m
}

// unpack reads len(out) values of width bits (0 to 32) from src, which has
// them all.
func unpack(out []uint32, src []byte, width int) {
	mask := uint32(1)<<width - 1
	if width == 32 {
		mask = ^uint32(0)
	}
	i, bit := 0, 0
	// A value lies within the eight bytes from the one it starts in.
	for ; i+8 <= len(out) && bit>>3+width+8 <= len(src); i += 8 {
		g := out[i : i+8 : i+8]
		p := src[bit>>3:]
		if width <= 8 {
			w := binary.LittleEndian.Uint64(p)
			g[0] = uint32(w) & mask
			g[1] = uint32(w>>width) & mask
			g[2] = uint32(w>>(2*width)) & mask
			g[3] = uint32(w>>(3*width)) & mask
			g[4] = uint32(w>>(4*width)) & mask
			g[5] = uint32(w>>(5*width)) & mask
			g[6] = uint32(w>>(6*width)) & mask
			g[7] = uint32(w>>(7*width)) & mask
		} else {
			for j := range g {
				at := j * width
				g[j] = uint32(binary.LittleEndian.Uint64(p[at>>3:])>>(at&7)) & mask
			}
		}
		bit += 8 * width
	}
	for ; i < len(out); i++ {
		out[i] = uint32(bitsAt(src, bit)) & mask
		bit += width
	}
}

// bitsAt returns the bits from a position on, of which at least 57 are there
// unless src ends.
func bitsAt(src []byte, bit int) (w uint64) {
	at := bit >> 3
	for i := 0; i < 8 && at+i < len(src); i++ {
		w |= uint64(src[at+i]) << (8 * i)
	}
	return w >> (bit & 7)
}

// codeWidth returns the bits of a code of a dictionary with n entries, and at
// least one bit, which every reader understands.
func codeWidth(n int) int { return max(1, bits.Len32(uint32(max(n, 1)-1))) }

// appendLevels appends the definition levels of rows [0, n), of which nulls
// are null as valid says.
func appendLevels(dst []byte, valid table.Bitmap, n, nulls int) []byte {
	switch nulls {
	case 0:
		return appendRun(dst, 1, n, 1)
	case n:
		return appendRun(dst, 0, n, 1)
	}
	groups := (n + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	for i := range groups {
		b := byte(valid[i>>3] >> (8 * (i & 7)))
		if left := n - 8*i; left < 8 {
			b &= 1<<left - 1
		}
		dst = append(dst, b)
	}
	return dst
}

// decodeLevels reads the definition levels of n rows as a Bitmap.
func decodeLevels(src []byte, n int) (table.Bitmap, error) {
	valid := table.NewBitmap(n)
	for row := 0; row < n; {
		header, k := binary.Uvarint(src)
		if k <= 0 || header>>1 == 0 {
			return nil, errHybrid
		}
		src = src[k:]
		if len(src) == 0 {
			return nil, errHybrid
		}
		if header&1 == 0 {
			end := row + int(min(header>>1, uint64(n-row)))
			if src[0]&1 != 0 {
				for ; row < end; row++ {
					valid.Set(row)
				}
			}
			row, src = end, src[1:]
			continue
		}
		groups := int(min(header>>1, uint64(len(src))))
		for _, b := range src[:groups] {
			for j := 0; j < 8 && row < n; j++ {
				if b>>j&1 != 0 {
					valid.Set(row)
				}
				row++
			}
		}
		src = src[groups:]
	}
	return valid, nil
}
