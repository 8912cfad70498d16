package results

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agentlimit/limits"
)

// The encoder is written out because every request of a run passes through it: it
// takes a fifth of the time that the package json does, and allocates nothing. What
// few records have, or such as took a whole process, is left to that package.

// appendRecord appends r as one line of a results file.
func appendRecord(b []byte, r *Record) []byte {
	b = appendText(b, recordStart+`"run":`, r.Run)
	b = appendText(b, `,"id":`, r.ID)
	b = appendText(b, `,"status":`, string(r.Status))
	b = appendSomeText(b, `,"kind":`, r.Kind)
	b = appendSomeText(b, `,"host":`, r.Host)
	b = appendSomeText(b, `,"account":`, r.Account)
	if len(r.Pools) > 0 {
		b = appendTexts(append(b, `,"pools":`...), r.Pools)
	}
	if len(r.Labels) > 0 {
		b = appendJSON(b, `,"labels":`, r.Labels)
	}
	b = appendSomeMoment(b, `,"deadline":`, r.Deadline)
	b = appendSomeText(b, `,"hash":`, r.Hash)
	b = appendSomeMoment(b, `,"queued_at":`, r.QueuedAt)
	b = appendMoment(b, `,"ended_at":`, r.EndedAt)
	for i := range r.Attempts {
		b = append(b, separator(i, `,"attempts":[`)...)
		b = appendAttempt(b, &r.Attempts[i])
	}
	if len(r.Attempts) > 0 {
		b = append(b, ']')
	}
	if r.HTTP != nil {
		b = appendHTTP(append(b, `,"http":`...), r.HTTP)
	}
	if r.Exec != nil {
		b = appendJSON(b, `,"exec":`, r.Exec)
	}
	if r.Deferred != nil {
		b = appendJSON(b, `,"deferred":`, r.Deferred)
	}
	if r.Error != nil {
		b = appendJSON(b, `,"error":`, r.Error)
	}
	return append(b, "}\n"...)
}

func appendAttempt(b []byte, a *Attempt) []byte {
	b = append(b, '{')
	if a.Host != "" {
		b = append(appendText(b, `"host":`, a.Host), ',')
	}
	b = appendMoment(b, `"admitted_at":`, a.AdmittedAt)
	b = appendMoment(b, `,"started_at":`, a.StartedAt)
	b = appendMoment(b, `,"ended_at":`, a.EndedAt)
	if len(a.Charge) > 0 {
		b = appendCharge(append(b, `,"charge":`...), a.Charge)
	}
	b = appendWaits(append(b, `,"waited":`...), &a.Waited)
	if a.Hint != nil {
		b = appendJSON(b, `,"hint":`, a.Hint)
	}
	b = appendText(b, `,"outcome":`, a.Outcome)
	if a.Status != 0 {
		b = appendInt(b, `,"status":`, int64(a.Status))
	}
	b = appendSomeText(b, `,"location":`, a.Location)
	if a.ExitCode != nil {
		b = appendInt(b, `,"exit_code":`, int64(*a.ExitCode))
	}
	b = appendSomeText(b, `,"error":`, a.Error)
	return append(b, '}')
}

func appendCharge(b []byte, charge map[limits.Key]int64) []byte {
	var room [8]limits.Key
	keys := slices.AppendSeq(room[:0], maps.Keys(charge))
	slices.SortFunc(keys, limits.Key.Compare)
	for i, key := range keys {
		b = append(b, separator(i, "{")...)
		b = appendString(b, key.String())
		b = appendInt(b, ":", charge[key])
	}
	return append(b, '}')
}

func appendWaits(b []byte, w *Waits) []byte {
	b = appendFloat(b, `{"total_ms":`, w.Total)
	b = appendFloat(b, `,"global_ms":`, w.Global)
	b = appendFloat(b, `,"host_ms":`, w.Host)
	b = appendFloat(b, `,"account_ms":`, w.Account)
	b = appendFloat(b, `,"pool_ms":`, w.Pool)
	b = appendFloat(b, `,"rate_ms":`, w.Rate)
	b = appendFloat(b, `,"pause_ms":`, w.Pause)
	b = appendFloat(b, `,"backoff_ms":`, w.Backoff)
	b = appendFloat(b, `,"not_before_ms":`, w.NotBefore)
	return append(b, '}')
}

func appendHTTP(b []byte, h *HTTP) []byte {
	b = appendInt(b, `{"status":`, int64(h.Status))
	b = appendText(b, `,"url":`, h.URL)
	if len(h.Headers) > 0 {
		b = appendHeaders(append(b, `,"headers":`...), h.Headers)
	}
	b = appendText(b, `,"body":`, h.Body)
	b = appendSomeText(b, `,"encoding":`, h.Encoding)
	b = appendInt(b, `,"body_bytes":`, h.BodyBytes)
	b = strconv.AppendBool(append(b, `,"truncated":`...), h.Truncated)
	if h.Redacted {
		b = append(b, `,"redacted":true`...)
	}
	b = appendSomeText(b, `,"saved":`, h.Saved)
	return append(b, '}')
}

func appendHeaders(b []byte, headers map[string][]string) []byte {
	var room [24]string
	names := slices.AppendSeq(room[:0], maps.Keys(headers))
	slices.Sort(names)
	for i, name := range names {
		b = append(b, separator(i, "{")...)
		b = append(appendString(b, name), ':')
		b = appendTexts(b, headers[name])
	}
	return append(b, '}')
}

// separator returns what stands before element i of a list that opens with open.
func separator(i int, open string) string {
	if i == 0 {
		return open
	}
	return ","
}

// appendString quotes s. Captured output that is not UTF-8 has been turned into
// base64 before; any other bad byte becomes U+FFFD, so that the line stays JSON.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func appendText(b []byte, name, s string) []byte {
	return appendString(append(b, name...), s)
}

func appendSomeText(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendText(b, name, s)
}

func appendTexts(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		b = appendText(b, separator(i, ""), s)
	}
	return append(b, ']')
}

func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

func appendFloat(b []byte, name string, f float64) []byte {
	return strconv.AppendFloat(append(b, name...), f, 'f', -1, 64)
}

func appendMoment(b []byte, name string, t Time) []byte {
	return appendTime(append(b, name...), t)
}

func appendSomeMoment(b []byte, name string, t Time) []byte {
	if t.IsZero() {
		return b
	}
	return appendMoment(b, name, t)
}

// appendTime writes all nine digits of t's second: a one in front keeps their
// leading zeros, and gives its place to the dot.
func appendTime(b []byte, t Time) []byte {
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339)
	dot := len(b) - len("Z")
	b = strconv.AppendInt(b[:dot], int64(1e9+t.Nanosecond()), 10)
	b[dot] = '.'
	return append(b, `Z"`...)
}

// appendJSON appends v, which holds only what JSON can say.
func appendJSON(b []byte, name string, v any) []byte {
	value, _ := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return append(append(b, name...), value...)
}
