package curl_test

import (
	"regexp"
	"strings"
	"testing"

	"agentlimit/jobspec"
	"agentlimit/jobspec/curl"
)

// FuzzConvert wants whatever is made of a text to be a job file with so many jobs, in
// which no credential stands.
func FuzzConvert(f *testing.F) {
	for _, line := range []string{
		`curl -X POST -H 'A: b' -d '{"a":1}' http://h/`, `curl -u a:hush-hush http://h/ --next -m x http://i/`,
		`curl -F 'a=@;type="x;y' -F b=c;filename= http://h/`, `curl "$A/$B" -H "C: $D" -G -d @- <<E` + "\nx$y\nE\n",
		"curl $'http://h/\\x00\\n' -H $'A: \\n'", "curl http://a:hush-hush@h/ -x u:hush-hush@p:1 --max-redirs 99 -L", `curl -b a=hush-hush "http://h/?token=hush-hush#x"`,
		"curl -H 'Authorization: hush-hush' -E c:hush-hush --key k http://h/", "curl /", "curl 0 -o0 -o0 0", "curl -H'Auth \x01:0' 0", `curl "0$A" $A`, "curl -X '\tä' http://h/ -o '' -T - -A '\x01'",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		made, err := curl.Convert(lines, func(path string) string { return path })
		if err != nil {
			return
		}
		load := func(value string) (*jobspec.Spec, error) {
			return jobspec.Load(jobspec.Options{
				Files: []string{"-"}, Format: "yaml", Stdin: strings.NewReader(made.Text),
				Env: func(name string) (string, bool) {
					if _, rest, _ := strings.Cut(made.Text, "public_env: ["); regexp.MustCompile(`^[^\]]*\b` + name + `\b`).MatchString(rest) {
						return value, true
					}
					return "secret-" + name, true
				},
			})
		}
		spec, err := load("example.com")
		if err != nil {
			spec, err = load("http://example.com")
		}
		if err != nil && strings.Contains(err.Error(), "its value would lead the URL elsewhere") {
			return // the variable is a whole URL in one place, and part of one in another
		}
		if err != nil {
			t.Fatalf("Convert(%q): %v\n%s", lines, err, made.Text)
		}
		defer spec.Close()
		if spec.Jobs != int64(made.Jobs) {
			t.Errorf("Convert(%q) = %d jobs, %d are in\n%s", lines, made.Jobs, spec.Jobs, made.Text)
		}
		if !strings.Contains(lines, "-d") && !strings.Contains(lines, "-F") && strings.Count(lines, "hush-hush") == 1 && strings.Contains(lines, ":hush-hush@") && strings.Contains(made.Text, "hush-hush") {
			t.Errorf("Convert(%q) holds a credential:\n%s", lines, made.Text)
		}
	})
}

const wrongForm = "-F: want a text or one file, and its type and filename at most: no job is made of this call of curl"

func asIs(path string) string { return path }

