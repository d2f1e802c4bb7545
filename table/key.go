package table

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Series keys
//
// A key is the tags of a series in key order, encoded so that bytes.Compare
// orders keys as the tuples are ordered, nulls first:
//
//	null           00
//	byte string    01, the bytes with 00 written as 00 ff, then 00 01
//	integer, bool  01, eight bytes big-endian, sign bit flipped unless UInt64
//	float          01, eight bytes big-endian of the order-preserving bits
//
// Trailing nulls are left out. A tag that is appended to a table's key is
// therefore null in every older key without any of them changing, and older
// files stay sorted.

const (
	keyNull   = 0x00
	keyValue  = 0x01
	keyEscape = 0xff
	keyEnd    = 0x01
)

// AppendKeyNull appends a null tag.
func AppendKeyNull(key []byte) []byte { return append(key, keyNull) }

// AppendKeyBytes appends a byte-string tag.
func AppendKeyBytes(key, value []byte) []byte {
	key = append(key, keyValue)
	for _, b := range value {
		key = append(key, b)
		if b == 0 {
			key = append(key, keyEscape)
		}
	}
	return append(key, 0, keyEnd)
}

// AppendKeyInt appends an integer, date, timestamp or boolean (0 or 1) tag of
// type t.
func AppendKeyInt(key []byte, t Type, value int64) []byte {
	u := uint64(value)
	if t != UInt64 {
		u ^= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(key, keyValue), u)
}

// AppendKeyFloat appends a float tag. Negative zero is stored as zero and
// every NaN as one NaN, which sorts last.
func AppendKeyFloat(key []byte, value float64) []byte {
	if value == 0 {
		value = 0
	}
	u := math.Float64bits(value)
	if value != value {
		u = math.Float64bits(math.NaN())
	}
	if u>>63 != 0 {
		u = ^u
	} else {
		u |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(key, keyValue), u)
}

// AppendKeyValue appends the value of row i of a tag's vector, which is not
// null.
func AppendKeyValue(key []byte, v *Vector, i int) []byte {
	switch v.Type.Layout() {
	case Bytes:
		return AppendKeyBytes(key, v.Bytes(i))
	case Floats:
		return AppendKeyFloat(key, v.Floats[i])
	case Bools:
		b := int64(0)
		if v.Bools[i] {
			b = 1
		}
		return AppendKeyInt(key, v.Type, b)
	default:
		return AppendKeyInt(key, v.Type, v.Ints[i])
	}
}

// TrimKey removes trailing null tags, which makes a key canonical; nulls is
// the number of nulls appended since the last value.
func TrimKey(key []byte, nulls int) []byte { return key[:len(key)-nulls] }

// A KeyReader takes a key apart, tag by tag.
type KeyReader struct {
	rest []byte
	buf  []byte
	err  error
}

// Reset starts to read key. A KeyReader may be used again and again.
func (r *KeyReader) Reset(key []byte) { r.rest, r.err = key, nil }

// Err returns what was wrong with the key, if anything.
func (r *KeyReader) Err() error { return r.err }

// More reports whether bytes are left; the tags behind them are null.
func (r *KeyReader) More() bool { return len(r.rest) > 0 && r.err == nil }

// Bytes reads a byte-string tag; ok is false for null. The value is good until
// the next call.
func (r *KeyReader) Bytes() (value []byte, ok bool) {
	if !r.present() {
		return nil, false
	}
	for i, b := range r.rest {
		if b != 0 {
			continue
		}
		if i+1 < len(r.rest) && r.rest[i+1] == keyEnd { // no escape: no copy
			value, r.rest = r.rest[:i], r.rest[i+2:]
			return value, true
		}
		return r.escaped()
	}
	r.fail()
	return nil, false
}

func (r *KeyReader) escaped() ([]byte, bool) {
	r.buf = r.buf[:0]
	for i := 0; i < len(r.rest); i++ {
		b := r.rest[i]
		if b != 0 {
			r.buf = append(r.buf, b)
			continue
		}
		if i++; i == len(r.rest) {
			break
		}
		switch r.rest[i] {
		case keyEnd:
			r.rest = r.rest[i+1:]
			return r.buf, true
		case keyEscape:
			r.buf = append(r.buf, 0)
		default:
			r.fail()
			return nil, false
		}
	}
	r.fail()
	return nil, false
}

// Int reads a tag that AppendKeyInt wrote for type t; ok is false for null.
func (r *KeyReader) Int(t Type) (value int64, ok bool) {
	u, ok := r.word()
	if t != UInt64 {
		u ^= 1 << 63
	}
	return int64(u), ok
}

// Float reads a float tag; ok is false for null.
func (r *KeyReader) Float() (value float64, ok bool) {
	u, ok := r.word()
	if u>>63 != 0 {
		u &^= 1 << 63
	} else {
		u = ^u
	}
	return math.Float64frombits(u), ok
}

func (r *KeyReader) word() (uint64, bool) {
	if !r.present() {
		return 0, false
	}
	if len(r.rest) < 8 {
		r.fail()
		return 0, false
	}
	u := binary.BigEndian.Uint64(r.rest)
	r.rest = r.rest[8:]
	return u, true
}

// present reads the marker byte and reports whether a value follows.
func (r *KeyReader) present() bool {
	if r.err != nil || len(r.rest) == 0 {
		return false
	}
	marker := r.rest[0]
	r.rest = r.rest[1:]
	if marker > keyValue {
		r.fail()
	}
	return marker == keyValue
}

func (r *KeyReader) fail() {
	r.err = fmt.Errorf("series key is damaged %d bytes before its end", len(r.rest))
	r.rest = nil
}
