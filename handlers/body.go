package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/varvedb/varve/fault"
)

const (
	// defaultBodyLimit is upstream's default for a body after decompression.
	defaultBodyLimit = 64 << 20
	// firstBuffer is what a body of unknown length starts with.
	firstBuffer = 64 << 10
	// trustedLength is the Content-Length up to which memory is taken before
	// the bytes have come; over it a client must send to make us allocate.
	trustedLength = 4 << 20
)

// A Body is the bytes of a request, decompressed, in a pooled buffer.
type Body struct {
	buf   []byte
	held  int64  // bytes of claim that are this body's
	claim *claim // nil once closed
}

// Bytes returns the bytes, which are good until Close.
func (b *Body) Bytes() []byte { return b.buf }

// Close gives the buffer back. Closing twice does nothing.
func (b *Body) Close() {
	if b.claim == nil {
		return
	}
	b.claim.release(b.held)
	b.held, b.claim = 0, nil
	putBuffer(b.buf)
	b.buf = nil
}

// ReadBody reads a request's body and decompresses it by its
// Content-Encoding. A body of more than limit bytes (0: the server's limit)
// after decompression is refused as soon as that is known, with
// fault.TooLarge; an unknown encoding gets 415, a damaged body fault.Invalid.
// All bodies in memory together stay within the server's budget: a request
// that does not get its share fails with fault.Unavailable; see bodyBudget.
func ReadBody(r *http.Request, limit int64) (*Body, error) {
	x := exchangeOf(r)
	x.bodyBegun = true
	budget := x.bodies
	if limit <= 0 {
		limit = budget.bodyLimit()
	}
	raw := &rawBody{r: r.Body, left: limit + 1} // compressed bytes over the limit are over it in any case
	if r.Body == nil {
		raw.r = http.NoBody
	}
	b := &Body{claim: budget.claim()}
	in := bodyReader{body: b, raw: raw, limit: limit, length: r.ContentLength}
	if err := in.read(r.Context(), r.Header.Values("Content-Encoding")); err != nil {
		b.Close()
		return nil, in.explain(r, err)
	}
	return b, nil
}

const (
	// drainBytes and drainTime bound what is read of a body that nobody wants.
	drainBytes = 64 << 20
	drainTime  = 5 * time.Second
)

// drain reads what is left of a request's body, so that its client, which may
// still be writing, comes to read the answer and is not cut off. A client that
// waits to be told to send (Expect: 100-continue) and was not is left to wait:
// the answer tells it.
func drain(r *http.Request, begun bool) {
	if r.Body == nil || !begun && r.Header.Get("Expect") != "" {
		return
	}
	buf := getBuffer(firstBuffer)
	defer putBuffer(buf)
	start, left := time.Now(), int64(drainBytes)
	for left > 0 && r.Context().Err() == nil && time.Since(start) < drainTime {
		n, err := r.Body.Read(buf[:cap(buf)])
		if left -= int64(n); err != nil {
			return
		}
	}
}

// errBodyLimit reports that a body passed its limit.
var errBodyLimit = errors.New("body limit")

// A rawBody is the body as it comes, and remembers how reading it failed, so
// that a broken connection is not taken for broken data.
type rawBody struct {
	r    io.Reader
	left int64
	err  error
}

func (b *rawBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBodyLimit
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// A bodyReader fills one Body.
type bodyReader struct {
	body   *Body
	raw    *rawBody
	limit  int64
	length int64 // Content-Length; -1 if unknown
}

// fill appends all of src to the body.
func (in *bodyReader) fill(ctx context.Context, src io.Reader, expect int64) error {
	if expect > in.limit {
		return errBodyLimit
	}
	first := int64(firstBuffer)
	if expect >= 0 && expect <= trustedLength {
		first = expect + 1 // one more byte, to meet the end without growing
	}
	if err := in.grow(ctx, first); err != nil {
		return err
	}
	most := in.limit + 1
	if expect >= 0 {
		most = expect + 1
	}
	for b := in.body; ; {
		n, err := src.Read(b.buf[len(b.buf):cap(b.buf)])
		b.buf = b.buf[:len(b.buf)+n]
		switch {
		case int64(len(b.buf)) > in.limit:
			return errBodyLimit
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if len(b.buf) == cap(b.buf) {
			if err := in.grow(ctx, max(min(2*int64(cap(b.buf)), most), int64(cap(b.buf))+1)); err != nil {
				return err
			}
		}
	}
}

// grow makes room for size bytes in all, and accounts for them.
func (in *bodyReader) grow(ctx context.Context, size int64) error {
	b := in.body
	if size <= int64(cap(b.buf)) {
		return nil
	}
	size = bufferSize(size)
	if err := b.claim.acquire(ctx, size-b.held); err != nil {
		return err
	}
	b.held = size
	bigger := append(getBuffer(size), b.buf...)
	putBuffer(b.buf)
	b.buf = bigger
	return nil
}

// explain says whose fault a failed read was.
func (in *bodyReader) explain(r *http.Request, err error) error {
	var marked *fault.Error
	switch {
	case errors.Is(err, errBodyLimit):
		return fault.Errorf(fault.TooLarge, "the body is over %d bytes after decompression", in.limit)
	case errors.As(err, &marked):
		return err
	case errors.Is(in.raw.err, os.ErrDeadlineExceeded):
		return WithStatus(http.StatusRequestTimeout, fault.Errorf(fault.Timeout, "read body: the client is too slow"))
	case r.Context().Err() != nil:
		return fault.Wrap(fault.Cancelled, r.Context().Err())
	case in.raw.err != nil && isLost(in.raw.err):
		return fault.Errorf(fault.Cancelled, "read body: %w", in.raw.err)
	case in.raw.err != nil:
		return fault.Errorf(fault.Invalid, "read body: %w", in.raw.err)
	default:
		return fault.Errorf(fault.Invalid, "decompress body: %w", err)
	}
}

// isLost reports whether err, of reading a body, says that the connection is
// gone. The other errors are of the body's framing, such as chunks that are
// none.
func isLost(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, http.ErrBodyReadAfterClose) || isNetwork(err)
}
