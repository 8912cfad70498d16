package jobspec

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSchemaHasTheParsersFields wants the schema and the tables of the parser to
// have the same keys, each with a description.
func TestSchemaHasTheParsersFields(t *testing.T) {
	const of, job = "/properties/", "/$defs/fields"
	for pointer, known := range map[string][]string{
		"":                                  keys(documentFields),
		of + "limits":                       keys(limitsFields),
		of + "limits" + of + "global":       keys(globalFields),
		"/$defs/limit":                      keys(entryFields),
		job:                                 keys(jobFields),
		job + of + "retry":                  keys(retryFields),
		job + of + "retry" + of + "backoff": keys(backoffFields),
		job + of + "expect":                 keys(expectFields),
		job + of + "output":                 keys(outputFields),
		job + of + "http":                   keys(httpFields),
		job + of + "http" + of + "tls":      keys(tlsFields),
		job + of + "exec":                   keys(execFields),
	} {
		if pointer == job && !slices.Contains(known, "for_each") {
			known = append(known, "for_each") // the parser is to have it
		}
		var got []string
		for key, field := range compile(t, pointer).Properties {
			if field.Description == "" {
				t.Errorf("%s: %s has no description", pointer, key)
			}
			got = append(got, key)
		}
		slices.Sort(got)
		slices.Sort(known)
		if diff := cmp.Diff(known, got); diff != "" {
			t.Errorf("%s: the keys (-parser +schema):\n%s", pointer, diff)
		}
	}
}
