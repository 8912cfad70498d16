package cmd

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func TestPageDate(t *testing.T) {
	for _, test := range []struct{ what, epoch, want, err string }{
		{"of what was built, which a test does not know", "", "1970-01-01", ""},
		{"the start", "0", "1970-01-01", ""},
		{"the last second of a day", "1893542399", "2030-01-01", ""},
		{"a word", "now", "", `"now": want seconds since 1970`},
	} {
		got, err := pageDate(test.epoch)
		if err == nil && got.Format(time.DateOnly) != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: pageDate(%q) = %v, %v, want %q, %q", test.what, test.epoch, got, err, test.want, test.err)
		}
	}
	built := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.time", Value: "2031-02-03T04:05:06Z"}}}
	if got := changed(built); got.Format(time.DateOnly) != "2031-02-03" {
		t.Errorf("changed(%v) = %v", built.Settings, got)
	}
}
