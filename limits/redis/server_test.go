//go:build unix

package redis

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"agentlimit/limits"
)

// server is a redis-server of a test's own.
type server struct {
	t       testing.TB
	dir     string
	port    int
	options []string
	cmd     *exec.Cmd
	client  *redis.Client
}

// newServer starts one on a free port, with nothing in it.
func newServer(t testing.TB, options ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server on the PATH: apt-get install redis-server")
	}
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), options: options}
	s.client = redis.NewClient(&redis.Options{Addr: s.addr()})
	s.start()
	t.Cleanup(func() {
		s.kill()
		_ = s.client.Close()
	})
	return s
}

func (s *server) addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// url names a namespace on the server.
func (s *server) url(namespace string) string {
	return "redis://" + s.addr() + "/?namespace=" + namespace
}

func (s *server) start() {
	s.t.Helper()
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir}
	if len(s.options) > 0 && s.options[0] == "sentinel" {
		args = append([]string{s.options[1], "--sentinel"}, args...)
	} else {
		args = append(append(args, "--save", ""), s.options...)
	}
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); s.client.Ping(context.Background()).Err() != nil; {
		if time.Now().After(end) {
			s.t.Fatal("redis-server does not answer")
		}
		<-time.After(5 * time.Millisecond) // a process comes up
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// aged makes a namespace whose epoch began so long ago that every bucket is full.
func (s *server) aged(namespace string, epoch limits.Time) {
	s.t.Helper()
	ctx := context.Background()
	info := s.client.Info(ctx, "server").Val()
	run := regexp.MustCompile(`run_id:(\w+)`).FindStringSubmatch(info)[1]
	space := "{agentlimit:" + namespace + "}"
	if err := s.client.HSet(ctx, space, "epoch", int64(epoch), "run", run, "learn", 0).Err(); err != nil {
		s.t.Fatal(err)
	}
}

var spaces atomic.Int64

// fresh names a namespace that nobody has used, and that needs no learning.
func (s *server) fresh() string {
	name := fmt.Sprintf("test-%d", spaces.Add(1))
	s.aged(name, 1)
	return name
}

// mustOpen opens a namespace; what it says is logged.
func mustOpen(t testing.TB, url string, timing timing) *Redis {
	t.Helper()
	r, err := open(context.Background(), url, Options{Say: func(s string) { t.Log(s) }}, timing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return r
}

func long() bool { return os.Getenv("AGENTLIMIT_LONG") != "" }

func contains(lines []string, part string) bool {
	return strings.Contains(strings.Join(lines, "\n"), part)
}
