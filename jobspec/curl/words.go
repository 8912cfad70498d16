package curl

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// command is one call of curl.
type command struct {
	line  int
	words []string // behind its name
	stdin *string  // of a here-document; nil: none
}

// mark stands at both ends of a variable's name in a text: two characters that Unicode
// keeps free. A text that has it otherwise is refused.
const mark = "\ufdd0\ufdef"

var errMark = errors.New("the characters U+FDD0 and U+FDEF, which Unicode keeps free")

// variable matches a variable in a text, and has its name.
var variable = regexp.MustCompile(mark + `(\w+)` + mark)

// parse finds the calls of curl, and what stands beside them.
func parse(lines string) (commands []command, left []Note, err error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(lines), "")
	if err != nil {
		return nil, nil, fmt.Errorf("read command lines: line %w", err)
	}
	p := &shell{}
	for _, s := range file.Stmts {
		p.statement(s)
	}
	return p.commands, p.left, nil
}

type shell struct {
	commands []command
	left     []Note
}

func (p *shell) leave(n syntax.Node, format string, args ...any) {
	p.left = append(p.left, Note{int(n.Pos().Line()), fmt.Sprintf(format, args...)})
}

// show spells a part of the lines in messages, but for its arguments, which may be
// secrets.
func show(n syntax.Node) string {
	var b bytes.Buffer
	syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n) // to memory
	first, _, _ := strings.Cut(strings.TrimSpace(b.String()), " ")
	name, _, _ := strings.Cut(first, "=")
	return name
}

func (p *shell) statement(s *syntax.Stmt) {
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		p.statement(c.X)
		p.statement(c.Y)
		return
	case *syntax.CallExpr:
		if len(c.Args) > 0 && path.Base(c.Args[0].Lit()) == "curl" {
			p.call(s, c)
			return
		}
	}
	p.leave(s, "%q: no call of curl", show(s))
}

func (p *shell) call(s *syntax.Stmt, call *syntax.CallExpr) {
	c := command{line: int(call.Args[0].Pos().Line())}
	for _, a := range call.Assigns {
		p.leave(a, "%q: a variable of the shell", show(a))
	}
	for _, r := range s.Redirs {
		if r.Hdoc == nil || r.Op != syntax.Hdoc {
			p.leave(r, "%q: a file of the shell", r.Op)
			continue
		}
		text, err := r.Hdoc.Lit(), error(nil)
		if end := r.Word.Lit(); end != "" && !strings.Contains(end, `\`) { // it is without quotes
			text, err = textOf(r.Hdoc, expand.Document)
		}
		if err != nil {
			p.leave(r, "a here-document: %v", err)
			return
		}
		c.stdin = &text
	}
	for _, w := range call.Args[1:] {
		text, err := textOf(w, wholeWord)
		if err != nil {
			p.leave(w, "%v: no job is made of this call of curl", err)
			return
		}
		c.words = append(c.words, text)
	}
	if len(c.words) == 0 {
		p.leave(call, "curl without a URL")
		return
	}
	p.commands = append(p.commands, c)
}

func wholeWord(shell *expand.Config, w *syntax.Word) (string, error) {
	words, err := expand.Fields(shell, w)
	if err == nil && len(words) != 1 {
		return "", errors.New("{…} without quotes needs a shell")
	}
	return strings.Join(words, ""), err
}

// textOf returns what a shell makes of a word, with variables marked.
func textOf(w *syntax.Word, read func(*expand.Config, *syntax.Word) (string, error)) (text string, err error) {
	variables := 0
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob:
			err = errors.New("$(…) or the like needs a shell")
		case *syntax.SglQuoted:
			if n.Dollar && strings.Contains(n.Value, `\c`) {
				err = errors.New(`\c in $'…'`)
			}
		case *syntax.ParamExp:
			if variables++; !plainVariable.MatchString(show(n)) || n.Param.Value == "IFS" {
				err = errors.New("${…} needs a shell")
			}
		}
		return err == nil
	})
	if first, is := w.Parts[0].(*syntax.Lit); is && strings.HasPrefix(first.Value, "~") {
		err = errors.New("~ needs a shell")
	}
	if err != nil {
		return "", err
	}
	text, err = read(&expand.Config{Env: expand.FuncEnviron(func(name string) string {
		if name == "IFS" { // by which words would be split
			return ""
		}
		return mark + name + mark
	})}, w)
	switch {
	case err != nil:
		return "", err
	case strings.Count(text, mark) != 2*variables:
		return "", errMark
	case !utf8.ValidString(text):
		return "", errors.New("bytes that are not UTF-8")
	}
	return text, nil
}

// plainVariable matches what is put in by name alone.
var plainVariable = regexp.MustCompile(`^\$([A-Za-z_]\w*|\{[A-Za-z_]\w*\})$`)
