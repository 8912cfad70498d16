package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentlimit/runner/results"
)

func TestJSON(t *testing.T) {
	const keys = `"keys": [
    {
      "key": "global",
      "run": "r",
      "concurrency": 5,
      "started": 1,
      "peak": 1
    },
    {
      "key": "host/api",
      "concurrency": 3,
      "rate": "20/s",
      "burst": 4,
      "started": 1,
      "peak": 1,
      "tightest": {
        "from": "2023-11-14T22:13:20.000000000Z",
        "to": "2023-11-14T22:13:20.000000000Z",
        "spent": 5,
        "allowed": 4
      }
    }
  ]`
	for _, test := range []struct {
		name    string
		records []results.Record
		want    string
	}{
		{"nothing", nil, `{
  "v": 1,
  "verdict": "kept",
  "records": 0,
  "attempts": 0,
  "keys": [],
  "broken": 0,
  "violations": []
}
`},
		{"a breach", []results.Record{try("a", 0, 9, cost(5))}, `{
  "v": 1,
  "verdict": "broken",
  "records": 1,
  "attempts": 1,
  ` + keys + `,
  "broken": 1,
  "violations": [
    {
      "kind": "rate",
      "key": "host/api",
      "job": "a",
      "at": "2023-11-14T22:13:20.000000000Z",
      "message": "host/api: 5 tokens spent within 0s where 4 may be, the last by job \"a\""
    }
  ]
}
`},
	} {
		found := Check(each(test.records), Spec{Limits: limitOf})
		if diff := cmp.Diff(test.want, found.JSON()); diff != "" {
			t.Errorf("JSON of %s (-want +got):\n%s", test.name, diff)
		}
	}
}
