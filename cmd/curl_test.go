package cmd_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/cmd"
)

// sent is a request as a server sees it.
type sent struct {
	Method, Target, Host string
	Header               http.Header
	Body                 string
}

// keeper keeps what it is sent.
type keeper struct {
	mu  sync.Mutex
	all []sent
}

func (k *keeper) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, sent{r.Method, r.RequestURI, r.Host, r.Header.Clone(), string(body)})
}

// take returns what was sent since the last time.
func (k *keeper) take() []sent {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.all
	k.all = nil
	return all
}

var boundary = regexp.MustCompile(`boundary=(\S+)`)

// comparable leaves out what names the client, where it was not told how, what a
// boundary is, and the headers that are named as left out.
func comparable(all []sent, without ...string) []sent {
	for i := range all {
		s := &all[i]
		if agent := s.Header.Get("User-Agent"); strings.HasPrefix(agent, "curl/") || agent == "agentlimit" {
			s.Header.Del("User-Agent")
		}
		if found := boundary.FindStringSubmatch(s.Header.Get("Content-Type")); found != nil {
			s.Body = strings.ReplaceAll(s.Body, found[1], "BOUNDARY")
			s.Header.Set("Content-Type", strings.Replace(s.Header.Get("Content-Type"), found[1], "BOUNDARY", 1))
			s.Header.Del("Content-Length")
		}
		for _, name := range without {
			s.Header.Del(name)
		}
	}
	return all
}

// TestFromCurl has curl and the job that is made of its line send to one server. What
// they send is equal, but for what is said to be left out.
func TestFromCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not on this machine: apt-get install curl")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not on this machine, and curl lines are for it")
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"data.txt": "a=1\r\nb=2\n", "plain.txt": "a=1&b=2", "bytes.bin": "\x00\xff\xfe\n", "page.html": "<p>é</p>\n", "pic.png": "\x89PNG\r\n", "my file.csv": "x,y\n", "wide.txt": "a\x00b\x00",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := &keeper{}
	server := httptest.NewServer(k)
	defer server.Close()
	t.Setenv("no_proxy", "*")
	t.Setenv("CURL_HOME", t.TempDir()) // no .curlrc
	t.Setenv("URL", server.URL)
	t.Setenv("SITE", strings.TrimPrefix(server.URL, "http://"))
	t.Setenv("TOKEN", "tok-12345678")
	for name, value := range map[string]string{
		"AUTHORIZATION": "tok-1234567890", "AUTHORIZATION_BASIC": "dXNlcjpwYXNzOndvcmQ=", "COOKIE": "sid=abc123; theme=dark", "X_API_KEY": "key-1234567890", "API_KEY": "q%20-1234567890",
	} {
		t.Setenv(name+"_127_0_0_1", value)
	}
	for _, test := range curlLines {
		t.Run(test.what, func(t *testing.T) {
			line := strings.ReplaceAll(test.line, "SRV/", server.URL+"/")
			line = strings.ReplaceAll(line, "HOST/", strings.TrimPrefix(server.URL, "http://")+"/")
			if test.basic {
				t.Setenv("AUTHORIZATION_127_0_0_1", os.Getenv("AUTHORIZATION_BASIC_127_0_0_1"))
			}
			c := exec.CommandContext(t.Context(), "bash", "-c", line)
			c.Env = append(c.Environ(), "LC_ALL=C.UTF-8") // as a shell reads \u00e9 where text is UTF-8
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
			want := comparable(k.take(), test.without...)
			got, said, text := runFromCurl(t, k, line)
			if diff := cmp.Diff(want, comparable(got, test.without...)); diff != "" || len(want) == 0 {
				t.Errorf("%s\n(-curl +agentlimit):\n%s\n%s", line, diff, text)
			}
			if diff := cmp.Diff(strings.Join(test.left, "\n"), said); diff != "" {
				t.Errorf("%s: what is left out (-want +got):\n%s", line, diff)
			}
		})
	}
}

