package results

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInflightOutlivesItsRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	sent := []Sent{{"run-1", "a", "http", "sha256:1"}, {"run-1", "b\n", "exec", "sha256:2"}}
	f := NewInflight(path)
	for _, s := range sent {
		if err := f.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	for what, change := range map[string]func(){
		"as it was left": func() {},
		"with a last line that was cut off": func() {
			if err := os.WriteFile(path+".inflight", append([]byte(content(t, path+".inflight")), `{"run":"run-1","id":"c`...), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		change()
		got, err := NewInflight(path).Read()
		if diff := cmp.Diff(sent, got); err != nil || diff != "" {
			t.Errorf("Read of the list %s: error %v, (-want +got):\n%s", what, err, diff)
		}
	}
	for range 2 { // a list that is gone is clear
		if err := f.Clear(); err != nil {
			t.Errorf("Clear: %v", err)
		}
	}
	if got, err := f.Read(); got != nil || err != nil {
		t.Errorf("Read after Clear = %v, %v; want nothing", got, err)
	}
}
