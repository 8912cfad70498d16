package results

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInflightOutlivesItsRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	sent := []Record{
		{V: version, Run: "run-1", ID: "a", Status: Unknown, Kind: "http", Hash: "sha256:1"},
		{V: version, Run: "run-1", ID: "b\n", Status: Unknown, Kind: "exec", Hash: "sha256:2"},
	}
	f := NewInflight(path)
	for i := range sent {
		if err := f.Add(&sent[i]); err != nil {
			t.Fatal(err)
		}
	}
	for what, change := range map[string]func(){
		"as it was left": func() {},
		"with a last line that was cut off": func() {
			if err := os.WriteFile(path+".inflight", append([]byte(content(t, path+".inflight")), `{"v":1,"run":"run-1","id":"c`...), 0o600); err != nil {
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
	if err := os.WriteFile(path+".inflight", []byte("{\"run\":\"run-1\",\"id\":\"c\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Read(); got != nil || err == nil {
		t.Errorf("Read of a list with a whole line that is no record = %v, %v; want an error", got, err)
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
