package server

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/varvedb/varve/server/config"
)

// TestStalledClientsFreeTheirSlots lets more clients than there are query
// slots ask for long answers and read nothing of them.
func TestStalledClientsFreeTheirSlots(t *testing.T) {
	cfg := testConfig(t)
	cfg.HTTP.StallTimeout = config.Duration(200 * time.Millisecond)
	cfg.Query.MaxConcurrent = 1
	s, err := Start(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /v1/sql?sql=SELECT+range+FROM+range(1000000000) HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 16)); err != nil { // the answer has begun
			t.Fatal(fmt.Errorf("read the status line: %w", err))
		}
	}
	if got := statusOf(t, s, "/v1/sql?sql=SELECT+1"); got != 200 {
		t.Errorf("behind stalled clients SELECT 1 gets %d", got)
	}
}
