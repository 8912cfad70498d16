package call

import (
	"net/http"
	"testing"
	"time"
)

// BenchmarkHTTP makes requests of a server on the loopback, 64 at once.
func BenchmarkHTTP(b *testing.B) {
	body := make([]byte, 1024)
	srv := serve(b, func(w http.ResponseWriter, r *http.Request) { w.Write(body) })
	c := newClient(b, Config{Concurrency: 64})
	job := httpJob(srv.URL + "/x?q=1")
	b.ReportAllocs()
	b.ResetTimer()
	parallel(64, b.N, func() {
		if out := c.Call(b.Context(), Attempt{Job: job}); out.Kind != OK {
			b.Error(out.Error)
		}
	})
}

// BenchmarkBareHTTP is the measure for it: net/http alone.
func BenchmarkBareHTTP(b *testing.B) {
	body := make([]byte, 1024)
	srv := serve(b, func(w http.ResponseWriter, r *http.Request) { w.Write(body) })
	t := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	defer t.CloseIdleConnections()
	b.ReportAllocs()
	b.ResetTimer()
	parallel(64, b.N, func() {
		req, _ := http.NewRequestWithContext(b.Context(), "GET", srv.URL+"/x?q=1", nil)
		resp, err := (&http.Client{Transport: t, Timeout: 10 * time.Second}).Do(req)
		if err != nil {
			b.Error(err)
			return
		}
		(&capture{keep: 64 << 10}).readAll(resp.Body)
		resp.Body.Close()
	})
}

// BenchmarkExec runs /bin/true, 8 at once.
func BenchmarkExec(b *testing.B) {
	c := newClient(b, Config{})
	job := execJob([]string{"/bin/true"})
	b.ReportAllocs()
	parallel(8, b.N, func() {
		if out := c.Call(b.Context(), Attempt{Job: job}); out.Kind != OK {
			b.Error(out.Error)
		}
	})
}
