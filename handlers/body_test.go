package handlers

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/varvedb/varve/fault"
)

// encoders has every encoding that ReadBody takes.
var encoders = map[string]struct {
	header string
	encode func(p []byte) []byte
}{
	"plain":         {"", func(p []byte) []byte { return p }},
	"identity":      {"identity", func(p []byte) []byte { return p }},
	"gzip":          {"gzip", through(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })},
	"zlib":          {"deflate", through(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })},
	"raw deflate":   {"Deflate", through(func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z })},
	"zstd":          {"zstd", through(func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z })},
	"snappy block":  {"snappy", func(p []byte) []byte { return snappy.Encode(nil, p) }},
	"snappy framed": {"snappy", through(func(w io.Writer) io.WriteCloser { return snappy.NewBufferedWriter(w) })},
}

func through(open func(w io.Writer) io.WriteCloser) func([]byte) []byte {
	return func(p []byte) []byte {
		var b bytes.Buffer
		w := open(&b)
		_, _ = w.Write(p)
		_ = w.Close()
		return b.Bytes()
	}
}

func request(body []byte, encoding string, chunked bool) *http.Request {
	r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
	if chunked {
		r.ContentLength = -1
	}
	if encoding != "" {
		r.Header.Set("Content-Encoding", encoding)
	}
	return r
}

func TestReadBodyDecompresses(t *testing.T) {
	random := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	payloads := [][]byte{nil, []byte("cpu value=1\n"), bytes.Repeat([]byte("cpu value=1\n"), 50_000), random}
	for name, e := range encoders {
		for _, want := range payloads {
			for _, chunked := range []bool{false, true} {
				b, err := ReadBody(request(e.encode(want), e.header, chunked), 0)
				if err != nil {
					t.Errorf("%s, %d bytes: %v", name, len(want), err)
					continue
				}
				if !bytes.Equal(b.Bytes(), want) {
					t.Errorf("%s: %d bytes came out as %d other ones", name, len(want), len(b.Bytes()))
				}
				b.Close()
				b.Close()
			}
		}
	}
}

func TestReadBodyLimit(t *testing.T) {
	const limit = 100_000
	for name, e := range encoders {
		b, err := ReadBody(request(e.encode(make([]byte, limit)), e.header, true), limit)
		if err != nil {
			t.Errorf("%s: exactly the limit: %v", name, err)
			continue
		}
		b.Close()
		for _, size := range []int{limit + 1, 64 << 20} { // the second one is a bomb
			_, err := ReadBody(request(e.encode(make([]byte, size)), e.header, size > limit+1), limit)
			if StatusOf(orNil(err)) != 413 {
				t.Errorf("%s: %d bytes with limit %d: got %v", name, size, limit, err)
			}
		}
	}
}

// orNil keeps StatusOf away from a nil error.
func orNil(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

func TestReadBodyRefuses(t *testing.T) {
	f := func(body, encoding string, want int) {
		t.Helper()
		_, err := ReadBody(request([]byte(body), encoding, false), 1000)
		if err == nil || StatusOf(err) != want {
			t.Errorf("%q as %s: got %v, want status %d", body, encoding, err, want)
		}
	}
	f("x", "br", 415)
	f("x", "gzip, zstd", 415)
	f("not compressed", "gzip", 400)
	f("not compressed", "zstd", 400)
	f("not compressed", "deflate", 400)
	f("\xff\x7f", "snappy", 413)                 // says 16,383 bytes
	f("\xe4\x07", "snappy", 400)                 // says 996 bytes, has none
	f("\xff\xff\xff\xff\xff\xff", "snappy", 400) // says more than there is
	f(string(encoders["gzip"].encode([]byte("cut")))[:12], "gzip", 400)
}

func TestReadBodyBrokenConnection(t *testing.T) {
	r := request(nil, "gzip", true)
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader("\x1f\x8b"), brokenReader{}))
	if _, err := ReadBody(r, 0); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("got %v: a lost client is not bad data", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestReadBodyBudget(t *testing.T) {
	budget := newBodyBudget(300_000, 1<<20)
	x := &exchange{bodies: budget}
	read := func(r *http.Request) (*Body, error) { return ReadBody(x.into(r), 0) }
	first, err := read(request(make([]byte, 90_000), "", false))
	if err != nil {
		t.Fatal(err)
	}
	r := request(make([]byte, 150_000), "", false)
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	if _, err := read(r.WithContext(ctx)); fault.KindOf(err) != fault.Unavailable && fault.KindOf(err) != fault.Cancelled {
		t.Errorf("over the budget: got %v", err)
	}
	first.Close()
	second, err := read(request(make([]byte, 150_000), "", false))
	if err != nil {
		t.Fatalf("after the first body is closed: %v", err)
	}
	second.Close()
	if _, err := read(request(make([]byte, 400_000), "", false)); StatusOf(orNil(err)) != 413 {
		t.Errorf("a body over the whole budget: got %v, want 413", err)
	}
	if budget.mu.used != 0 {
		t.Error("bytes of closed or failed bodies are still counted")
	}
}

func FuzzReadBody(f *testing.F) {
	for _, e := range encoders {
		f.Add(e.encode([]byte("cpu,host=a value=1 1\n")), e.header)
	}
	f.Fuzz(func(t *testing.T, data []byte, encoding string) {
		b, err := ReadBody(request(data, encoding, len(data)%2 == 0), 4096)
		if err != nil {
			if status := StatusOf(err); status != 400 && status != 413 && status != 415 {
				t.Fatalf("%q as %q: status %d: %v", data, encoding, status, err)
			}
			return
		}
		defer b.Close()
		if len(b.Bytes()) > 4096 {
			t.Fatalf("%d bytes passed a limit of 4096", len(b.Bytes()))
		}
	})
}

func BenchmarkReadBody(b *testing.B) {
	line := "cpu,hostname=host_1,region=eu usage_user=58i,usage_system=2i 1451606400000000000\n"
	plain := []byte(strings.Repeat(line, 3000))
	for _, name := range []string{"plain", "gzip", "zstd", "snappy block"} {
		b.Run(name, func(b *testing.B) {
			e := encoders[name]
			packed := e.encode(plain)
			b.ReportAllocs()
			b.SetBytes(int64(len(plain)))
			for b.Loop() {
				body, err := ReadBody(request(packed, e.header, false), 0)
				if err != nil {
					b.Fatal(err)
				}
				body.Close()
			}
		})
	}
}

// However many large bodies come at once, in whatever order their bytes do,
// the oldest gets all it needs, so that a round of clients which repeat what
// was refused always makes progress. None waits for its time to run out.
func TestConcurrentBodiesMakeProgress(t *testing.T) {
	random := make([]byte, 600_000)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(random)
	for _, name := range []string{"plain", "gzip", "snappy block"} { // the last one takes two buffers
		e := encoders[name]
		packed := e.encode(random)
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			x := &exchange{bodies: newBodyBudget(1<<21, 1<<20)}
			rounds, waiting := 0, 16
			for ; waiting > 0 && rounds < 16; rounds++ {
				done := make(chan error, waiting)
				for i := range waiting {
					r := request(packed, e.header, i%2 == 0)
					r.Body = io.NopCloser(&slowReader{r.Body, time.Duration(i%5) * time.Microsecond})
					go func() {
						b, err := ReadBody(x2(x).into(r), 0)
						if err == nil {
							time.Sleep(time.Millisecond) // the work with it
							b.Close()
						} else if fault.KindOf(err) != fault.Unavailable {
							t.Errorf("%s: %v", name, err)
						}
						done <- err
					}()
				}
				before := waiting
				for range before {
					if <-done == nil {
						waiting--
					}
				}
				if waiting == before {
					t.Fatalf("%s: none of %d bodies was read in round %d", name, waiting, rounds+1)
				}
			}
			if used := x.bodies.mu.used; waiting > 0 || used != 0 || time.Since(start) > budgetWait {
				t.Errorf("%s: after %d rounds and %s, %d bodies are not read and %d bytes are counted", name, rounds, time.Since(start), waiting, used)
			}
		})
	}
}

