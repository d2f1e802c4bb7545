package editlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// A Kind says what an object of the log holds.
type Kind uint8

// The kinds. Their numbers are part of the format.
const (
	Edit       Kind = 1
	Checkpoint Kind = 2
	Hint       Kind = 3 // the number of a checkpoint, where the log starts
)

// String returns the kind as inspect prints it.
func (k Kind) String() string {
	switch k {
	case Edit:
		return "edit"
	case Checkpoint:
		return "checkpoint"
	case Hint:
		return "hint"
	default:
		return fmt.Sprintf("kind %d", uint8(k))
	}
}

// A WriterID is random and tells one opened Log from every other.
type WriterID [16]byte

// An Object is one object of the log, decoded.
type Object struct {
	Kind    Kind
	Number  uint64 // the object's place in the log
	Writer  WriterID
	Attempt uint64 // counts the objects that the writer tried to create; a hint repeats these three of its checkpoint
	Oldest  uint64 // of a checkpoint: the smallest number that may still exist
	Voids   uint32 // how many numbers before this one are void
	Payload []byte
}

// The layout, little-endian: see docs/format/editlog.md.
const (
	magic      = "VEDL"
	version    = 1
	headerSize = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged reports bytes that are not an object of the log.
var ErrDamaged = errors.New("damaged")

// EncodeObject returns the bytes of an object.
func EncodeObject(o Object) ([]byte, error) {
	if uint64(len(o.Payload)) > math.MaxUint32 {
		return nil, fmt.Errorf("payload of %d bytes is over 4 GiB", len(o.Payload))
	}
	b := make([]byte, headerSize, headerSize+len(o.Payload))
	copy(b, magic)
	b[4] = version
	b[5] = byte(o.Kind)
	binary.LittleEndian.PutUint64(b[8:], o.Number)
	copy(b[16:], o.Writer[:])
	binary.LittleEndian.PutUint64(b[32:], o.Attempt)
	binary.LittleEndian.PutUint64(b[40:], o.Oldest)
	binary.LittleEndian.PutUint32(b[48:], o.Voids)
	binary.LittleEndian.PutUint32(b[52:], uint32(len(o.Payload)))
	binary.LittleEndian.PutUint32(b[56:], crc32.Checksum(o.Payload, castagnoli))
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return append(b, o.Payload...), nil
}

// DecodeObject takes an object apart; its Payload points into data. Anything
// that EncodeObject does not write is ErrDamaged.
func DecodeObject(data []byte) (Object, error) {
	o, length, err := decodeHeader(data)
	if err != nil {
		return Object{}, err
	}
	o.Payload = data[headerSize:]
	if len(o.Payload) != length {
		return Object{}, fmt.Errorf("%w: %d bytes of payload instead of %d", ErrDamaged, len(o.Payload), length)
	}
	if crc32.Checksum(o.Payload, castagnoli) != binary.LittleEndian.Uint32(data[56:]) {
		return Object{}, fmt.Errorf("%w: the payload does not match its checksum", ErrDamaged)
	}
	return o, nil
}

// decodeHeader decodes all but the payload, and returns the payload's length.
func decodeHeader(data []byte) (o Object, length int, err error) {
	switch {
	case len(data) < headerSize:
		return o, 0, fmt.Errorf("%w: %d bytes are no header", ErrDamaged, len(data))
	case string(data[:4]) != magic:
		return o, 0, fmt.Errorf("%w: it does not start with %s", ErrDamaged, magic)
	case crc32.Checksum(data[:60], castagnoli) != binary.LittleEndian.Uint32(data[60:]):
		return o, 0, fmt.Errorf("%w: the header does not match its checksum", ErrDamaged)
	case data[4] != version:
		return o, 0, fmt.Errorf("format version %d is not known to this program, which reads %d", data[4], version)
	case data[6] != 0 || data[7] != 0:
		return o, 0, fmt.Errorf("%w: reserved bytes are set", ErrDamaged)
	}
	o = Object{
		Kind:    Kind(data[5]),
		Number:  binary.LittleEndian.Uint64(data[8:]),
		Attempt: binary.LittleEndian.Uint64(data[32:]),
		Oldest:  binary.LittleEndian.Uint64(data[40:]),
		Voids:   binary.LittleEndian.Uint32(data[48:]),
	}
	copy(o.Writer[:], data[16:])
	if o.Kind < Edit || o.Kind > Hint {
		return o, 0, fmt.Errorf("%w: %v is not known", ErrDamaged, o.Kind)
	}
	return o, int(binary.LittleEndian.Uint32(data[52:])), nil
}
