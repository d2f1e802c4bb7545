package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"

	"github.com/varvedb/varve/table"
)

// The layout, little-endian: see docs/format/wal.md.
const (
	segmentMagic      = "VARVEWAL"
	segmentHeaderSize = 40
	recordMagic       = "VWR\xb1" // not text, so that payloads seldom hold it
	recordHeaderSize  = 40
	formatVersion     = 1

	flagS2 = 1 // the payload is one S2 block

	// maxPayload bounds what a reader allocates for one record.
	maxPayload = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A segmentHeader starts each segment file.
type segmentHeader struct {
	number         uint64
	previous       uint64 // the segment that was written before, 0 if none
	previousLength uint64 // the bytes of it that hold acknowledged records
}

func (h segmentHeader) encode() []byte {
	b := make([]byte, segmentHeaderSize)
	copy(b, segmentMagic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	binary.LittleEndian.PutUint64(b[12:], h.number)
	binary.LittleEndian.PutUint64(b[20:], h.previous)
	binary.LittleEndian.PutUint64(b[28:], h.previousLength)
	binary.LittleEndian.PutUint32(b[36:], crc32.Checksum(b[:36], castagnoli))
	return b
}

// decodeSegmentHeader returns ok false for bytes that are no header of segment
// number, and an error for the header of a version that this program does not
// read.
func decodeSegmentHeader(b []byte, number uint64) (h segmentHeader, ok bool, err error) {
	if len(b) < segmentHeaderSize || string(b[:8]) != segmentMagic ||
		crc32.Checksum(b[:36], castagnoli) != binary.LittleEndian.Uint32(b[36:]) {
		return h, false, nil
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return h, false, fmt.Errorf("format version %d is not known to this program, which reads %d", v, formatVersion)
	}
	h = segmentHeader{
		number:         binary.LittleEndian.Uint64(b[12:]),
		previous:       binary.LittleEndian.Uint64(b[20:]),
		previousLength: binary.LittleEndian.Uint64(b[28:]),
	}
	return h, h.number == number && h.previousLength <= math.MaxInt64, nil
}

// A recordHeader precedes the payload of each record.
type recordHeader struct {
	flags      byte
	stored     uint32 // bytes of the payload as it follows
	raw        uint32 // bytes of the payload as it was given
	region     table.RegionID
	sequence   uint64
	payloadCRC uint32
}

// appendRecord appends a record to dst, all but the header's checksum, which
// seal fills in once the record's place is known.
func appendRecord(dst []byte, r Record, c Compression) []byte {
	start := len(dst)
	need := recordHeaderSize + len(r.Payload)
	if c == S2 {
		need = recordHeaderSize + s2.MaxEncodedLen(len(r.Payload))
	}
	if cap(dst)-start < need {
		dst = append(make([]byte, 0, start+need), dst...)
	}
	dst = dst[:start+need]
	h, body := dst[start:start+recordHeaderSize], dst[start+recordHeaderSize:]
	flags, stored := byte(flagS2), len(r.Payload)
	if c == S2 {
		stored = len(s2.Encode(body, r.Payload))
	}
	if stored >= len(r.Payload) {
		flags, stored = 0, copy(body, r.Payload)
	}
	copy(h, recordMagic)
	h[4], h[5], h[6], h[7] = formatVersion, flags, 0, 0
	binary.LittleEndian.PutUint32(h[8:], uint32(stored))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(r.Payload)))
	binary.LittleEndian.PutUint64(h[16:], uint64(r.Region))
	binary.LittleEndian.PutUint64(h[24:], r.Sequence)
	binary.LittleEndian.PutUint32(h[32:], crc32.Checksum(body[:stored], castagnoli))
	return dst[:start+recordHeaderSize+stored]
}

// seal writes the header's checksum. It covers the segment and the offset too,
// so that a copy of a record elsewhere, for example inside a payload, is never
// taken for one.
func seal(record []byte, segment uint64, offset int64) {
	binary.LittleEndian.PutUint32(record[36:], headerCRC(record, segment, offset))
}

func headerCRC(record []byte, segment uint64, offset int64) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], segment)
	binary.LittleEndian.PutUint64(place[8:], uint64(offset))
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, record[:36])
}

// decodeRecordHeader returns ok false for bytes that are no record header at
// this place.
func decodeRecordHeader(b []byte, segment uint64, offset int64) (h recordHeader, ok bool) {
	if len(b) < recordHeaderSize || string(b[:4]) != recordMagic || b[4] != formatVersion ||
		headerCRC(b, segment, offset) != binary.LittleEndian.Uint32(b[36:]) {
		return h, false
	}
	h = recordHeader{
		flags:      b[5],
		stored:     binary.LittleEndian.Uint32(b[8:]),
		raw:        binary.LittleEndian.Uint32(b[12:]),
		region:     table.RegionID(binary.LittleEndian.Uint64(b[16:])),
		sequence:   binary.LittleEndian.Uint64(b[24:]),
		payloadCRC: binary.LittleEndian.Uint32(b[32:]),
	}
	return h, h.raw <= maxPayload && h.stored <= maxPayload
}

// decodePayload returns the payload as it was given, in buf if it has to be
// decompressed; reason says why it cannot be.
func (h recordHeader) decodePayload(stored, buf []byte) (payload []byte, reason string) {
	if crc32.Checksum(stored, castagnoli) != h.payloadCRC {
		return nil, "the payload does not match its checksum"
	}
	switch h.flags {
	case 0:
		if h.raw != h.stored {
			return nil, "the payload has another length than it says"
		}
		return stored, ""
	case flagS2:
		n, err := s2.DecodedLen(stored)
		if err != nil || n != int(h.raw) {
			return nil, "the payload has another length than it says"
		}
		payload, err = s2.Decode(buf[:cap(buf)], stored)
		if err != nil {
			return nil, "the payload cannot be decompressed"
		}
		return payload, ""
	default:
		return nil, fmt.Sprintf("flags %#x are not known", h.flags)
	}
}

const segmentSuffix = ".wal"

// segmentPath returns the file of segment number.
func segmentPath(dir string, number uint64) string {
	return path.Join(dir, fmt.Sprintf("%020d%s", number, segmentSuffix))
}

// parseSegment returns the number of the segment at name.
func parseSegment(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(path.Base(name), segmentSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && number > 0 && number < math.MaxUint64
}
