package call

import (
	"cmp"
	"encoding/base64"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// longestEscape is how many bytes a byte takes at most in what a needle is found
// in: an escape of JSON within a query.
const longestEscape = 8

// A needle is a text that is searched for as it is and in whatever way it comes
// back escaped: for a query or a path, or within a JSON string, that in another too.
// Encoders do not agree on what to escape, and some leave out or add what others
// do not, so each character may be escaped or not.
type needle struct {
	text  string
	plain string // text without backslashes, of which a string may have any number
	wraps bool   // it is base64, and may have line breaks in it, which are blanks in headers
}

// span is a piece of a text, in bytes.
type span struct{ from, to int }

// lineWidth is from which length on base64 is broken into lines.
const lineWidth = 60

// needlesOf returns what a secret is found by: itself, and what stands for it
// within base64.
func needlesOf(secret string) []needle {
	needles := []needle{newNeedle(secret, false)}
	for before := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := base64Core(enc, secret, before)
			if text != "" && text != needles[len(needles)-1].text {
				needles = append(needles, newNeedle(text, len(text) >= lineWidth))
			}
		}
	}
	return needles
}

func newNeedle(text string, wraps bool) needle {
	return needle{text, strings.ReplaceAll(text, `\`, ""), wraps}
}

// base64Core returns the characters that secret alone decides when it is encoded
// behind other bytes (before, modulo 3), as the password in Basic credentials
// is. It is empty where too few are left to tell them from other text.
func base64Core(enc *base64.Encoding, secret string, before int) string {
	text := enc.EncodeToString(append(make([]byte, before), secret...))
	first := (before*8 + 5) / 6
	last := (before + len(secret)) * 8 / 6
	if last-first < 4 {
		return ""
	}
	return text[first:last]
}

// blanks are what base64 is broken by.
const blanks = "\r\n "

// escape is a place of a text where an escape may begin, or a line may break.
type escape struct {
	at     int
	behind int    // what is not behind this belongs to another escape
	breaks bool   // it is a break as it stands
	to     []byte // what the character there may be, or begin with; good for one round
}

// escapes returns the escapes of a text in their order; with breaks, line breaks too.
func escapes(s string, breaks bool) iter.Seq[escape] {
	what := `%\+`
	if breaks {
		what += blanks
	}
	return func(yield func(escape) bool) {
		var e escape
		for next := 0; ; {
			i := strings.IndexAny(s[next:], what)
			if i < 0 {
				return
			}
			e.at, e.to = next+i, e.to[:0]
			c := s[e.at]
			next, e.breaks = e.at+1, strings.IndexByte(blanks, c) >= 0
			switch c {
			case '+':
				e.to = append(e.to, ' ', '+')
			case '%', '\\':
				for _, query := range []bool{true, false} {
					literal := skip(s, e.at, query)
					if c, _ := unescape(s, e.at, query); c != "" {
						e.to = append(e.to, c[0], s[literal]) // it may be no escape
					}
					next = max(next, literal) // a run of backslashes is looked at once
				}
				slices.Sort(e.to)
				e.to = slices.Compact(e.to)
			default:
				e.to = append(e.to, c)
			}
			if !yield(e) {
				return
			}
			if !e.breaks {
				e.behind = e.at + 1
			}
		}
	}
}

// find adds where needles begin in s before limit.
func find(s string, limit int, needles []needle) (spans []span) {
	for _, n := range needles {
		for _, text := range slices.Compact([]string{n.text, n.plain}) {
			for from := 0; text != ""; from++ {
				i := strings.Index(s[from:], text)
				if i < 0 || from+i >= limit {
					break
				}
				from += i
				spans = append(spans, span{from, from + len(text)})
			}
		}
	}
	wraps := slices.ContainsFunc(needles, func(n needle) bool { return n.wraps })
	for e := range escapes(s, wraps) {
		if e.behind >= limit {
			break
		}
		for _, n := range needles {
			if n.wraps || !e.breaks {
				spans = n.around(spans, s, e, limit)
			}
		}
	}
	return spans
}

// around adds where n begins whose first escape is e: there, or as it is in front.
func (n needle) around(spans []span, s string, e escape, limit int) []span {
	for _, c := range e.to {
		end := e.at
		if n.wraps && end > e.behind && strings.IndexByte(blanks, c) >= 0 {
			end--
			c = s[end] // any character may come next
		}
		most := min(end-e.behind+1, len(n.plain))
		for k := -1; ; {
			next := strings.IndexByte(n.plain[k+1:most], c)
			if next < 0 {
				break
			}
			k += next + 1
			at := end - k
			if at >= limit || s[at:end] != n.plain[:k] {
				continue
			}
			if to := cmp.Or(n.reach(s, at, true), n.reach(s, at, false)); to > 0 {
				spans = append(spans, span{at, to})
			}
		}
	}
	return spans
}

// reach returns where n ends that begins at a place of s; 0: it does not. With query,
// % begins an escape; a text that was not escaped for a query may hold %25 as it is.
func (n needle) reach(s string, at int, query bool) int {
	for rest := n.plain; rest != ""; {
		c, end := unescape(s, at, query)
		if c == "" {
			return 0
		}
		after, found := strings.CutPrefix(rest, c)
		if !found { // it may be no escape
			end = skip(s, at, query) + 1
			after, found = strings.CutPrefix(rest, s[end-1:end])
		}
		if !found && rest[0] == ' ' && s[end-1] == '+' {
			after, found = rest[1:], true
		}
		if !found && n.wraps && rest != n.plain && strings.Contains("\r\n ", c) {
			_, end = unescape(s, at, query)
			after, found = rest, true
		}
		if !found {
			return 0
		}
		at, rest = end, after
	}
	return at
}

// unescape returns what stands at a place of s, and where that ends: a character but a
// backslash, or a byte of one. It is empty at the end.
func unescape(s string, at int, query bool) (string, int) {
	i := skip(s, at, query)
	switch {
	case i == len(s):
		return "", i
	case query && s[i] == '%' && i+3 <= len(s):
		if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
			return string([]byte{byte(n)}), i + 3
		}
	case i > at && strings.IndexByte("abfnrtuUvx", s[i]) >= 0:
		text := `\` + s[i:min(i+9, len(s))] // the backslash may have been escaped itself
		if c, wide, rest, err := strconv.UnquoteChar(text, 0); err == nil && wide {
			return string(c), i + len(text) - 1 - len(rest)
		} else if err == nil {
			return string([]byte{byte(c)}), i + len(text) - 1 - len(rest)
		}
		low := skip(s, min(i+5, len(s)), query)
		if r := utf16.DecodeRune(unit(s[i:]), unit(s[low:])); r != utf8.RuneError {
			return string(r), low + 5
		}
	}
	return s[i : i+1], i + 1
}

// unit returns what u0061 and the like at the start of s stand for in UTF-16; 0: it
// is none.
func unit(s string) rune {
	if len(s) < 5 || s[0] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(s[1:5], 16, 16)
	return rune(n)
}

// skip returns the first place from at on that holds no backslash, escaped or not.
func skip(s string, at int, query bool) int {
	for first := at; ; {
		switch rest := s[at:]; {
		case strings.HasPrefix(rest, `\`):
			at++
		case query && len(rest) >= 3 && strings.EqualFold(rest[:3], "%5c"):
			at += 3
		case at > first && len(rest) >= 5 && strings.EqualFold(rest[:5], "u005c"):
			at += 5
		default:
			return at
		}
	}
}
