package walpayload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/varvedb/varve/table"
)

// errShort reports a length that the payload cannot hold.
var errShort = errors.New("it ends too early")

// Decode decodes a payload. Every length is checked against what is left
// before anything is allocated, so that memory stays within a small multiple
// of the payload. The rows may share memory with it.
func Decode(payload []byte) (*table.Rows, error) {
	d := decoder{rest: payload}
	rows := d.rows()
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes are left", len(d.rest))
	}
	if d.err != nil {
		return nil, fmt.Errorf("decode wal payload of %d bytes: %w", len(payload), d.err)
	}
	return rows, nil
}

// A decoder reads on until its first error; after that everything is empty.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	d.rest = nil
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.rest) {
		if d.err == nil {
			d.err = errShort
		}
		d.rest = nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// count reads a number of things that take at least perByte⁻¹ bytes each.
func (d *decoder) count(perByte int) int {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || n > 1 && d.rest[n-1] == 0 { // an overlong number is not one of ours
		d.fail("a number is malformed")
		return 0
	}
	d.rest = d.rest[n:]
	if v > uint64(len(d.rest))*uint64(perByte) || v > math.MaxInt32 {
		d.fail("a length of %d is more than the payload holds", v)
		return 0
	}
	return int(v)
}

func (d *decoder) rows() *table.Rows {
	if v := d.byte(); v != Version && d.err == nil {
		d.fail("its version is %d, and this program knows %d", v, Version)
	}
	rows := &table.Rows{Op: table.Op(d.byte())}
	if rows.Op > table.Delete {
		d.fail("operation %d is unknown", rows.Op)
	}
	n := d.count(1)
	d.keys(&rows.Keys)
	if n == 0 || d.err != nil {
		return rows
	}
	rows.Series = d.codes(n, rows.Keys.Len())
	rows.Times = d.times(n)
	fields := d.count(1)
	for range fields {
		if d.err != nil {
			return rows
		}
		rows.Fields = append(rows.Fields, d.field(n))
	}
	return rows
}

// strings reads n lengths and the bytes they cut.
func (d *decoder) strings(n int) (offsets []uint32, data []byte) {
	if n > len(d.rest) {
		d.bytes(n)
		return nil, nil
	}
	offsets = make([]uint32, n+1)
	total := uint64(0)
	for i := range n {
		total += uint64(d.count(1))
		offsets[i+1] = uint32(min(total, math.MaxUint32))
	}
	if total > math.MaxInt32 {
		d.fail("strings of %d bytes are too long", total)
		return nil, nil
	}
	return offsets, d.bytes(int(total))
}

func (d *decoder) keys(keys *table.Keys) {
	n := d.count(1)
	if n == 0 {
		return
	}
	keys.Offsets, keys.Data = d.strings(n)
	if d.err != nil {
		return
	}
	keys.Hashes = make([]uint64, n)
	for i := range n {
		keys.Hashes[i] = table.HashKey(keys.Key(i))
	}
}

// codes reads n numbers below limit.
func (d *decoder) codes(n, limit int) []uint32 {
	w := width4
	switch {
	case limit <= 1<<8:
		w = width1
	case limit <= 1<<16:
		w = width2
	}
	b := d.bytes(n * w)
	if d.err != nil {
		return nil
	}
	codes := make([]uint32, n)
	for i := range codes {
		switch w {
		case width1:
			codes[i] = uint32(b[i])
		case width2:
			codes[i] = uint32(binary.LittleEndian.Uint16(b[2*i:]))
		default:
			codes[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		if int64(codes[i]) >= int64(limit) {
			d.fail("number %d is not below %d", codes[i], limit)
			return nil
		}
	}
	return codes
}

func (d *decoder) times(n int) []int64 {
	b := d.bytes(8)
	w := d.byte()
	if d.err != nil {
		return nil
	}
	base := binary.LittleEndian.Uint64(b)
	times := make([]int64, 0)
	raw := d.numbers(n, w, false)
	for _, v := range raw {
		t := base + uint64(v)
		if int64(t) < int64(base) {
			d.fail("a time overflows")
			return nil
		}
		times = append(times, int64(t))
	}
	return times
}

// numbers reads n integers of width w.
func (d *decoder) numbers(n int, w byte, signed bool) []int64 {
	if w != width1 && w != width2 && w != width4 && w != width8 {
		d.fail("width %d is unknown", w)
		return nil
	}
	b := d.bytes(n * int(w))
	if d.err != nil {
		return nil
	}
	values := make([]int64, n)
	for i := range values {
		switch w {
		case width1:
			values[i] = int64(int8(b[i]))
			if !signed {
				values[i] = int64(b[i])
			}
		case width2:
			v := binary.LittleEndian.Uint16(b[2*i:])
			values[i] = int64(int16(v))
			if !signed {
				values[i] = int64(v)
			}
		case width4:
			v := binary.LittleEndian.Uint32(b[4*i:])
			values[i] = int64(int32(v))
			if !signed {
				values[i] = int64(v)
			}
		default:
			values[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	return values
}

func (d *decoder) field(n int) (f table.FieldVector) {
	id, size := binary.Uvarint(d.rest)
	if size <= 0 || id == 0 || id >= uint64(table.ReservedColumnID) {
		d.fail("a column id is malformed")
		return f
	}
	d.rest = d.rest[size:]
	f.ID, f.Type, f.Len = table.ColumnID(id), table.Type(d.byte()), n
	if !f.Type.Known() {
		d.fail("type %d of column %d is unknown", f.Type, id)
		return f
	}
	d.validity(&f.Vector)
	switch f.Type.Layout() {
	case table.Ints:
		f.Ints = d.numbers(n, d.byte(), true)
	case table.Floats:
		f.Floats = d.floats(n)
	case table.Bools:
		f.Bools = d.bools(n)
	default:
		d.byteStrings(&f.Vector, n)
	}
	return f
}

func (d *decoder) validity(v *table.Vector) {
	switch d.byte() {
	case 0:
		return
	case 1:
	default:
		d.fail("the validity of a column is malformed")
		return
	}
	words := (v.Len + 63) / 64
	b := d.bytes(8 * words)
	if d.err != nil {
		return
	}
	v.Valid = make(table.Bitmap, words)
	for i := range v.Valid {
		v.Valid[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
}

func (d *decoder) floats(n int) []float64 {
	w := d.byte()
	ints := d.numbers(n, w&^integral, true)
	if d.err != nil {
		return nil
	}
	floats := make([]float64, n)
	for i, v := range ints {
		if w&integral != 0 {
			floats[i] = float64(v)
		} else {
			floats[i] = math.Float64frombits(uint64(v))
		}
	}
	if w != width8 && w&integral == 0 || w == width8|integral {
		d.fail("width %d of floats is unknown", w)
	}
	return floats
}

func (d *decoder) bools(n int) []bool {
	b := d.bytes((n + 7) / 8)
	if d.err != nil {
		return nil
	}
	values := make([]bool, n)
	for i := range values {
		values[i] = b[i>>3]&(1<<(i&7)) != 0
	}
	return values
}

func (d *decoder) byteStrings(v *table.Vector, n int) {
	switch d.byte() {
	case plainBytes:
		v.Offsets, v.Data = d.strings(n)
	case dictBytes:
		offsets, data := d.strings(d.count(1))
		if d.err != nil {
			return
		}
		v.Dict = &table.Dict{Offsets: offsets, Data: data}
		v.Codes = d.codes(n, v.Dict.Len())
	default:
		d.fail("the encoding of a byte-string column is unknown")
	}
}
