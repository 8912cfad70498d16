package jobspec

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzJSONNumber holds what is taken for a number to a JSON parser.
func FuzzJSONNumber(f *testing.F) {
	for _, s := range []string{"0", "-0", "01", "-", "", "1.", "1.0", ".5", "1e5", "1E+5", "1e-", "1e+-5", "0e0", "0x1", "1_0", "+1", "1 ", "Infinity", "12.50e10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		value := jsontext.Value(s)
		want := value.IsValid() && value.Kind() == '0' && s[0] != ' ' && s[len(s)-1] > ' ' && s[0] > ' '
		if got := jsonScalar.MatchString(s) && s != "null" && s != "true" && s != "false"; got != want {
			t.Errorf("jsonScalar matches %q as a number: %v, want %v", s, got, want)
		}
	})
}