// runFromCurl runs the job file that is made of a line, and returns what came to the
// server, what was said to be left out, and the file.
func runFromCurl(t *testing.T, k *keeper, line string) (got []sent, left, text string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs.yaml")
	var stderr bytes.Buffer
	if code := cmd.Run(t.Context(), []string{"init", "--from-curl", file}, strings.NewReader(line), io.Discard, &stderr); code != 0 {
		t.Fatalf("%s: init --from-curl: exit code %d\n%s", line, code, &stderr)
	}
	var said []string
	for one := range strings.Lines(stderr.String()) {
		if _, note, found := strings.Cut(strings.TrimSpace(one), "not carried over: "); found {
			said = append(said, note)
		}
	}
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if code := cmd.Run(t.Context(), []string{"run", "-q", file, "-o", filepath.Join(dir, "out.jsonl")}, nil, io.Discard, &stderr); code != 0 {
		t.Errorf("%s: run: exit code %d\n%s\n%s", line, code, &stderr, made)
	}
	for _, secret := range []string{"tok-1234567890", "sid=abc123", "key-1234567890", "pass:word", "dXNlcjpw"} {
		if strings.Contains(string(made)+stderr.String(), secret) {
			t.Errorf("%s: a secret is in the file or said:\n%s\n%s", line, made, &stderr)
		}
	}
	got = k.take()
	slices.SortStableFunc(got, func(a, b sent) int { return strings.Compare(a.Target, b.Target) })
	return got, strings.Join(said, "\n"), string(made)
}

// zero is a header that curl and net/http, which sends it with POST, PUT and PATCH, have at
// different methods where there is no body.
var zero = []string{"Content-Length"}

