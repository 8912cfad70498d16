package report

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"

	"agentlimit/limits"
	"agentlimit/runner/results"
)

// batchLine is a line of a batch's output: either an answer of whatever status, or an
// error, or both if an answer is not what it should be.
type batchLine struct {
	ID       string       `json:"id"`
	CustomID string       `json:"custom_id"`
	Response *batchAnswer `json:"response"`
	Error    *batchError  `json:"error"`
}

type batchAnswer struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"` // as it came; a text if it is no JSON
}

type batchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Batch writes a line for each request by its newest record, as OpenAI's batches have
// them. The records are read twice, so that their bodies need not be kept: again has
// the same and may have more, and its errors are passed over.
func Batch(w io.Writer, records, again iter.Seq2[results.Record, error]) error {
	newest := make(map[string]limits.Time) // by id, when it ended
	for r, err := range records {
		if err != nil {
			return err
		}
		newest[r.ID] = max(newest[r.ID], r.EndedAt.Limits())
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for r, err := range again {
		if ended, known := newest[r.ID]; err != nil || !known || r.EndedAt.Limits() != ended {
			continue
		}
		delete(newest, r.ID)
		if r.Kind == "exec" {
			continue
		}
		if err := lines.Encode(batchLineOf(&r)); err != nil {
			return err
		}
	}
	return nil
}

func batchLineOf(r *results.Record) *batchLine {
	sum := sha256.Sum256([]byte(r.Run + " " + r.ID))
	line := &batchLine{ID: fmt.Sprintf("batch_req_%x", sum[:12]), CustomID: r.ID}
	if h := r.HTTP; h != nil && r.Deferred == nil {
		line.Response = &batchAnswer{h.Status, http.Header(h.Headers).Get("X-Request-Id"), json.RawMessage(h.Body)}
		if h.Encoding != "" || !json.Valid(line.Response.Body) {
			line.Response.Body, _ = json.Marshal(h.Body) // a text
		}
		if h.Truncated {
			line.Error = &batchError{"truncated", fmt.Sprintf("%d bytes were kept of a body of %d: output.inline says how many", len(h.Body), h.BodyBytes)}
		}
	}
	switch {
	case r.Deferred != nil:
		line.Error = &batchError{"deferred", r.Deferred.Reason}
	case r.Error != nil && (line.Response == nil || r.Error.Kind != "status"):
		line.Error = &batchError{r.Error.Kind, r.Error.Message}
	}
	return line
}
