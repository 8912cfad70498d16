package curl

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// command is one call of curl.
type command struct {
	line  int
	words []string // behind its name
	stdin *string  // of a here-document; nil: none
}

// mark stands at both ends of a variable's name in a word. No word that was typed has
// it.
const mark = "\x00"

// variable matches a variable in a word, and has its name.
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
		if strings.Trim(r.Word.Lit(), `\`) == r.Word.Lit() && r.Word.Lit() != "" {
			text, err = wordText(r.Hdoc.Parts, "\\$`")
		}
		if err != nil {
			p.leave(r, "a here-document: %v", err)
			return
		}
		c.stdin = &text
	}
	for _, w := range call.Args[1:] {
		syntax.SplitBraces(w) // so that they are seen
		text, err := wordText(w.Parts, "")
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

// wordText returns what a shell makes of a word, with variables marked. A backslash
// quotes what is special; if nothing is named that is everything.
func wordText(parts []syntax.WordPart, special string) (string, error) {
	var b strings.Builder
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if special == "" && i == 0 && strings.HasPrefix(part.Value, "~") {
				return "", errors.New("~ needs a shell")
			}
			b.WriteString(unescape(part.Value, special))
		case *syntax.SglQuoted:
			text := part.Value
			if part.Dollar {
				if strings.Contains(text, `\c`) {
					return "", errors.New(`\c in $'…'`)
				}
				text, _, _ = expand.Format(nil, text, nil)
				text, _, _ = strings.Cut(text, mark)
			}
			b.WriteString(text)
		case *syntax.DblQuoted:
			text, err := wordText(part.Parts, "\"\\$`")
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		case *syntax.ParamExp:
			name := part.Param.Value
			if text := source(part); text != "$"+name && text != "${"+name+"}" || !variable.MatchString(mark+name+mark) || '0' <= name[0] && name[0] <= '9' {
				return "", errors.New("${…} needs a shell")
			}
			if strings.HasSuffix(b.String(), "$") {
				return "", fmt.Errorf("a $ in front of $%s", name)
			}
			b.WriteString(mark + name + mark)
		case *syntax.BraceExp:
			return "", errors.New("{…} without quotes needs a shell")
		default:
			return "", errors.New("$(…) or the like needs a shell")
		}
	}
	return b.String(), nil
}

// source spells a part as it was typed.
func source(n syntax.Node) string {
	var b bytes.Buffer
	syntax.NewPrinter().Print(&b, &syntax.Word{Parts: []syntax.WordPart{n.(syntax.WordPart)}})
	return b.String()
}

// unescape takes away the backslashes that quote what follows.
func unescape(s, special string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (special == "" || strings.IndexByte(special, s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