// curlLines are calls of curl. In them HOST is the server's, and SRV/ begins its URLs.
var curlLines = []struct {
	what, line string
	left       []string // what is said to be left out
	without    []string // headers that are not compared for that
	basic      bool     // the credential is a user's
}{
	{what: "a URL alone", line: `curl SRV/`},
	{what: "in single quotes", line: `curl 'SRV/a?b=c&d=e'`},
	{what: "in double quotes", line: `curl "SRV/a?b=$TOKEN"`},
	{what: "a host alone", line: `curl HOST/a`},
	{what: "no path", line: `curl "${URL}?x=1"`},
	{what: "a variable as the host", line: `curl "$URL/v1/users"`},
	{what: "a variable as the host, and another as a secret", line: `curl -H "Authorization: Bearer $TOKEN" "http://$SITE/v1"`},
	{what: "a fragment", line: `curl 'SRV/a#b'`},
	{what: "dots in a path", line: `curl SRV/a/./b/../c`},
	{what: "letters in percent", line: `curl 'SRV/%C3%A9%2Fa?q=%20+%26'`},
	{what: "two URLs", line: `curl SRV/a SRV/b`},
	{what: "a URL as an option", line: `curl --url SRV/a`},
	{what: "a method", line: `curl -X DELETE SRV/a`},
	{what: "a method in one word", line: `curl -XPUT SRV/a -d x`},
	{what: "a method without a body", line: `curl --request POST SRV/a`, without: zero},
	{what: "HEAD", line: `curl -I SRV/a`},
	{what: "switches that stand together", line: `curl -sSLk SRV/a`, left: []string{"-s", "-S"}},
	{what: "switches twice", line: `curl -k -k --insecure SRV/a`},
	{what: "a URL in a URL", line: `curl 'HOST/a?u=http://example.com/'`},
	{what: "several headers", line: `curl -H 'X-A: 1' -H "X-B: two words" SRV/a`},
	{what: "a header twice", line: `curl -H 'X-A: 1' -H 'x-a: 2' SRV/a`},
	{what: "headers in other places", line: `curl -H 'Host: example.com' -H 'Accept: text/plain' -H 'Content-Type: text/csv' -d a,b SRV/a`},
	{what: "headers that are taken away", line: `curl -H 'Accept:' -H 'Content-Type:' -d x SRV/a`},
	{what: "a header without a value", line: `curl -H 'X-Empty;' SRV/a`, left: []string{`-H "X-Empty": a header without a value`}, without: []string{"X-Empty"}},
	{what: "an agent and a referrer", line: `curl -A 'Mozilla/5.0 (X11)' -e http://example.com/ SRV/a`},
	{what: "a token", line: `curl -H 'Authorization: Bearer tok-1234567890' SRV/a`},
	{what: "a token of a variable", line: `curl -H "Authorization: Bearer $TOKEN" SRV/a`},
	{what: "a token as an option", line: `curl --oauth2-bearer tok-1234567890 SRV/a`},
	{what: "a key", line: `curl -H 'X-API-Key: key-1234567890' SRV/a`},
	{what: "a key in the URL", line: `curl 'SRV/a?api_key=q%20-1234567890&b=c'`},
	{what: "a user", line: `curl -u user:pass:word SRV/a`, basic: true},
	{what: "a user in the URL", line: `curl http://user:pass%3Aword@HOST/a`, basic: true},
	{what: "cookies", line: `curl -b 'sid=abc123; theme=dark' SRV/a`},
	{what: "several cookies, of variables", line: `curl -b "u=$TOKEN" --cookie "t=$TOKEN" SRV/a`},
	{what: "a header of cookies", line: `curl -H 'Cookie: sid=abc123; theme=dark' SRV/a`},
	{what: "data", line: `curl -d a=1 -d 'b=2 c' SRV/a`},
	{what: "data in one word", line: `curl -da=1 SRV/a`},
	{what: "no data", line: `curl -d '' SRV/a`},
	{what: "data of a file", line: `curl -d @data.txt SRV/a`},
	{what: "data of a file of one line", line: `curl --data @plain.txt -d c=3 SRV/a`},
	{what: "data of a file as it is", line: `curl --data-binary @bytes.bin -H 'Content-Type: application/octet-stream' SRV/a`},
	{what: "raw data", line: `curl --data-raw '@not a file' SRV/a`},
	{what: "data with a mark of references", line: `curl --data-raw '${env:HOME} $${ "x" \' SRV/a`},
	{what: "a variable in data", line: `curl -d "{\"t\":\"$TOKEN\",\"price\":\"5\$\"}" SRV/a`},
	{what: "quotes of $", line: `curl --data-raw $'{"a":"it\'s\\n\u00e9\x41\t\101"}\n' SRV/a`},
	{what: "quotes within quotes", line: `curl -d 'it'\''s' -d "a\"b\\c" SRV/a`},
	{what: "data of two lines", line: "curl -d 'a\nb: c\n  - d\n' SRV/a"},
	{what: "lines that begin with blanks", line: `curl --data-raw $'\n  a\n\tb\n' SRV/a`},
	{what: "data that is odd in YAML", line: `curl -d '- null: # {x} & *y' SRV/a`},
	{what: "the word null", line: `curl -d null -H 'X-N: null' -H 'X-T: true' -H 'X-D: 0123' SRV/a`},
	{what: "signs of the world", line: `curl -d '日本 😀 é' SRV/a`},
	{what: "data that is encoded", line: `curl --data-urlencode 'q=a b&c/é' --data-urlencode '=x y' --data-urlencode 'plain z' --data-urlencode f@data.txt SRV/a`},
	{what: "data in the URL", line: `curl -G -d a=1 --data-urlencode 'q=x y' 'SRV/a?b=2'`},
	{what: "data in the URL of a HEAD", line: `curl -G -I -d a=1 SRV/a`},
	{what: "JSON", line: `curl --json '{"a": [1, 2]}' SRV/a`},
	{what: "JSON in parts", line: `curl --json '{"a":' --json 1} -H 'Accept: */*' SRV/a`},
	{what: "a form", line: `curl -F a=1 -F 'b=two words' SRV/a`},
	{what: "a form of files", line: `curl -F 'f=@page.html' -F p=@pic.png -F 'c=@my file.csv' SRV/a`},
	{what: "a form with types", line: `curl -F 'f=@data.txt;type=text/csv' -F 'j={"a":1};type=application/json' -F 't=<plain.txt' SRV/a`},
	{what: "a form with names of files", line: `curl -F 'f=@data.txt;filename=other.csv;type=text/csv' -F 'g=text;filename=named.txt' -F 't=<plain.txt;type=text/x' SRV/a`},
	{what: "a range twice", line: `curl -r 0-9 -r 5-6 SRV/a`},
	{what: "no data, but a method", line: `curl -X GET -d '' SRV/a`, left: []string{"Content-Length: 0"}, without: zero},
	{what: "no data, but another method, twice", line: `curl -X DELETE -d '' SRV/a SRV/b`, left: []string{"Content-Length: 0"}, without: zero},
	{what: "no data, but PUT", line: `curl -X PUT -d '' SRV/a`},
	{what: "no data in the URL", line: `curl -G -d '' SRV/a`},
	{what: "no data behind an empty query", line: `curl -G -d '' 'SRV/a?'`},
	{what: "data behind an empty query", line: `curl -G -d x 'SRV/a?'`},
	{what: "data behind a query that is open", line: `curl -G -d x 'SRV/a?b&'`},
	{what: "a form with blanks", line: `curl -F 'a= x ' -F 'b=y ;type=text/x' -F $'c=\n z\n' SRV/a`},
	{what: "a form with quotes and charsets", line: `curl -F 'f=@data.txt ;filename="x y.csv";type=text/csv; charset=utf-8' -F 'g=1;type=text/x;charset=a;filename=z z' SRV/a`},
	{what: "a form with all in quotes", line: `curl --location --form 'f=@"my file.csv"' -F 'g=@"plain.txt" ;type=text/x' -F 't=<"plain.txt"' -F 'a="q;w\"x\\y\z"' -F 'b="  b  "' -F 'c=b"c"d' -F 'd=""' -F 'e=@plain.txt;filename="q\"x;y"' SRV/a`},
	{what: "a form of plain texts", line: `curl --form-string 'a=@x;type=y"' --form-string b=x=y --form-string c= SRV/a`},
	{what: "a form of a text with a name", line: `curl -F 't=<plain.txt;filename=q.png' SRV/a`},
	{what: "a form whose type is said", line: `curl -H 'Content-Type: multipart/form-data' -F a=b SRV/a`},
	{what: "a proxy", line: `no_proxy= curl -x HOST/ http://e.example/a`, left: []string{`"no_proxy": a variable of the shell`, "-x: Proxy-Connection: Keep-Alive"}, without: []string{"Proxy-Connection"}},
	{what: "a file to put", line: `curl -T bytes.bin SRV/a`, left: []string{"-T: Expect: 100-continue"}, without: []string{"Expect"}},
	{what: "a file to put in a folder", line: `curl -T plain.txt SRV/a/`, left: []string{"-T: Expect: 100-continue"}, without: []string{"Expect"}},
	{what: "a range", line: `curl -r 0-9 SRV/a`},
	{what: "a here-document", line: "curl --data-binary @- SRV/a <<'END'\n{\"a\": \"$x\"}\nEND\n"},
	{what: "a here-document as it is", line: "curl --data-binary @- SRV/a <<'END'\n{\"a\": \"\\\\ \\\" \\$x ${env:HOME}\"}\nEND\n"},
	{what: "a here-document with a variable", line: "curl --data-binary @- SRV/a <<END\n{\"a\": \"\\\\ \\\" \\$x $TOKEN\"}\nEND\n"},
	{what: "ends of lines that YAML knows", line: "curl -d 'a\u2028b\u0085c' SRV/a"},
	{what: "what looks like a variable in a file", line: `curl -F f=@wide.txt SRV/a`},
	{what: "lines of a here-document", line: "curl -d @- -d b SRV/a <<END\n$TOKEN\nx\nEND\n"},
	{what: "a file and more", line: `curl --data-binary @bytes.bin -d c=3 --data-binary @plain.txt SRV/a`},
	{what: "a file in the URL", line: `curl -G --data-binary @plain.txt SRV/a`},
	{what: "headers that are none", line: `curl -H 'X-A' -A '' SRV/a`, left: []string{"-H without a colon", "-A '': jobs name agentlimit"}},
	{what: "two calls with --next", line: `curl -d a=1 SRV/a --next -H 'X-B: 2' SRV/b`},
	{what: "lines that go on", line: "curl 'SRV/a' \\\n  -X POST \\\n  -H 'Content-Type: application/json' \\\n  --data '{\"a\":1}'"},
	{what: "comments and several lines", line: "# the first\ncurl SRV/a # of two\n\ncurl -d x SRV/b\n"},
	{what: "what browsers copy", line: `curl 'SRV/a' -H 'accept: */*' -H 'accept-language: de,en;q=0.9' -H 'sec-ch-ua: "Chromium";v="120"' -H 'cookie: sid=abc123; theme=dark' --data-raw $'{"q":"\u0021"}' --compressed`,
		left: []string{"--compressed"}, without: []string{"Accept-Encoding"}},
	{what: "what is beside the request", line: `curl --max-time 5 -f -o out.txt --connect-timeout 2 --retry 3 -v SRV/a`, left: []string{"--connect-timeout", "--retry", "-v"}},
	{what: "what stands around curl", line: `X=1 curl -s SRV/a | cat >/dev/null`, left: []string{`"X": a variable of the shell`, `"cat": no call of curl`, "-s"}},
	{what: "an output that nobody wants", line: `curl -o /dev/null SRV/a`, left: []string{"-o /dev/null"}},
	{what: "a header that is set by itself", line: `curl -H 'Content-Length: 1' -d x SRV/a`, left: []string{`-H "Content-Length": it is set by itself`}},
}
