package jobspec

import _ "embed"

// Schema is the JSON Schema of a job file, for editors and other tools; Load does
// not use it. What JSON Schema cannot say, such as that ids are unique, it leaves
// out. Its $defs/line is for a line of JSON Lines.
//
//go:embed schema.json
var Schema string
