//go:build linux || darwin

package folder

import (
	"context"
	"testing"

	"agentlimit/limits"
	"agentlimit/limits/conformance"
)

// members returns an Open for the suite that uses one folder.
func members(path string) conformance.Open {
	return func(t *testing.T, n int) []limits.Coordinator {
		if path == "" {
			path = t.TempDir()
		}
		var all []limits.Coordinator
		for range n {
			all = append(all, mustOpen(t, path))
		}
		path = ""
		return all
	}
}

func mustOpen(t *testing.T, path string) *Folder {
	t.Helper()
	f, err := Open(context.Background(), path, Options{Warn: func(s string) { t.Error(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return f
}

func TestConformance(t *testing.T) {
	conformance.Alone(t, members(""))
	conformance.Together(t, members(""))
}
