//go:build unix

package call

import (
	"os"
	"testing"
	"time"
)

// TestTempsOfKilledProcessesGo has a folder of a process that was killed, whose lock is
// therefore gone, beside those that must stay.
func TestTempsOfKilledProcessesGo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, row := range []struct {
		what          string
		killed, young bool
		stays         bool
	}{
		{"a folder that is held", false, false, true},
		{"one of a killed process", true, false, false},
		{"one that may be about to be held", true, true, true},
	} {
		temp, err := NewTemp()
		if err != nil {
			t.Fatal(err)
		}
		if row.killed {
			temp.held.Close()
		}
		if err := os.WriteFile(temp.Path+"/1", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if old := time.Now().Add(-2 * tempYoung); !row.young {
			if err := os.Chtimes(temp.Path, old, old); err != nil {
				t.Fatal(err)
			}
		}
		next, err := NewTemp()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(temp.Path); (err == nil) != row.stays {
			t.Errorf("%s: %v after another was made, want that it stays: %v", row.what, err, row.stays)
		}
		next.Remove()
		if _, err := os.Stat(next.Path); err == nil {
			t.Errorf("%s: the new folder is still there after Remove", row.what)
		}
	}
}
