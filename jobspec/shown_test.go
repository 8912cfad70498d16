package jobspec_test

import (
	"strings"
	"testing"
)

// TestNamesShowNoSecret has what is shown of a job everywhere hold the value of a secret
// that any job of the run puts in.
func TestNamesShowNoSecret(t *testing.T) {
	const get, uses = `http: {url: "http://h/"}`, `- {http: {url: "http://h/", headers: {A: "${env:TOKEN}"}}}`
	for _, test := range []struct{ about, job, want string }{
		{"an id", "id: x-tok-1234567, " + get, "jobs[0].id: it holds"},
		{"a host, in another case", "host: TOK-1234567.example, " + get, "jobs[0].host: it holds"},
		{"a host of a URL", `http: {url: "http://tok-1234567/"}`, "jobs[0]: it holds"},
		{"an account", "account: tok-1234567, " + get, "jobs[0].account: it holds"},
		{"an account of a row", "for_each: {values: [tok-1234567]}, account: '${item:value}', " + get, "jobs[0].account: it holds"},
		{"a pool", "pools: [tok-1234567], " + get, "jobs[0].pools: it holds"},
		{"a label", "labels: {a: b, c: <tok-1234567>}, " + get, "jobs[0].labels: it holds"},
		{"a label's name", "labels: {tok-1234567: b}, " + get, "jobs[0].labels: it holds"},
		{"a part of it", "account: tok-123456, " + get, ""},
		{"what is sent", `http: {url: "http://h/tok-1234567", body: tok-1234567}`, ""},
	} {
		for _, jobs := range []string{uses + "\n- {" + test.job + "}\n", "- {" + test.job + "}\n" + uses + "\n"} {
			_, err := load(t, "jobs.yaml", "limits: {pools: {'*': {concurrency: 1}}}\njobs:\n"+jobs)
			if test.want == "" {
				if err != nil {
					t.Errorf("%s: Load of\n%s%v", test.about, jobs, err)
				}
				continue
			}
			want := strings.Replace(test.want, "[0]", "["+string('0'+rune(strings.Count(strings.Split(jobs, test.job)[0], "\n")))+"]", 1)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(strings.ToLower(err.Error()), "tok-") || !strings.Contains(err.Error(), "into public_env") {
				t.Errorf("%s: Load of\n%s%v, want %s", test.about, jobs, err, want)
			}
		}
	}
	const short = `jobs: [{account: pin, http: {url: "http://h/", headers: {A: "${env:SHORT}"}}}]`
	if _, err := load(t, "jobs.yaml", short); err != nil {
		t.Errorf("Load with a name that is a short secret: %v", err)
	}
}