// x2 returns an exchange with the same budget.
func x2(x *exchange) *exchange { return &exchange{bodies: x.bodies} }

// A slowReader is a client that sends a little at a time.
type slowReader struct {
	io.Reader
	pause time.Duration
}

func (r *slowReader) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	return r.Reader.Read(p[:min(len(p), 16<<10)])
}

// A client that is refused in the middle of its body reads the answer, and can
// use the connection again.
func TestRefusedBodyIsDrained(t *testing.T) {
	rt := NewRouter(RouterOptions{BodiesInMem: 1 << 20, BodyLimit: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	rt.Serve(reading{})
	server := httptest.NewServer(rt)
	defer server.Close()
	older, oldest := rt.bodies.claim(), rt.bodies.claim()
	if err := errors.Join(older.acquire(t.Context(), 1000), oldest.acquire(t.Context(), 1<<20-101_000)); err != nil {
		t.Fatal(err)
	}
	wait := make(chan error, 1)
	f := func(size int64, want int) {
		t.Helper()
		resp, err := http.Post(server.URL+"/body", "text/plain", io.LimitReader(zeros{}, size))
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != want || resp.Header.Get("Retry-After") == "" && want == 503 {
			t.Errorf("%d bytes: %d %v, want %d", size, resp.StatusCode, resp.Header, want)
		}
	}
	f(1000, 204)
	go func() {
		for waits := false; !waits; runtime.Gosched() { // until the body below needs more than is free
			rt.bodies.mu.Lock()
			waits = rt.bodies.mu.holder != nil
			rt.bodies.mu.Unlock()
		}
		wait <- older.acquire(t.Context(), 200_000)
	}()
	f(30<<20, 503)
	oldest.release(oldest.held)
	if err := <-wait; err != nil {
		t.Error(err)
	}
	older.release(older.held)
	f(500_000, 204)
	f(30<<20, 413)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// reading is a protocol that reads bodies.
type reading struct{}

func (reading) Register(r chi.Router) {
	r.Post("/body", Handle(func(w http.ResponseWriter, r *http.Request) error {
		b, err := ReadBody(r, 0)
		if err != nil {
			return err
		}
		b.Close()
		w.WriteHeader(http.StatusNoContent)
		return nil
	}))
}

func TestMalformedChunks(t *testing.T) {
	rt := NewRouter(RouterOptions{Logger: slog.New(slog.DiscardHandler)})
	rt.Serve(reading{})
	server := httptest.NewServer(rt)
	defer server.Close()
	f := func(chunks string) {
		t.Helper()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%s", chunks)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: %v", chunks, err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: status %d, want 400", chunks, resp.StatusCode)
		}
	}
	f("zz\r\nhello\r\n0\r\n\r\n")
	f("5\r\nhelloworld\r\n0\r\n\r\n")
	f("fffffffffffffffff\r\nx\r\n")
	f(strings.Repeat("1", 5000) + "\r\n")
}
