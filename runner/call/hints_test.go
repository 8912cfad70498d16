package call

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// received is when the answers of these tests came: twenty seconds to nine.
var received = time.Date(2026, time.March, 1, 8, 59, 40, 0, time.UTC)

const forever = time.Duration(math.MaxInt64)

// fields reads header lines as they stand in an answer.
func fields(lines string) http.Header {
	h := make(http.Header)
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		h.Add(name, value)
	}
	return h
}

func TestReadHint(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		lines  string
		want   *Hint
	}{
		// Retry-After
		{"whole seconds are waited", 429, "Retry-After: 3", &Hint{"retry-after", "3", 3 * time.Second}},
		{"a 503 says the same", 503, "Retry-After: 3", &Hint{"retry-after", "3", 3 * time.Second}},
		{"a 403 with a hint is a limit", 403, "Retry-After: 3", &Hint{"retry-after", "3", 3 * time.Second}},
		{"a 403 without is none", 403, "Content-Type: application/json", nil},
		{"a 429 without hint has none", 429, "", nil},
		{"a 200 cannot ask for a pause", 200, "Retry-After: 3", nil},
		{"nor can a redirect", 301, "Retry-After: 3", nil},
		{"nor any other failure", 500, "Retry-After: 3\nRateLimit: a;r=0;t=3", nil},
		{"tenths are not cut off", 429, "Retry-After: 0.6", &Hint{"retry-after", "0.6", 600 * time.Millisecond}},
		{"more than one, with tenths", 429, "Retry-After: 1.5", &Hint{"retry-after", "1.5", 1500 * time.Millisecond}},
		{"a dot may lead", 429, "Retry-After: .5", &Hint{"retry-after", ".5", 500 * time.Millisecond}},
		{"a dot may end", 429, "Retry-After: 2.", &Hint{"retry-after", "2.", 2 * time.Second}},
		{"zeros in front mean nothing", 429, "Retry-After: 007", &Hint{"retry-after", "007", 7 * time.Second}},
		{"blanks around do not count", 429, "Retry-After: \t 2 ", &Hint{"retry-after", "2", 2 * time.Second}},
		{"nought is a hint of nought", 429, "Retry-After: 0", &Hint{"retry-after", "0", 0}},
		{"the longer of two lines counts", 429, "Retry-After: 1\nRetry-After: 4", &Hint{"retry-after", "4", 4 * time.Second}},
		{"also if it comes first", 429, "Retry-After: 4\nRetry-After: 1", &Hint{"retry-after", "4", 4 * time.Second}},
		{"a junk line spoils no other", 429, "Retry-After: soon\nRetry-After: 1", &Hint{"retry-after", "1", time.Second}},
		{"just below the longest wait is exact", 429, "Retry-After: 9223372036", &Hint{"retry-after", "9223372036", 9223372036 * time.Second}},
		{"more than a duration holds is the longest wait", 429, "Retry-After: 9223372040", &Hint{"retry-after", "9223372040", forever}},
		{"so is what would wrap round to a short one", 429, "Retry-After: 18446744074", &Hint{"retry-after", "18446744074", forever}},
		{"so is more than an integer holds", 429, "Retry-After: 99999999999999999999", &Hint{"retry-after", "99999999999999999999", forever}},
		{"so is that with decimals", 429, "Retry-After: 99999999999999999999.5", &Hint{"retry-after", "99999999999999999999.5", forever}},
		{"it is kept whole until secrets are taken out", 429, "Retry-After: " + strings.Repeat("9", 300), &Hint{"retry-after", strings.Repeat("9", 300), forever}},
		{"below nought is junk", 429, "Retry-After: -3", nil},
		{"a plus is junk", 429, "Retry-After: +3", nil},
		{"a word is junk", 429, "Retry-After: soon", nil},
		{"nothing is junk", 429, "Retry-After:", nil},
		{"blanks are junk", 429, "Retry-After:  ", nil},
		{"a lone dot is junk", 429, "Retry-After: .", nil},
		{"two dots are junk", 429, "Retry-After: 1.2.3", nil},
		{"NaN is junk", 429, "Retry-After: NaN", nil},
		{"Inf is junk", 429, "Retry-After: Inf", nil},
		{"an exponent is junk", 429, "Retry-After: 1e3", nil},
		{"a hexadecimal is junk", 429, "Retry-After: 0x10", nil},
		{"an underscore is junk", 429, "Retry-After: 1_000", nil},
		{"a comma is junk", 429, "Retry-After: 1,5", nil},
		{"a list is junk", 429, "Retry-After: 1, 4", nil},
		{"a unit is junk", 429, "Retry-After: 3s", nil},
		{"a compound duration is junk", 429, "Retry-After: 1m3", nil},
		{"digits of other scripts are junk", 429, "Retry-After: ٣", nil},

		// dates
		{"a date counts from the answer's own, not from our clock", 429,
			"Date: Sun, 01 Mar 2026 08:00:00 GMT\nRetry-After: Sun, 01 Mar 2026 08:00:05 GMT",
			&Hint{"retry-after", "Sun, 01 Mar 2026 08:00:05 GMT", 5 * time.Second}},
		{"without one it counts from when the answer came", 429,
			"Retry-After: Sun, 01 Mar 2026 09:00:00 GMT",
			&Hint{"retry-after", "Sun, 01 Mar 2026 09:00:00 GMT", 20 * time.Second}},
		{"so it does if the answer's own cannot be read", 429,
			"Date: today\nRetry-After: Sun, 01 Mar 2026 09:00:00 GMT",
			&Hint{"retry-after", "Sun, 01 Mar 2026 09:00:00 GMT", 20 * time.Second}},
		{"the form of RFC 850 is read", 429,
			"Retry-After: Sunday, 01-Mar-26 09:00:00 GMT",
			&Hint{"retry-after", "Sunday, 01-Mar-26 09:00:00 GMT", 20 * time.Second}},
		{"the form of asctime is read", 429,
			"Retry-After: Sun Mar  1 09:00:00 2026",
			&Hint{"retry-after", "Sun Mar  1 09:00:00 2026", 20 * time.Second}},
		{"the answer's own may have an old form", 429,
			"Date: Sun Mar  1 08:00:00 2026\nRetry-After: Sun, 01 Mar 2026 08:00:05 GMT",
			&Hint{"retry-after", "Sun, 01 Mar 2026 08:00:05 GMT", 5 * time.Second}},
		{"a date that is past is no wait", 429,
			"Retry-After: Sun, 01 Mar 2026 08:00:00 GMT",
			&Hint{"retry-after", "Sun, 01 Mar 2026 08:00:00 GMT", 0}},
		{"the epoch is past", 429,
			"Retry-After: Thu, 01 Jan 1970 00:00:00 GMT",
			&Hint{"retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", 0}},
		{"the last of dates is the longest wait", 429,
			"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT",
			&Hint{"retry-after", "Fri, 31 Dec 9999 23:59:59 GMT", forever}},
		{"a date and seconds are compared", 429,
			"Retry-After: 7\nRetry-After: Sun, 01 Mar 2026 09:00:00 GMT",
			&Hint{"retry-after", "Sun, 01 Mar 2026 09:00:00 GMT", 20 * time.Second}},
		{"a date that does not exist is junk", 429, "Retry-After: Sun, 31 Feb 2026 09:00:00 GMT", nil},
		{"a date of another standard is junk", 429, "Retry-After: 2026-03-01T09:00:00Z", nil},

		// Retry-After-Ms
		{"milliseconds are read", 429, "Retry-After-Ms: 250", &Hint{"retry-after-ms", "250", 250 * time.Millisecond}},
		{"in any case", 429, "retry-after-ms: 1500.5", &Hint{"retry-after-ms", "1500.5", 1500*time.Millisecond + 500*time.Microsecond}},
		{"too many are the longest wait", 503, "Retry-After-Ms: 9223372036855", &Hint{"retry-after-ms", "9223372036855", forever}},
		{"they are no date", 429, "Retry-After-Ms: Sun, 01 Mar 2026 09:00:00 GMT", nil},
		{"Retry-After wins over them", 429, "Retry-After-Ms: 250\nRetry-After: 1", &Hint{"retry-after", "1", time.Second}},
		{"also if it is shorter", 429, "Retry-After-Ms: 2500\nRetry-After: 0", &Hint{"retry-after", "0", 0}},
		{"but not if it is junk", 429, "Retry-After-Ms: 250\nRetry-After: -1", &Hint{"retry-after-ms", "250", 250 * time.Millisecond}},

		// RateLimit
		{"a quota that is used up says when it is renewed", 503, `RateLimit: "default";r=0;t=30`, &Hint{"ratelimit", `"default";r=0;t=30`, 30 * time.Second}},
		{"its name may be a token", 403, `RateLimit: default;r=0;t=30`, &Hint{"ratelimit", `default;r=0;t=30`, 30 * time.Second}},
		{"order and blanks do not matter", 403, `RateLimit: "default"; t=30; pk=:YQ==:; r=0`, &Hint{"ratelimit", `"default"; t=30; pk=:YQ==:; r=0`, 30 * time.Second}},
		{"what is left may be too little for a 429", 429, `RateLimit: "default";r=2;t=30`, &Hint{"ratelimit", `"default";r=2;t=30`, 30 * time.Second}},
		{"but explains no 403", 403, `RateLimit: "default";r=2;t=30`, nil},
		{"and no 503", 503, `RateLimit: "default";r=2;t=30`, nil},
		{"a day with much left does not count beside a used up minute", 429, `RateLimit: "day";r=900;t=40000, "minute";r=0;t=7`, &Hint{"ratelimit", `"day";r=900;t=40000, "minute";r=0;t=7`, 7 * time.Second}},
		{"several lines are one list", 429, "RateLimit: day;r=900;t=40000\nRateLimit:minute;r=0;t=7", &Hint{"ratelimit", "day;r=900;t=40000, minute;r=0;t=7", 7 * time.Second}},
		{"of two that are used up the longer counts", 429, `RateLimit: a;r=0;t=5, b;r=0;t=9, c;r=0;t=7`, &Hint{"ratelimit", `a;r=0;t=5, b;r=0;t=9, c;r=0;t=7`, 9 * time.Second}},
		{"no other speaks for one that does not say when", 429, `RateLimit: a;r=0, b;r=5;t=9`, nil},
		{"a name may hold what looks like a policy", 429, `RateLimit: "a;r=0;t=1, \"b";r=4;t=30`, &Hint{"ratelimit", `"a;r=0;t=1, \"b";r=4;t=30`, 30 * time.Second}},
		{"the last of a doubled parameter counts", 429, `RateLimit: a;r=0;t=1;t=2`, &Hint{"ratelimit", `a;r=0;t=1;t=2`, 2 * time.Second}},
		{"a malformed policy spoils no other", 429, `RateLimit: a;r=-1;t=5, ;;=, b;r=0;t=3`, &Hint{"ratelimit", `a;r=-1;t=5, ;;=, b;r=0;t=3`, 3 * time.Second}},
		{"a huge t is the longest wait", 429, `RateLimit: a;r=0;t=99999999999999999999`, &Hint{"ratelimit", `a;r=0;t=99999999999999999999`, forever}},
		{"bytes that are not UTF-8 are not kept", 429, "RateLimit: \"\xff\xfe\";r=0;t=3", &Hint{"ratelimit", `"?";r=0;t=3`, 3 * time.Second}},
		{"letters beyond ASCII are kept", 429, `RateLimit: "` + strings.Repeat("é", 150) + `";r=0;t=3`, &Hint{"ratelimit", `"` + strings.Repeat("é", 150) + `";r=0;t=3`, 3 * time.Second}},
		{"without r it is malformed", 429, `RateLimit: a;t=5`, nil},
		{"without t it says nothing", 429, `RateLimit: a;r=0`, nil},
		{"a quote without end is malformed", 429, `RateLimit: "a;r=0;t=5`, nil},
		{"a t below nought is malformed", 429, `RateLimit: a;r=0;t=-5`, nil},
		{"the list of another draft is not read", 429, `RateLimit: limit=10, remaining=0, reset=5`, nil},
		{"nothing at all is none", 429, `RateLimit:`, nil},
		{"Retry-After wins over it", 429, "RateLimit: a;r=0;t=60\nRetry-After: 1", &Hint{"retry-after", "1", time.Second}},
		{"but not if it is junk", 429, "RateLimit: a;r=0;t=60\nRetry-After: soon", &Hint{"ratelimit", "a;r=0;t=60", time.Minute}},

		// RateLimit-Reset
		{"a 429 needs no count of what is left", 429, "RateLimit-Reset: 12", &Hint{"ratelimit-reset", "12", 12 * time.Second}},
		{"a 403 needs a count of nought", 403, "RateLimit-Reset: 12\nRateLimit-Remaining: 0", &Hint{"ratelimit-reset", "12", 12 * time.Second}},
		{"another count does not do", 403, "RateLimit-Reset: 12\nRateLimit-Remaining: 1", nil},
		{"none does not do", 503, "RateLimit-Reset: 12", nil},
		{"the count of another field does not do", 503, "RateLimit-Reset: 12\nX-RateLimit-Remaining: 0", nil},
		{"a moment is told from a wait", 429, "RateLimit-Reset: 1772355600", &Hint{"ratelimit-reset", "1772355600", 20 * time.Second}},
		{"the newer field wins", 429, "RateLimit-Reset: 12\nRateLimit: a;r=0;t=3", &Hint{"ratelimit", "a;r=0;t=3", 3 * time.Second}},
		{"junk is none", 429, "RateLimit-Reset: 3;w=60", nil},

		// X-RateLimit-Reset
		{"a small number is a wait", 429, "X-RateLimit-Reset: 30\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "30", 30 * time.Second}},
		{"ten digits are an epoch second", 403, "X-RateLimit-Reset: 1772355600\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "1772355600", 20 * time.Second}},
		{"that may have decimals", 429, "X-RateLimit-Reset: 1772355600.25\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "1772355600.25", 20*time.Second + 250*time.Millisecond}},
		{"thirteen are an epoch millisecond", 429, "X-RateLimit-Reset: 1772355600500\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "1772355600500", 20*time.Second + 500*time.Millisecond}},
		{"zeros in front are no digits", 429, "X-RateLimit-Reset: 0000000030\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "0000000030", 30 * time.Second}},
		{"a moment counts from the answer's own date", 429, "Date: Sun, 01 Mar 2026 08:59:58 GMT\nX-RateLimit-Reset: 1772355600\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "1772355600", 2 * time.Second}},
		{"a moment that is past is no wait", 429, "X-RateLimit-Reset: 1772355500\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "1772355500", 0}},
		{"nine digits are still a wait", 429, "X-RateLimit-Reset: 999999999\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "999999999", 999999999 * time.Second}},
		{"the largest ten are far away", 429, "X-RateLimit-Reset: 9999999999\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "9999999999", time.Unix(0, 0).Add(forever).Sub(received)}},
		{"eleven are the longest wait", 429, "X-RateLimit-Reset: 10000000000\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "10000000000", forever}},
		{"twenty are the longest wait", 429, "X-RateLimit-Reset: 99999999999999999999\nX-RateLimit-Remaining: 0", &Hint{"x-ratelimit-reset", "99999999999999999999", forever}},
		{"nothing left may be a decimal", 429, "X-RateLimit-Reset: 372\nX-RateLimit-Remaining: 0.0", &Hint{"x-ratelimit-reset", "372", 372 * time.Second}},
		{"some left is no hint", 429, "X-RateLimit-Reset: 30\nX-RateLimit-Remaining: 5", nil},
		{"less than one left is not nought", 429, "X-RateLimit-Reset: 30\nX-RateLimit-Remaining: 0.5", nil},
		{"an unknown rest is no hint", 429, "X-RateLimit-Reset: 30", nil},
		{"a junk rest is no hint", 429, "X-RateLimit-Reset: 30\nX-RateLimit-Remaining: none", nil},
		{"a junk reset is no hint", 429, "X-RateLimit-Reset: 6m0s\nX-RateLimit-Remaining: 0", nil},
		{"ten letters are junk", 429, "X-RateLimit-Reset: abcdefghij\nX-RateLimit-Remaining: 0", nil},
		{"Retry-After wins", 429, "X-RateLimit-Reset: 30\nX-RateLimit-Remaining: 0\nRetry-After: 2", &Hint{"retry-after", "2", 2 * time.Second}},
		{"the standard's own field wins", 429, "X-RateLimit-Reset: 30\nX-RateLimit-Remaining: 0\nRateLimit-Reset: 3", &Hint{"ratelimit-reset", "3", 3 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readHint(tt.status, fields(tt.lines), received)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("readHint(%d, %q) (-want +got):\n%s", tt.status, tt.lines, diff)
			}
		})
	}
}

func TestReadFeedback(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       *Hint
	}{
		{"a line says how long", "retry-after: 5\n", &Hint{"feedback", "5", 5 * time.Second}},
		{"it needs no end", "retry-after: 5", &Hint{"feedback", "5", 5 * time.Second}},
		{"nor a blank", "retry-after:2.5\n", &Hint{"feedback", "2.5", 2500 * time.Millisecond}},
		{"it may have one too many", "  Retry-After : 5 \r\n", &Hint{"feedback", "5", 5 * time.Second}},
		{"nought is a hint of nought", "retry-after: 0\n", &Hint{"feedback", "0", 0}},
		{"other lines are left alone", "# limits\nleft: 0\n\nretry-after: 5\nretry-after-ms: 9000\n", &Hint{"feedback", "5", 5 * time.Second}},
		{"the longest of several counts", "retry-after: 5\nretry-after: 9\nretry-after: x\nretry-after: 7\n", &Hint{"feedback", "9", 9 * time.Second}},
		{"a huge one is the longest wait", "retry-after: 99999999999999999999\n", &Hint{"feedback", "99999999999999999999", forever}},
		{"an empty file says nothing", "", nil},
		{"nor does a number alone", "5\n", nil},
		{"nor a name alone", "retry-after\n", nil},
		{"nor a name without a number", "retry-after:\n", nil},
		{"below nought is junk", "retry-after: -5\n", nil},
		{"a date is junk", "retry-after: Sun, 01 Mar 2026 09:00:00 GMT\n", nil},
		{"bytes that are no text are junk", "\xff\xfe\x00retry-after: 5\x00", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readFeedback([]byte(tt.text))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("readFeedback(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// checkHint fails unless a record can hold the hint and a pause can be as long.
func checkHint(t *testing.T, got *Hint) {
	t.Helper()
	if got == nil {
		return
	}
	if got.Wait < 0 || received.Add(got.Wait).Before(received) {
		t.Errorf("Wait = %d, want none below 0", got.Wait)
	}
	if !utf8.ValidString(got.Raw) {
		t.Errorf("Raw = %q, want UTF-8", got.Raw)
	}
}

func FuzzReadHint(f *testing.F) {
	f.Add(429, "Retry-After: 3\nRetry-After: 0.6")
	f.Add(503, "Date: Sun, 01 Mar 2026 08:00:00 GMT\nRetry-After: Sunday, 01-Mar-26 09:00:00 GMT")
	f.Add(403, "Retry-After-Ms: 99999999999999999999")
	f.Add(429, "RateLimit: \"a;r=0\\\"\";r=0;t=30, b;r=5\nRateLimit: c;r=0;t=3")
	f.Add(429, "RateLimit-Reset: 1772355600\nRateLimit-Remaining: 0")
	f.Add(403, "X-RateLimit-Reset: 1772355600500\nX-RateLimit-Remaining: 0.0")
	f.Fuzz(func(t *testing.T, status int, lines string) {
		h := fields(lines)
		got := readHint(status, h, received)
		checkHint(t, got)
		if got == nil {
			return
		}
		h.Set(got.Source, got.Raw) // what the record keeps must mean the same
		if diff := cmp.Diff(got, readHint(status, h, received)); diff != "" {
			t.Errorf("readHint(%d, %q), then of what it kept (-first +second):\n%s", status, lines, diff)
		}
	})
}

func FuzzReadFeedback(f *testing.F) {
	f.Add([]byte("retry-after: 5\n"))
	f.Add([]byte("left: 0\r\nRetry-After : 99999999999999999999\r\n"))
	f.Add([]byte("retry-after: .5\nretry-after: -1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := readFeedback(text)
		checkHint(t, got)
		if got == nil {
			return
		}
		if diff := cmp.Diff(got, readFeedback([]byte("retry-after: "+got.Raw))); diff != "" {
			t.Errorf("readFeedback(%q), then of what it kept (-first +second):\n%s", text, diff)
		}
	})
}
