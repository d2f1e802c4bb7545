package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// An ingestResult is what one load cost.
type ingestResult struct {
	rows     int
	elapsed  time.Duration
	cpu      float64 // seconds of the server
	peak     int64
	refusals int64
}

func (r ingestResult) String() string {
	return fmt.Sprintf("%9.0f rows/s  %6.2f server CPU µs/row  %5d MiB peak RSS  %d refused",
		r.rowsPerSecond(), r.cpu/float64(r.rows)*1e6, r.peak>>20, r.refusals)
}

func (r ingestResult) rowsPerSecond() float64 { return float64(r.rows) / r.elapsed.Seconds() }

// ingest sends all bodies over conns connections, each taking the next body
// when its last one is answered, and repeats what is refused with 503.
func ingest(ctx context.Context, p *process, path string, bodies [][]byte, rows, conns int) (ingestResult, error) {
	var next, refused atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, conns) // each connection sends at most one
	cpu, start := p.cpuSeconds(), time.Now()
	for range conns {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(bodies) {
					return
				}
				for {
					status, text, err := post(ctx, client, p.url+path, bodies[i])
					if err != nil {
						errs <- err
						return
					}
					if status/100 == 2 {
						break
					}
					if status != http.StatusServiceUnavailable {
						errs <- fmt.Errorf("%s answers %d: %s", p.name, status, text)
						return
					}
					refused.Add(1)
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	group.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return ingestResult{}, err
	}
	return ingestResult{rows, time.Since(start), p.cpuSeconds() - cpu, p.peakBytes(), refused.Load()}, nil
}

func post(ctx context.Context, client *http.Client, url string, body []byte) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
