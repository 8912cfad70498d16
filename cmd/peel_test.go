//go:build unix

package cmd_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// spelled are the ways in which a server or a command may give a secret back.
func spelled(s string) []string {
	js, _ := json.Marshal(s)
	inJSON := string(js[1 : len(js)-1])
	twice, _ := json.Marshal(inJSON)
	lower := regexp.MustCompile(`%[0-9A-F]{2}`).ReplaceAllStringFunc(url.QueryEscape(s), strings.ToLower)
	wrapped := base64.StdEncoding.EncodeToString([]byte(s))
	for at := 76; at < len(wrapped); at += 77 {
		wrapped = wrapped[:at] + "\n" + wrapped[at:]
	}
	all := []string{
		s, url.QueryEscape(s), url.PathEscape(s), (&url.URL{Path: s}).EscapedPath(), lower,
		strings.NewReplacer("%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*", "+", "%20").Replace(url.QueryEscape(s)), // as JavaScript
		strings.ReplaceAll(url.QueryEscape(s), "%2F", "/"),                                                                      // as Python
		inJSON, strings.ReplaceAll(inJSON, "/", `\/`), strconv.QuoteToASCII(s), string(twice),
		regexp.MustCompile(`["<>&'+]`).ReplaceAllStringFunc(strings.ReplaceAll(s, `\`, `\\`), func(c string) string { return `\u00` + strings.ToUpper(strconv.FormatInt(int64(c[0]), 16)) }), // as .NET
		strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(s)), "/", `\/`), wrapped,
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		for _, user := range []string{"", "u:", "me:"} {
			all = append(all, enc.EncodeToString([]byte(user+s)), url.QueryEscape(enc.EncodeToString([]byte(user+s))))
		}
	}
	return all
}

// peeled returns texts in which a secret of text stands as it is, whatever it was
// encoded with. It shares no code with what takes secrets out.
func peeled(text string) []string {
	all := []string{text}
	for range 3 { // JSON within JSON within JSON
		text = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)`).ReplaceAllStringFunc(text, func(s string) string {
			if n, err := strconv.ParseUint(s[min(2, len(s)):], 16, 32); err == nil && (s[1] == 'u' || s[1] == 'x') {
				return string(rune(n))
			}
			return strings.NewReplacer("n", "\n", "r", "\r", "t", "\t").Replace(s[1:])
		})
		all = append(all, text)
	}
	for _, text := range all[:4] {
		text = regexp.MustCompile(`%[0-9a-fA-F]{2}`).ReplaceAllStringFunc(text, func(s string) string {
			n, _ := strconv.ParseUint(s[1:], 16, 8)
			return string([]byte{byte(n)})
		})
		all = append(all, text, strings.ReplaceAll(text, "+", " "))
	}
	for _, text := range slices.Clone(all) {
		text = strings.NewReplacer("-", "+", "_", "/", "\n", "", `\n`, "").Replace(text)
		for _, run := range regexp.MustCompile(`[0-9A-Za-z+/]{8,}`).FindAllString(text, -1) {
			for skip := range 4 {
				rest := run[skip:]
				for cut := range 4 {
					plain, _ := base64.RawStdEncoding.DecodeString(rest[:max(0, len(rest)-cut)])
					all = append(all, string(plain))
				}
			}
		}
	}
	return all
}

// wantNoSecret looks for all that must not be in a text.
func wantNoSecret(t *testing.T, where, text string, secrets map[string]string) {
	t.Helper()
	for _, plain := range peeled(text) {
		for name, secret := range secrets {
			if at := strings.Index(plain, secret); at >= 0 {
				t.Errorf("%s shows the secret %q: …%s…", where, name, plain[max(0, at-200):min(len(plain), at+len(secret)+40)])
				return
			}
		}
	}
}
