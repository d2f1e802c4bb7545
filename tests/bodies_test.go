package tests

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
)

// Bodies that together are far more than there is memory for all get through,
// if their clients repeat what is refused with 503.
func TestLargeBodiesAtOnce(t *testing.T) {
	s := startStandalone(t, "--memory-limit", "512MiB") // of which bodies get 32 MiB
	const clients = 8
	var wg sync.WaitGroup
	for i := range clients {
		comment := bytes.Repeat([]byte("# nothing but a comment, of which a server makes no rows\n"), 30_000_000/57)
		body := fmt.Appendf(comment, "large,client=c%d v=1 1", i)
		wg.Go(func() {
			for range 2 * clients { // tries; each round lets one through at least
				status, answer, err := post(s.URL()+"/write", body)
				switch {
				case err != nil:
					t.Errorf("the answer was not readable: %v", err)
					return
				case status == 204:
					return
				case status != 503:
					t.Errorf("status %d: %s", status, answer)
					return
				}
			}
			t.Error("never got through")
		})
	}
	wg.Wait()
	expectRows(t, s, "SELECT count(*) FROM large", fmt.Sprint(clients))
}
