package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// load posts the bodies to url over so many connections and returns how long
// it took.
func load(url string, bodies [][]byte, connections int) (time.Duration, error) {
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections,
		WriteBufferSize: 64 << 10, DisableCompression: true,
	}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, connections) // each loader sends at most one
	start := time.Now()
	for range connections {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(bodies)); i = next.Add(1) - 1 {
				if err := post(client, url, bodies[i]); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(start)
	select {
	case err := <-errs:
		return took, err
	default:
		return took, nil
	}
}

func post(client *http.Client, url string, body []byte) error {
	resp, err := client.Post(url, "text/plain", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s: %.300s", url, resp.Status, answer)
	}
	return nil
}

// ingest measures a load on p and prints a line of the table.
func ingest(p *process, path string, w workload, bodies [][]byte, connections int) error {
	before, err := p.cpu()
	if err != nil {
		return err
	}
	took, err := load(p.url+path, bodies, connections)
	if err != nil {
		return err
	}
	after, err := p.cpu()
	if err != nil {
		return err
	}
	rss, err := p.peakRSS()
	if err != nil {
		return err
	}
	rows := float64(w.rows)
	fmt.Printf("%-16s %d connections  %8.0f rows/s  %6.2f CPU s per million rows  peak RSS %5d MiB\n", p.name, connections,
		rows/took.Seconds(), (after-before).Seconds()/rows*1e6, rss>>20)
	return nil
}
