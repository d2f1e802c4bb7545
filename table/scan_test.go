package table_test

import (
	"encoding/json"
	"testing"

	"github.com/varvedb/varve/table"
)

// Ranges of times are in manifests and in footers of files, as docs/format
// says.
func TestTimeRangeAsJSON(t *testing.T) {
	got, err := json.Marshal(table.TimeRange{Min: -1, Max: 2})
	if want := `{"min":-1,"max":2}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
