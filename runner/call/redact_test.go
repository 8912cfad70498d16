package call

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"agentlimit/jobspec"

	"github.com/google/go-cmp/cmp"
)

func redactorOf(secret ...string) *redactor {
	return newRedactor(Attempt{Job: &jobspec.Job{Secrets: secret}}, newHider(nil))
}

func TestRedactSpellings(t *testing.T) {
	for _, secret := range []string{"plain-token", `k7$US ER/9+"<&é`, "line\nbreak\\x", `a%2Fb%25"c`, "a smile 😀"} {
		r := redactorOf(secret)
		html, _ := json.Marshal(secret)
		for name, text := range map[string]string{
			"as written":                         secret,
			"query":                              url.QueryEscape(secret),
			"path":                               url.PathEscape(secret),
			"JSON":                               string(html[1 : len(html)-1]),
			"JSON of PHP":                        strings.ReplaceAll(string(html[1:len(html)-1]), "/", `\/`),
			"as a segment":                       strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"),
			"as JavaScript's encodeURIComponent": strings.NewReplacer("+", "%20", "%27", "'", "%28", "(", "%29", ")").Replace(url.QueryEscape(secret)),
			"as Python's quote":                  strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(secret)),
			"as .NET's UrlEncode":                strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3C", "%3c", "%C3", "%c3", "%A9", "%a9", "%5C", "%5c").Replace(url.QueryEscape(secret)),
			"JSON of .NET":                       strings.NewReplacer(`\`, `\\`, "\n", `\n`, "/", `\/`, `"`, `\u0022`, "+", `\u002B`, "<", `\u003C`, "é", `\u00E9`).Replace(secret),
			"JSON within JSON":                   strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(html[1 : len(html)-1])),
			"JSON within a query":                url.QueryEscape(string(html[1 : len(html)-1])),
			"every byte for a query":             escaped(secret, 1, "%%%02x"),
			"every other byte, in upper case":    escaped(secret, 2, "%%%02X"),
			"every third byte":                   escaped(secret, 3, "%%%02x"),
			"every character of JSON":            escaped(secret, 1, `\u%04x`),
			"every other character of JSON":      escaped(secret, 2, `\u%04X`),
			"that within JSON":                   escaped(secret, 3, `\\u%04x`),
			"that within a query":                escaped(secret, 1, "%%5Cu%04x"),
		} {
			got, hit := r.body("a"+text+"b"+text, 1000)
			if got != "a***b***" || !hit {
				t.Errorf("%s: body(%q) = %q, %v; want %q", name, "a"+text+"b"+text, got, hit, "a***b***")
			}
		}
		for n := range 6 { // within other text that is encoded, such as Basic credentials
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				text := enc.EncodeToString([]byte("user:x"[:n] + secret))
				got, hit := r.body(text, 1000)
				if rest := strings.ReplaceAll(got, hidden, ""); !hit || len(rest) > 8+6 {
					t.Errorf("body(%q) = %q, %v; want it hidden", text, got, hit)
				}
			}
		}
	}
}

// escaped spells every nth unit of s by a format, and those that are always escaped:
// bytes for a query, what UTF-16 has for JSON.
func escaped(s string, n int, format string) string {
	units := []rune{}
	if strings.Contains(format, "u") {
		for _, unit := range utf16.Encode([]rune(s)) {
			units = append(units, rune(unit))
		}
	} else {
		for _, b := range []byte(s) {
			units = append(units, rune(b))
		}
	}
	var out strings.Builder
	for i, unit := range units {
		if i%n == 0 || strings.ContainsRune(`\"%`, unit) || unit < ' ' || unit >= 0x80 {
			fmt.Fprintf(&out, format, unit)
		} else {
			out.WriteRune(unit)
		}
	}
	return out.String()
}

