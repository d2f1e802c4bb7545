package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/varvedb/varve/objectstore"
	"github.com/varvedb/varve/table"
)

// A Damage is a stretch of a segment that does not read as what was written.
type Damage struct {
	Segment        uint64
	Offset, Length int64
	Reason         string

	// HeaderIntact says that one record is affected, of Region and Sequence;
	// else what was there is not known.
	HeaderIntact bool
	Region       table.RegionID
	Sequence     uint64
}

// String says where the damage is and what it is.
func (d Damage) String() string {
	s := fmt.Sprintf("segment %d at %d, %d bytes: %s", d.Segment, d.Offset, d.Length, d.Reason)
	if d.HeaderIntact {
		s += fmt.Sprintf(" (region %d, sequence %d)", d.Region, d.Sequence)
	}
	return s
}

// An Entry is one record of a segment, or a damaged stretch between records.
type Entry struct {
	Offset int64
	Length int64   // bytes in the file, header included
	Record Record  // its payload is good until the next entry
	Damage *Damage // nil for a record
}

// A SegmentInfo describes a segment.
type SegmentInfo struct {
	Number uint64
	Size   int64 // bytes of the file
	End    int64 // where the last intact record or header ends

	// HeaderIntact says that the fields below could be read. Previous is the
	// segment written before this one, and PreviousLength how much of it holds
	// acknowledged records.
	HeaderIntact   bool
	Previous       uint64
	PreviousLength int64
}

// ReadSegment calls fn for each record and each damaged stretch of the segment
// file at name, in the order of the file, and changes nothing. It skips a
// damaged record by its length, and looks for the next intact header where
// the header itself is damaged.
//
// Whether a damaged end is damage or only what a crash left of records that
// were never acknowledged can only be told with the next segment's
// PreviousLength; Replay does that.
func ReadSegment(d objectstore.Disk, name string, fn func(Entry) error) (info SegmentInfo, err error) {
	number, ok := parseSegment(name)
	if !ok {
		return info, fmt.Errorf("read segment %s: the name is not that of a segment", name)
	}
	f, err := d.Open(name)
	if err != nil {
		return info, fmt.Errorf("read segment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s := scanner{window: window{f: f}, fn: fn}
	if s.info, err = readSegmentHeader(&s.window, number); err == nil {
		err = s.scan()
	}
	if err != nil {
		return s.info, fmt.Errorf("read segment %s: %w", name, err)
	}
	return s.info, nil
}

// readSegmentHeader reads the start of a segment. A header that is damaged is
// no error.
func readSegmentHeader(w *window, number uint64) (info SegmentInfo, err error) {
	info = SegmentInfo{Number: number}
	if info.Size, err = w.f.Size(); err != nil {
		return info, err
	}
	w.size = info.Size
	b, err := w.at(0, segmentHeaderSize)
	if err != nil {
		return info, err
	}
	h, ok, err := decodeSegmentHeader(b, number)
	if ok {
		info.HeaderIntact, info.End = true, segmentHeaderSize
		info.Previous, info.PreviousLength = h.previous, int64(h.previousLength)
	}
	return info, err
}

// A window reads a file in large pieces.
type window struct {
	f     objectstore.File
	size  int64
	buf   []byte
	start int64 // offset of buf in the file
}

const windowBytes = 1 << 20

// at returns n bytes at offset, or what the file has of them; they are good
// until the next call.
func (w *window) at(offset int64, n int) ([]byte, error) {
	end := min(offset+int64(n), w.size)
	if offset >= end {
		return nil, nil
	}
	if offset < w.start || end > w.start+int64(len(w.buf)) {
		if err := w.fill(offset, max(end-offset, min(windowBytes, w.size-offset))); err != nil {
			return nil, err
		}
	}
	return w.buf[offset-w.start : end-w.start], nil
}

func (w *window) fill(offset, n int64) error {
	if int64(cap(w.buf)) < n {
		w.buf = make([]byte, n)
	}
	w.buf, w.start = w.buf[:n], offset
	got, err := w.f.ReadAt(w.buf, offset)
	if int64(got) < n {
		w.buf = w.buf[:0]
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // it shrank since Size
		}
		return err
	}
	return nil
}

// find returns the offset of the next record magic at or after offset, or the
// file's size.
func (w *window) find(offset int64) (int64, error) {
	for offset < w.size {
		if _, err := w.at(offset, len(recordMagic)); err != nil {
			return 0, err
		}
		b := w.buf[offset-w.start:]
		if i := bytes.Index(b, []byte(recordMagic)); i >= 0 {
			return offset + int64(i), nil
		}
		if offset+int64(len(b)) >= w.size {
			break
		}
		offset += int64(len(b) - len(recordMagic) + 1)
	}
	return w.size, nil
}

// A scanner walks one segment.
type scanner struct {
	window
	info SegmentInfo
	fn   func(Entry) error
	bad  int64  // where the damaged stretch starts that the scanner is in; -1
	buf  []byte // the last decompressed payload
}

func (s *scanner) scan() error {
	s.bad = -1
	if !s.info.HeaderIntact {
		s.bad = 0
	}
	for offset := min(segmentHeaderSize, s.size); offset < s.size; {
		head, err := s.at(offset, recordHeaderSize)
		if err != nil {
			return err
		}
		h, ok := decodeRecordHeader(head, s.info.Number, offset)
		if ok {
			if err := s.record(offset, h); err != nil {
				return err
			}
			offset += min(recordHeaderSize+int64(h.stored), s.size-offset)
			continue
		}
		if s.bad < 0 {
			s.bad = offset
		}
		if offset, err = s.find(offset + 1); err != nil {
			return err
		}
	}
	return s.endBad(s.size)
}

// endBad reports the damaged stretch that ends at offset, if there is one.
func (s *scanner) endBad(offset int64) error {
	start := s.bad
	s.bad = -1
	if start < 0 || start == offset && s.size > 0 {
		return nil
	}
	d := Damage{Segment: s.info.Number, Offset: start, Length: offset - start, Reason: "no record header"}
	if start == 0 {
		d.Reason = "no segment header"
	}
	return s.fn(Entry{Offset: start, Length: d.Length, Damage: &d})
}

// record reports the record with the intact header h.
func (s *scanner) record(offset int64, h recordHeader) error {
	if err := s.endBad(offset); err != nil {
		return err
	}
	e := Entry{Offset: offset, Length: min(recordHeaderSize+int64(h.stored), s.size-offset)}
	stored, err := s.at(offset+recordHeaderSize, int(h.stored))
	if err != nil {
		return err
	}
	reason := "the file ends inside the record"
	if len(stored) == int(h.stored) {
		e.Record = Record{Region: h.region, Sequence: h.sequence}
		if e.Record.Payload, reason = h.decodePayload(stored, s.buf); reason == "" {
			if h.flags == flagS2 {
				s.buf = e.Record.Payload
			}
			s.info.End = offset + e.Length
			return s.fn(e)
		}
	}
	e.Record = Record{}
	e.Damage = &Damage{Segment: s.info.Number, Offset: offset, Length: e.Length, Reason: reason,
		HeaderIntact: true, Region: h.region, Sequence: h.sequence}
	return s.fn(e)
}
