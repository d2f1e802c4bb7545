package handlers

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/fault"
)

// acceptedEncodings is what a 415 tells the client to use.
const acceptedEncodings = "gzip, zstd, deflate, snappy"

// zstdMaxWindow bounds what one frame header can make a decoder allocate.
const zstdMaxWindow = 32 << 20

// read decodes the body by its Content-Encoding headers.
func (in *bodyReader) read(ctx context.Context, encodings []string) error {
	var coding string
	for _, c := range strings.Split(strings.Join(encodings, ","), ",") {
		c = strings.ToLower(strings.TrimSpace(c))
		switch {
		case c == "" || c == "identity":
		case coding != "":
			return unknownEncoding(coding + ", " + c)
		default:
			coding = c
		}
	}
	switch coding {
	case "":
		return in.fill(ctx, in.raw, in.length)
	case "gzip", "x-gzip":
		return in.gunzip(ctx)
	case "zstd":
		return in.unzstd(ctx)
	case "deflate":
		return in.inflate(ctx)
	case "snappy", "x-snappy-framed":
		return in.unsnappy(ctx)
	default:
		return unknownEncoding(coding)
	}
}

func unknownEncoding(name string) error {
	return WithStatus(http.StatusUnsupportedMediaType, fault.Errorf(fault.Unsupported,
		"Content-Encoding %q is not supported; send one of %s", name, acceptedEncodings))
}

var (
	gzipPool sync.Pool // of *gzip.Reader
	zstdPool = sync.Pool{New: func() any {
		// One goroutine a decoder, the caller's; lowmem, because many are pooled.
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdMaxWindow))
		if err != nil {
			panic(err) // only wrong options fail
		}
		return d
	}}
)

func (in *bodyReader) gunzip(ctx context.Context) (err error) {
	z, _ := gzipPool.Get().(*gzip.Reader)
	if z == nil {
		z, err = gzip.NewReader(in.raw)
	} else {
		err = z.Reset(in.raw)
	}
	if z != nil {
		defer gzipPool.Put(z)
	}
	if err == io.EOF {
		return nil // no bytes at all: an empty body
	}
	if err != nil {
		return err
	}
	return in.fill(ctx, z, -1)
}

func (in *bodyReader) unzstd(ctx context.Context) error {
	d := zstdPool.Get().(*zstd.Decoder)
	defer zstdPool.Put(d)
	if err := d.Reset(in.raw); err != nil {
		return err
	}
	defer func() { _ = d.Reset(nil) }() // drop the request; Reset(nil) cannot fail
	return in.fill(ctx, d, -1)
}

// inflate takes both readings of "deflate": RFC 9110 means zlib, and some
// clients send the bare stream.
func (in *bodyReader) inflate(ctx context.Context) error {
	br := bufio.NewReader(in.raw)
	head, err := br.Peek(2)
	if err == io.EOF && len(head) == 0 {
		return nil
	}
	var src io.Reader
	if len(head) == 2 && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		if src, err = zlib.NewReader(br); err != nil {
			return err
		}
	} else {
		src = flate.NewReader(br)
	}
	return in.fill(ctx, src, -1)
}

// snappyMaxRatio bounds what a lying length can make us allocate: a snappy
// element of 3 bytes copies at most 64.
const snappyMaxRatio = 22

// snappyMagic starts every framed stream; no sensible block starts so.
var snappyMagic = []byte("\xff\x06\x00\x00sNaPpY")

// unsnappy takes the framed stream (OTLP) and the bare block (Prometheus).
func (in *bodyReader) unsnappy(ctx context.Context) error {
	br := bufio.NewReader(in.raw)
	if head, err := br.Peek(len(snappyMagic)); err == nil && bytes.Equal(head, snappyMagic) {
		return in.fill(ctx, s2.NewReader(br, s2.ReaderMaxBlockSize(64<<10)), -1)
	}
	block := &Body{claim: in.body.claim}
	defer block.Close()
	packed := bodyReader{body: block, raw: in.raw, limit: in.limit}
	if err := packed.fill(ctx, br, in.length); err != nil || len(block.buf) == 0 {
		return err
	}
	size, err := s2.DecodedLen(block.buf)
	if err != nil {
		return err
	}
	if int64(size) > in.limit {
		return errBodyLimit
	}
	if size > snappyMaxRatio*len(block.buf) {
		return s2.ErrCorrupt
	}
	if err := in.grow(ctx, int64(size)); err != nil {
		return err
	}
	in.body.buf, err = s2.Decode(in.body.buf[:cap(in.body.buf)], block.buf)
	return err
}