// TestRedactBrokenBase64 has a long secret come back from base64(1), which breaks
// lines, plain and within JSON.
func TestRedactBrokenBase64(t *testing.T) {
	r := redactorOf(strings.Repeat("a long secret/", 12))
	for _, before := range []string{"", "u:", "user:"} {
		text := base64.StdEncoding.EncodeToString([]byte(before + strings.Repeat("a long secret/", 12)))
		for _, width := range []int{64, 76} {
			for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`, " "} {
				var lines strings.Builder
				for at := 0; at < len(text); at += width {
					lines.WriteString(text[at:min(at+width, len(text))] + end)
				}
				got, hit := r.body("<"+lines.String()+">", 10_000)
				if !hit || len(got) > len("<***>")+8+6+len(end) {
					t.Errorf("body of lines of %d behind %q, ended by %q = %q, %v; want it hidden", width, before, end, got, hit)
				}
			}
		}
	}
}

// FuzzRedact has any secret come back in any surroundings: it is hidden, as it is
// and in each escaping.
func FuzzRedact(f *testing.F) {
	for _, secret := range []string{"plain-token", `k7$US ER/9+"<&é`, "line\nbreak\\x", "😀 smile", `00000001\`, "%25%25%25%25", "    +    +", "${env:X}\u00e9\x00"} {
		for _, around := range []string{"", " ", `\`, "%", "%2", "0", `\u00`, secret[:4], "\xff", "=\n"} {
			f.Add(around, secret, around)
		}
	}
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		if letters := strings.ReplaceAll(secret, `\`, ""); len(letters) < minSearched || len(before+secret+after) > 1_000 {
			return
		}
		r := redactorOf(secret)
		forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.ToLower(url.QueryEscape(secret))}
		if utf8.ValidString(secret) {
			html, _ := json.Marshal(secret)
			forms = append(forms, string(html[1:len(html)-1]), strings.ReplaceAll(string(html[1:len(html)-1]), "/", `\/`))
			for n := 1; n < 4; n++ {
				forms = append(forms, escaped(secret, n, "%%%02x"), escaped(secret, n, `\u%04x`), escaped(secret, n, "%%5cu%04X"))
			}
		}
		if strings.ToLower(secret) != secret {
			forms = slices.Delete(forms, 3, 4) // it would be another's
		}
		for _, form := range forms {
			got, hit := r.body(before+form+after, 100_000)
			if !hit || strings.Contains(got, form) {
				t.Errorf("body(%q) = %q, %v; want %q hidden as %q", before+form+after, got, hit, secret, form)
			}
		}
		r.line(before + secret + after)
	})
}

// TestRedactIsQuick has texts that come near a secret again and again.
func TestRedactIsQuick(t *testing.T) {
	r := redactorOf("(((((((()", strings.Repeat(`\`, 9)+"(x)")
	for _, piece := range []string{`\`, "%5C", "%", "(", `(\`, "%28", `\u0028`} {
		text := strings.Repeat(piece, 256<<10/len(piece))
		began := time.Now()
		if got, hit := r.body(text, len(text)); hit || got != text {
			t.Errorf("body of %q again and again = %.50q, %v", piece, got, hit)
		}
		if took := time.Since(began); took > 10*time.Second { // it would be minutes
			t.Errorf("body of 256 KiB of %q took %v", piece, took)
		}
	}
}

func TestRedactCut(t *testing.T) {
	tests := []struct {
		name, text string
		limit      int
		want       string
		hit        bool
	}{
		{"nothing to hide", "some text", 100, "some text", false},
		{"nothing to hide, cut", "some text", 4, "some", false},
		{"a secret at the edge leaves no half", "abc SECRET-ONE", 8, "abc ***", true},
		{"a secret behind the edge does not count", "abcdefgh SECRET-ONE", 8, "abcdefgh", false},
		{"shorter text does not draw a half in", "SECRET-ONE 56 SECRET-ONE", 20, "*** 56 ***", true},
		{"overlapping secrets are one", "-SECRET-ONE-SIDED-", 100, "-***-", true},
		{"a secret and its beginning", "SECRET-ONE SECRET-TWO-LONGER", 100, "*** ***", true},
		{"a short value is not searched for", "pin 1234", 100, "pin 1234", false},
	}
	r := redactorOf("SECRET-ONE", "ONE-SIDED", "SECRET-TWO", "SECRET-TWO-LONGER", "1234")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, hit := r.body(tt.text, tt.limit)
			if got != tt.want || hit != tt.hit {
				t.Errorf("body(%q, %d) = %q, %v; want %q, %v", tt.text, tt.limit, got, hit, tt.want, tt.hit)
			}
		})
	}
}

func TestRedactLine(t *testing.T) {
	r := newRedactor(Attempt{Job: &jobspec.Job{Secrets: []string{"1234"}}}, newHider([]string{"code"}))
	tests := []struct{ in, want string }{
		{"pin 1234", "pin ***"},
		{`Get "http://u:PW1@h/x?api_key=KEY2&a=b": refused`, `Get "http://***@h/x?api_key=***&a=b": refused`},
		{"/next?a=1&Token=TOK5#x", "/next?a=1&Token=***#x"},
		{"cb#access_token=T&code=C", "cb#access_token=***&code=***"},
		{"a key=value pair and monkey?donkey=1", "a key=value pair and monkey?donkey=1"},
		{"mail to a@b.example", "mail to a@b.example"},
		{"http://u:p@h1/ and https://h2/@x and ftp://u:q@r@h3", "http://***@h1/ and https://h2/@x and ftp://***@h3"},
		{"?key=&sig=x&amp;token=y 'b?secret=z'", "?key=***&sig=***&amp;token=*** 'b?secret=***'"},
	}
	for _, tt := range tests {
		if got := r.line(tt.in); got != tt.want {
			t.Errorf("line(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestRedactShortURLSecrets(t *testing.T) {
	for _, test := range []struct{ about, url, line, want string }{
		{"a short password garbles nothing", "http://p:h@h/api", "GET http://p:h@h/api", "GET http://***@h/api"},
		{"nor does a short query value", "http://h/api?key=h", "GET http://h/api?key=h", "GET http://h/api?key=***"},
		{"seven bytes are short", "http://u:seven-7@h/", "seven-7 u:seven-7", "seven-7 u:seven-7"},
		{"eight are not", "http://u:eight--8@h/?sig=value--8", "eight--8 value--8", "*** ***"},
	} {
		r := newRedactor(Attempt{Job: httpJob(test.url)}, newHider(nil))
		if got := r.line(test.line); got != test.want {
			t.Errorf("%s: line(%q) for a job of %s = %q, want %q", test.about, test.line, test.url, got, test.want)
		}
	}
}

func TestRedactHTTP(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangup":
			hangUp(w, "")
		case "/moved":
			http.Redirect(w, r, "/next?token=TOK5", http.StatusFound)
		case "/echo":
			w.Header().Set("X-Echo", r.Header.Get("X-Pin"))
			w.Header().Set("Set-Cookie", "id=5")
			w.Header().Set("Location", "https://a:b@h/?sig=p1n7&x=y")
			w.Header().Set("X-Next", "https://a:b@h/?sig=5&x=y")
			w.Header().Set("Date", "")
			_, password, _ := r.BasicAuth()
			fmt.Fprintf(w, "%s %s %s", r.URL.RawQuery, password, r.Header.Get("Authorization"))
		}
	})
	at := strings.Replace(srv.URL, "http://", "http://u:PASSWORD-3@", 1)
	tests := []struct {
		name string
		job  *jobspec.Job
		not  []string
	}{
		{"a refused connection", httpJob("http://u:PW1@" + closedAddress(t) + "/x?api_key=KEY2"), []string{"PW1", "KEY2"}},
		{"a bad port", httpJob("http://u:PW3@127.0.0.1:9o01/"), []string{"PW3", "9o01"}},
		{"a bad port without a host", httpJob("http://u:PW3"), []string{"PW3"}},
		{"a server that hangs up", httpJob(srv.URL+"/hangup", header("Authorization", "Bearer TOK4"), secrets("TOK4")), []string{"TOK4"}},
		{"a redirect with a token", httpJob(srv.URL + "/moved"), []string{"TOK5"}},
		{"a bad header", httpJob(srv.URL+"/", header("X-A", "TOK4\n"), secrets("TOK4\n")), []string{"TOK4"}},
		{"an echo", httpJob(at+"/echo?api_key=KEY-NUMBER-2&q=1", header("X-Pin", "p1n7"), secrets("p1n7")),
			[]string{"PASSWORD-3", base64.StdEncoding.EncodeToString([]byte("PASSWORD"))[:8], "KEY-NUMBER-2", "p1n7", "id=5"}},
	}
	c := newClient(t, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := c.Call(t.Context(), Attempt{Job: tt.job})
			text, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range tt.not {
				if strings.Contains(string(text), secret) {
					t.Errorf("the outcome shows %q: %s", secret, text)
				}
			}
		})
	}
	out := c.Call(t.Context(), Attempt{Job: tests[len(tests)-1].job})
	want := map[string][]string{
		"X-Next": {"https://***@h/?sig=***&x=y"}, "Date": {""},
		"Content-Length": out.HTTP.Headers["Content-Length"], "Content-Type": {"text/plain; charset=utf-8"},
	}
	if diff := cmp.Diff(want, out.HTTP.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if !out.HTTP.Redacted || out.HTTP.URL != srv.URL+"/echo?api_key=***&q=1" {
		t.Errorf("redacted %v, URL %q", out.HTTP.Redacted, out.HTTP.URL)
	}
}