// TestConvert is about what no server sees.
func TestConvert(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string // in the file
		left string   // what is named
	}{
		{"curl -x proxy.example http://h/", []string{"proxy: http://proxy.example:1080\n"}, "-x: Proxy-Connection: Keep-Alive"},
		{"curl -x socks5://p -x u:hush-hush@q http://h/ http://i/", []string{"Accept: '*/*'\n\n"}, "-x: no proxy, or one with a user or a variable"},
		{"curl -x socks5://p -x '' http://h/ http://i/", []string{"Accept: '*/*'\n\n"}, "-x: no proxy, or one with a user or a variable"},
		{`curl -u a:b -u "c:$U" http://h/ http://i/`, []string{"Accept: '*/*'\n\n"}, "-u: a password that curl asks for, or a variable"},
		{"curl -H Host: http://h/", nil, `-H "Host": it is set by itself`},
		{"curl -T a -T b http://h/", nil, "-T: Expect: 100-continue|-T: Expect: 100-continue|-T twice: no job is made of this call of curl"},
		{"curl -T a http://h/ http://i/", []string{"jobs: []"}, "-T: Expect: 100-continue|-T beside several URLs, of which each has its own file, or none: no job is made of this call of curl"},
		{"curl -H 'Content-Type: x/y' -F a=b http://h/", []string{"jobs: []"}, "-F beside another Content-Type: no job is made of this call of curl"},
		{"curl -F f=@a,b http://h/", []string{"jobs: []"}, wrongForm}, {`curl -F 'f="a"b' http://h/`, []string{"jobs: []"}, wrongForm},
		{"curl --form-string a http://h/", []string{"jobs: []"}, "--form-string: want a name and a text: no job is made of this call of curl"},
		{"curl -F =b http://h/", []string{"jobs: []"}, wrongForm}, {"curl -F 'a=b;type=x' http://h/", []string{"jobs: []"}, wrongForm}, {"curl -F 'a=b;type=x/y;type=z/z' http://h/", []string{"jobs: []"}, wrongForm},
		{"curl --proxy socks5://p:9/ http://h/", []string{"proxy: socks5://p:9/\n"}, ""},
		{`curl -x "$PROXY" http://h/`, []string{"url: http://h/"}, "-x: no proxy, or one with a user or a variable"},
		{"curl -x u:hush-hush@p http://h/", []string{"url: http://h/"}, "-x: no proxy, or one with a user or a variable"},
		{"curl -x ftp://p:9 http://h/", nil, `http.proxy: want a URL that begins with http:// or https:// or socks5:// and a host (the value is not shown, it may hold secrets): no job is made of this call of curl`},
		{`curl -H "X-A: $A$B" "http://h/$A"`, []string{"#   A: a variable of the command lines\n#   B: a variable"}, ""},
		{"curl --frobnicate value http://h/", []string{"jobs: []"}, "--frobnicate is unknown: no job is made of this call of curl"},
		{"curl -K other.conf http://h/", []string{"url: http://h/"}, "-K"},
		{"curl --aws-sigv4 aws:amz -u id:hush-hush http://h/", []string{"jobs: []"}, "--aws-sigv4 has no place in a job: no job is made of this call of curl"},
		{"curl -L -X PUT -d a http://h/", []string{"follow_redirects: 50"}, "-X with -L: behind a redirect curl keeps the method and has no body; a job does as browsers do"},
		{"curl -H 'Trailer: x' http://h/", nil, `-H "Trailer": it is set by itself`},
		{"curl -H 'Idempotency-Key: a-1' http://h/", []string{"Idempotency-Key: a-1\n"}, ""},
		{"curl --oauth2-bearer hush-hush -u u:p http://h/", []string{"Authorization: Bearer ${env:"}, ""},
		{"curl 'http://h/?token\u2028jobs:\u0085x=hush-hush'", []string{"what stands behind token?jobs:?x= in the URL\n"}, ""},
		{`curl -u "joe:hush$U" http://h/`, []string{"url: http://h/"}, "-u: a password that curl asks for, or a variable"},
	} {
		made, err := curl.Convert(test.line, asIs)
		if err != nil {
			t.Errorf("%s: %v", test.line, err)
			continue
		}
		var left []string
		for _, note := range made.Left {
			left = append(left, note.Text)
		}
		if got := strings.Join(left, "|"); got != test.left {
			t.Errorf("%s: left out %q, want %q", test.line, got, test.left)
		}
		for _, want := range test.want {
			if !strings.Contains(made.Text, want) {
				t.Errorf("%s: want %q in\n%s", test.line, want, made.Text)
			}
		}
	}
}

// TestNoCredentialStays has what identifies the caller in all places, also beside a
// variable of the shell.
func TestNoCredentialStays(t *testing.T) {
	for _, line := range []string{
		`-H "Authorization: Token token=hush-hush, x=$U"`, `-b "sid=hush-hush; user=$U"`, `-H "X-Api-Key: hush-hush$U"`,
		`-H 'Fastly-Key: hush-hush'`, `-H 'X_API_KEY: hush-hush'`, `-H 'OK-ACCESS-PASSPHRASE: hush-hush'`, `-H 'X-CSRF: hush-hush'`, `-H 'CB-ACCESS-SIGN: hush-hush'`, `-e 'http://i/?token=hush-hush'`,
		`'http://h/?access_key=hush-hush'`, `'http://h/?appid=hush-hush'`, `'http://h/?code=hush-hush'`, `'http://h/?AWSAccessKeyId=hush-hush'`, `'http://h/?api%5Fkey=hush-hush'`, `'http://h/?subscription-key=hush-hush'`,
		`--oauth2-bearer "hush-hush$U"`, `-H 'X-Jwt: hush-hush'`, `-H 'X-Signature: hush-hush'`, `-H 'DD-APPLICATION-KEY: hush-hush'`,
		`-H 'X-Access: Bearer hush-hush'`, `'http://h/?token=hush-hush'"$U"`, `'http://h/?client_secret=hush-hush'`,
		`'http://h/?refresh_token=hush-hush'`, `'http://h/?pwd=hush-hush'`, `'http://h/?api-key=hush-hush'`, `'http://h/?X-Amz-Signature=hush-hush'`,
	} {
		made, err := curl.Convert("curl "+line+" http://h/\n", func(path string) string { return path })
		if err != nil || strings.Contains(made.Text, "hush-hush") || !strings.Contains(made.Text, "${env:") {
			t.Errorf("curl %s: %v\n%s", line, err, made.Text)
		}
	}
	made, err := curl.Convert(`curl -H "Authorization: Bearer $TOKEN" -b "sid=$SID" http://h/`, func(path string) string { return path })
	if err != nil || !strings.Contains(made.Text, "Bearer ${env:TOKEN}") || !strings.Contains(made.Text, "sid=${env:SID}") {
		t.Errorf("variables that have names lose them: %v\n%s", err, made.Text)
	}
}
