package report

import (
	"cmp"
	"encoding/csv"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"agentlimit/runner/results"
)

// csvColumns are the first line of a CSV file.
var csvColumns = []string{
	"run", "id", "kind", "host", "account", "pools", "status", "attempt", "admitted_at", "started_at", "ended_at",
	"took_ms", "waited_ms", "global_ms", "host_ms", "account_ms", "pool_ms", "rate_ms", "pause_ms", "backoff_ms",
	"not_before_ms", "outcome", "http_status", "exit_code", "error", "reason", "retry_at",
}

// CSV writes a row for each attempt of records, and one for each record without an
// attempt, as RFC 4180 has them, while it reads. Its error is the first of records
// or of w.
func CSV(w io.Writer, records iter.Seq2[results.Record, error]) error {
	rows := csv.NewWriter(w)
	rows.UseCRLF = true
	rows.Write(csvColumns) // its errors stay until Flush
	for r, err := range records {
		if err != nil {
			return err
		}
		for i := range r.Attempts {
			rows.Write(csvRow(&r, i))
		}
		if len(r.Attempts) == 0 {
			rows.Write(csvRow(&r, -1))
		}
	}
	rows.Flush()
	return rows.Error()
}

// csvRow is one attempt of a record, from 0, or what is known without one.
func csvRow(r *results.Record, number int) []string {
	row := []string{r.Run, r.ID, r.Kind, r.Host, r.Account, strings.Join(r.Pools, " "), string(r.Status)}
	if number < 0 {
		row = append(row, "0", "", "", csvTime(r.EndedAt), "", "", "", "", "", "", "", "", "", "", "", "", "", "")
	} else {
		a := &r.Attempts[number]
		row[3] = cmp.Or(a.Host, r.Host)
		row = append(row, strconv.Itoa(number+1), csvTime(a.AdmittedAt), csvTime(a.StartedAt), csvTime(a.EndedAt),
			csvMS(a.EndedAt.Sub(a.StartedAt.Time).Seconds()*1e3), csvMS(a.Waited.Total))
		for _, ms := range a.Waited.Parts() {
			row = append(row, csvMS(*ms))
		}
		row = append(row, a.Outcome, csvNumber(a.Status), "", a.Error)
		if a.ExitCode != nil {
			row[len(row)-2] = strconv.Itoa(*a.ExitCode)
		}
	}
	row = append(row, Reason(r), "")
	if r.Deferred != nil {
		row[len(row)-1] = csvTime(r.Deferred.RetryAt)
	}
	return row
}

func csvMS(ms float64) string { return strconv.FormatFloat(ms, 'f', 3, 64) }

func csvNumber(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func csvTime(t results.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
