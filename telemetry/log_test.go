package telemetry

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestDurationsCarryTheirUnit(t *testing.T) {
	f := func(format, want string) {
		t.Helper()
		var out bytes.Buffer
		log, err := NewLogger(&out, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("x", "duration", 1234567*time.Nanosecond)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s does not say %s", format, out.String(), want)
		}
	}
	f("json", `"duration_ms":1.234`)
	f("text", "duration=1.234567ms")
}
