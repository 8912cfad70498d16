//go:build unix

package cmd_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLibrariesSayNothing has a server answer twice, the second time unasked and with
// the secret that it was sent: net/http would put that into the log of the process.
func TestLibrariesSayNothing(t *testing.T) {
	const secret = "Bearer abcdefgh-ijkl"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				time.Sleep(100 * time.Millisecond) // the answer is read, and the connection idle
				fmt.Fprintf(conn, "HTTP/1.1 401 for %s\r\n\r\n", r.Header.Get("Authorization"))
			}()
		}
	}()
	dir := t.TempDir()
	jobs := fmt.Sprintf(`limits: {hosts: {"*": {concurrency: 1}}}
jobs:
- {id: get, http: {url: "http://%s/", headers: {Authorization: "${env:SECRET}"}}}
- {id: wait, exec: {argv: [sleep, "0.5"]}}
`, listener.Addr())
	if err := os.WriteFile(filepath.Join(dir, "jobs.yaml"), []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"-q"}, {"--log-format", "json"}, {"-v"}} {
		var said strings.Builder
		c := exec.Command("agentlimit", append([]string{"run", "jobs.yaml", "--overwrite"}, flags...)...)
		c.Dir, c.Stderr, c.Env = dir, &said, append(os.Environ(), "SECRET="+secret)
		if err := c.Run(); err != nil {
			t.Errorf("agentlimit %q: %v", flags, err)
		}
		text := said.String()
		if strings.Contains(text, secret) || strings.Contains(text, "nsolicited") || flags[0] == "-q" && text != "" {
			t.Errorf("agentlimit %q said\n%s", flags, text)
		}
	}
}

// TestRedisLibrarySaysNothing has a Sentinel that is not there.
func TestRedisLibrarySaysNothing(t *testing.T) {
	c := exec.Command("agentlimit", "exec", "--host", "h", "--coordinator", "redis://127.0.0.1:1/?master_name=m", "--", "true")
	said, err := c.CombinedOutput()
	if err == nil {
		t.Error("it ended without an error")
	}
	for line := range strings.Lines(string(said)) {
		if !strings.HasPrefix(line, "agentlimit: ") {
			t.Errorf("a line that is not ours: %s", line)
		}
	}
}
