//go:build unix

package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentlimit/limits"
)

// TestTLS speaks to a server over TLS, whose certificate nobody vouches for.
func TestTLS(t *testing.T) {
	dir, port := t.TempDir(), strconv.Itoa(freePort(t))
	cert, key := certificate(t, dir)
	s := newServer(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	url := "rediss://127.0.0.1:" + port + "/?namespace=" + s.fresh()
	if _, err := Open(t.Context(), url, Options{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Open of a server with a certificate of its own making = %v", err)
	}
	r := mustOpen(t, url+"&skip_verify=true", usual)
	expect(t, "over TLS", granted, ask(t, r, claimOn(1, one, "host/h")))
}

// certificate writes one for 127.0.0.1, and its key.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: public}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestFailover has Sentinel put a replica in the place of a server that is killed. What
// is held stays held.
func TestFailover(t *testing.T) {
	s := newServer(t)
	replica := newServer(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.port))
	for !strings.Contains(replica.client.Info(t.Context(), "replication").Val(), "master_link_status:up") {
		<-time.After(10 * time.Millisecond) // it is on its way
	}
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor m 127.0.0.1 %d 1\nsentinel down-after-milliseconds m 500\nsentinel failover-timeout m 3000\n", s.port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := newServer(t, "sentinel", conf)
	url := "redis://" + sentinel.addr() + "?master_name=m&namespace=" + s.fresh()
	a, b := mustOpen(t, url, usual), mustOpen(t, url, usual)
	expect(t, "the first", granted, ask(t, a, claimOn(1, one, "host/h")))
	expect(t, "another, meanwhile", permit, ask(t, b, claimOn(1, one, "host/h")))
	s.kill()
	batch, reply := limits.Batch{Max: 1, Claims: []limits.Claim{claimOn(1, one, "host/h")}}, limits.Reply{}
	for start := time.Now(); b.Sync(t.Context(), &batch, &reply) != nil; <-time.After(poll) {
		if time.Since(start) > time.Minute {
			t.Fatal("no replica takes the place of the server")
		}
	}
	expect(t, "another, of the replica", limits.Permit, reply.Verdicts[0].Cause)
	for end := time.Now().Add(usual.learn + time.Second); time.Now().Before(end); <-time.After(poll) {
		expect(t, "another, when the holder has told of its call", permit, ask(t, b, claimOn(1, one, "host/h")))
	}
	for (a.Sync(t.Context(), &limits.Batch{Max: 1, Releases: []limits.ClaimID{1}}, &reply)) != nil {
		<-time.After(poll)
	}
	eventually(t, b, claimOn(1, one, "host/h"))
}

// freePort returns one that nobody listens on.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
