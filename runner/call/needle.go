package call

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longestEscape is how many bytes a byte takes at most in what a needle is found
// in: an escape of JSON.
const longestEscape = 6

// A needle is a text that is searched for as it is and in whatever way it comes
// back escaped: for a query or a path, or within a JSON string, that in another too.
// Encoders do not agree on what to escape, and some leave out or add what others
// do not, so each character may be escaped or not.
type needle struct {
	text   string
	plain  string // text without backslashes, of which a string may have any number
	starts string // the characters that it may begin with, escaped; empty: it is never escaped
	wraps  bool   // it is base64, and may have line breaks in it, which are blanks in headers
}

// span is a piece of a text, in bytes.
type span struct{ from, to int }

// unescaped are the characters that nobody escapes.
const unescaped = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

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
	n := needle{text: text, wraps: wraps, plain: strings.ReplaceAll(text, `\`, "")}
	if n.plain != "" && (wraps || strings.Trim(text, unescaped) != "") {
		_, size := utf8.DecodeRuneInString(n.plain)
		n.starts = n.plain[:size]
		if !strings.Contains(unescaped, n.starts) {
			n.starts += `%\`
		}
		if n.plain[0] == ' ' {
			n.starts += "+"
		}
	}
	return n
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

// find adds where n begins in s before limit.
func (n needle) find(spans []span, s string, limit int) []span {
	for from := 0; ; from++ {
		i := strings.Index(s[from:], n.text)
		if i < 0 || from+i >= limit {
			break
		}
		from += i
		spans = append(spans, span{from, from + len(n.text)})
	}
	if n.starts == "" || !strings.ContainsAny(s, "%\\+\n ") {
		return spans
	}
	for at := 0; ; at++ {
		i := strings.IndexAny(s[at:], n.starts)
		if i < 0 || at+i >= limit {
			return spans
		}
		at += i
		if end := cmp.Or(n.reach(s, at, true), n.reach(s, at, false)); end > 0 {
			spans = append(spans, span{at, end})
		}
		at = max(at, skip(s, at, true)-1) // a run of backslashes is looked at once
	}
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

// unescape returns what stands at a place of s, and where that ends: a character,
// or a byte of one. It is empty at the end.
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
	}
	return s[i : i+1], i + 1
}

// skip returns the first place from at on that holds no backslash, escaped or not.
func skip(s string, at int, query bool) int {
	for {
		n := 1
		if rest := s[at:]; query && (strings.HasPrefix(rest, "%5C") || strings.HasPrefix(rest, "%5c")) {
			n = 3
		} else if !strings.HasPrefix(rest, `\`) {
			return at
		}
		at += n
	}
}
