package call

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentlimit/jobspec"
)

func serveTLS(t *testing.T, cfg *tls.Config) (url, caFile string) {
	return serveTLSHandler(t, cfg, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}
	})
}

func serveTLSHandler(t *testing.T, cfg *tls.Config, h http.HandlerFunc) (url, caFile string) {
	s := httptest.NewUnstartedServer(h)
	s.TLS, s.EnableHTTP2 = cfg, true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(caFile, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, caFile
}

func TestTLS(t *testing.T) {
	url, ca := serveTLS(t, nil)
	strict, strictCA := serveTLS(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	old, oldCA := serveTLS(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12})
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	empty := filepath.Join(t.TempDir(), "empty.pem")
	os.WriteFile(empty, nil, 0o600)
	with := func(url string, s jobspec.TLS) *jobspec.Job {
		return httpJob(url, func(j *jobspec.Job) { j.HTTP.TLS = s })
	}
	tests := []struct {
		name string
		job  *jobspec.Job
		kind Kind
		code string
	}{
		{"a certificate that nobody vouches for", with(url, jobspec.TLS{}), Broken, "tls"},
		{"an authority from a file", with(url, jobspec.TLS{CAFile: ca}), OK, ""},
		{"insecure accepts it", with(url, jobspec.TLS{Insecure: true}), OK, ""},
		{"another host's certificate", with(strings.Replace(url, "127.0.0.1", "localhost", 1), jobspec.TLS{CAFile: ca}), Broken, "tls"},
		{"a server that wants ours", with(strict, jobspec.TLS{CAFile: strictCA}), Broken, "tls"},
		{"an older server that wants ours", with(old, jobspec.TLS{CAFile: oldCA}), Broken, "tls"},
		{"a server that speaks no TLS", with(strings.Replace(plain.URL, "http:", "https:", 1), jobspec.TLS{}), Broken, "tls"},
		{"a missing file", with(url, jobspec.TLS{CAFile: "/no/such"}), Broken, "tls"},
		{"a file without certificates", with(url, jobspec.TLS{CAFile: empty}), Broken, "tls"},
	}
	c := newClient(t, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check(t, tt.job, c.Call(t.Context(), Attempt{Job: tt.job}), tt.kind, tt.code, false)
		})
	}
}
