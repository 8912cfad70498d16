package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestPage(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "Does it"}
	c := &cobra.Command{
		Use: "do-it FILE", Short: "Do it", Run: func(*cobra.Command, []string) {},
		Long:    "'tis done.\n.hidden files too\n\nA back\\slash, a-hyphen.",
		Example: "  tool do-it -v x",
	}
	root.AddCommand(c)
	c.Flags().StringP("output", "o", "out", "the `FILE`\nto write")
	c.Flags().Var(wordFlag(new("a"), "a", "b"), "kind", "a or b")
	c.Flags().Bool("all", false, "do all")
	want := `.TH TOOL\-DO\-IT 1 "2030-01-02" agentlimit
.SH NAME
tool\-do\-it \- Do it
.SH SYNOPSIS
tool do\-it FILE [flags]
.SH DESCRIPTION
\&'tis done.
\&.hidden files too
.PP
A back\eslash, a\-hyphen.
.SH OPTIONS
.TP
\fB\-\-all\fR
do all
.TP
\fB\-h, \-\-help\fR
help for do\-it
.TP
\fB\-\-kind\fR \fIWORD\fR
a or b (default a)
.TP
\fB\-o, \-\-output\fR \fIFILE\fR
the FILE to write (default out)
.SH EXAMPLES
.nf
  tool do\-it \-v x
.fi
`
	if diff := cmp.Diff(want, page(c, "2030-01-02")); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if got := page(root, ""); !strings.Contains(got, ".TH TOOL 1 \"\" ") || !strings.Contains(got, "\ntool COMMAND\n") || !strings.Contains(got, ".SH COMMANDS\n.TP\n\\fBdo\\-it\\fR\nDo it\n") {
		t.Errorf("the page of the root:\n%s", got)
	}
}

func TestPageDate(t *testing.T) {
	for _, test := range []struct{ what, epoch, want, err string }{
		{"no date is better than a new one with each build", "", "", ""},
		{"the start", "0", "1970-01-01", ""},
		{"the last second of a day", "1893542399", "2030-01-01", ""},
		{"a word", "now", "", `"now": want seconds since 1970`},
	} {
		got, err := pageDate(test.epoch)
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: pageDate(%q) = %q, %v, want %q, %q", test.what, test.epoch, got, err, test.want, test.err)
		}
	}
}
