package cmd

import (
	"io"
	"strings"
	"testing"
)

func TestInitArguments(t *testing.T) {
	for _, test := range []struct{ what, args, want string }{
		{"the usual name", "", "jobs.yaml"},
		{"a name", "a.yaml", "a.yaml"},
		{"standard output", "-", "-"},
		{"two names", "a.yaml b.yaml", ""},
	} {
		var got string
		c := newInitCmd(func(o *initOptions) error { got = o.file; return nil })
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(io.Discard)
		c.SetArgs(strings.Fields(test.args))
		if err := c.Execute(); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: init %s: file %q, error %v, want %q", test.what, test.args, got, err, test.want)
		}
	}
}
