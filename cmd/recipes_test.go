package cmd_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// newService plays https://api.example.com for the commands of README.md. It returns
// the variables that lead them to it, and a token that it takes.
func newService(t *testing.T) (env []string) {
	t.Helper()
	s := httptest.NewUnstartedServer(serve())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that were not needed
	s.StartTLS()
	t.Cleanup(s.Close)
	proxy := httptest.NewServer(tunnel(s.Listener.Addr().String()))
	t.Cleanup(proxy.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(roots, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"API_TOKEN=a-long-secret", "HTTPS_PROXY=" + proxy.URL, "NO_PROXY=none", "SSL_CERT_FILE=" + roots}
}

// serve answers prompts, but for the first, which it puts off. Whatever else is
// asked for, it books.
func serve() http.HandlerFunc {
	var refused atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer a-long-secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != "/v1/chat/completions":
			io.WriteString(w, `{"state":"booked"}`)
		case refused.CompareAndSwap(false, true):
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			var asked struct{ Messages []map[string]string }
			json.NewDecoder(r.Body).Decode(&asked)
			message := map[string]string{"content": "That is a question: " + asked.Messages[0]["content"]}
			json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message}}})
		}
	}
}

// tunnel is a proxy for https that leads to one address, whatever it is asked for.
func tunnel(addr string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		there, err := net.Dial("tcp", addr)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer there.Close()
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			io.Copy(there, here)
			there.Close()
		}()
		io.Copy(here, there)
	}
}

// cronLine returns a command that does what cron does with the last line of a
// crontab: it runs it without any variables but a few. Those of the service are
// there because this one is on no network.
func cronLine(crontab string) string {
	lines := strings.Split(strings.TrimSpace(crontab), "\n")
	command := strings.Join(strings.Fields(lines[len(lines)-1])[5:], " ")
	command = strings.ReplaceAll(command, `\%`, "%")
	return `env -i HOME="$PWD" PATH="$PATH" HTTPS_PROXY="$HTTPS_PROXY" SSL_CERT_FILE="$SSL_CERT_FILE" ` +
		"sh <<'CRON'\n" + command + "\nCRON\n"
}

// workflowSteps are what the steps of a workflow run, but for one that builds
// agentlimit. They end with their first failure.
func workflowSteps(t *testing.T, text string) (scripts []string) {
	t.Helper()
	var flow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal([]byte(text), &flow); err != nil {
		t.Fatal(err)
	}
	for _, job := range flow.Jobs {
		for _, step := range job.Steps {
			if !strings.HasPrefix(step.Run, "go ") {
				scripts = append(scripts, "set -e\n"+step.Run)
			}
		}
	}
	return scripts
}

// TestReadmeReplacements runs the commands of other programs in README.md beside
// those that replace them: they print the same lines.
func TestReadmeReplacements(t *testing.T) {
	text, blocks := readme(t)
	rows := regexp.MustCompile("(?m)^\\| `(.* (?:xargs|parallel) .*)` \\| `(.*)` \\|$").FindAllStringSubmatch(text, -1)
	if len(rows) < 4 {
		t.Fatalf("README.md has %d rows of xargs and parallel", len(rows))
	}
	version, _ := exec.Command("parallel", "--version").Output()
	for _, row := range rows {
		before, after := strings.ReplaceAll(row[1], `\|`, "|"), strings.ReplaceAll(row[2], `\|`, "|")
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			dir := readmeDir(t, blocks)
			got := sortedLines(runShell(t, dir, after))
			if len(got) < 2 {
				t.Errorf("%s: said %q", after, got)
			}
			if strings.Contains(before, "parallel ") && !strings.HasPrefix(string(version), "GNU parallel") {
				return // it is not on this machine
			}
			if diff := cmp.Diff(sortedLines(runShell(t, dir, before)), got); diff != "" {
				t.Errorf("%s (-other +agentlimit):\n%s", after, diff)
			}
		})
	}
}

func sortedLines(s string) []string {
	return slices.Sorted(strings.Lines(s))
}

// TestReadmeContents wants each chapter of README.md to be among its contents, and
// every link in it to lead somewhere.
func TestReadmeContents(t *testing.T) {
	text, _ := readme(t)
	links := make(map[string]bool)
	for _, found := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		links[found[1]] = true
	}
	for _, found := range regexp.MustCompile(`(?m)^##(#?) (.*)$`).FindAllStringSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(found[2]), "")
		anchor = strings.ReplaceAll(anchor, " ", "-")
		if !links[anchor] && found[1] == "" {
			t.Errorf("README.md: the chapter %q is not among the contents", found[2])
		}
		delete(links, anchor)
	}
	for anchor := range links {
		t.Errorf("README.md: the link #%s leads nowhere", anchor)
	}
}
