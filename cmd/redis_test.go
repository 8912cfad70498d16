//go:build linux

package cmd_test

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// redisServer is a redis-server of a test's own.
type redisServer struct {
	t    *testing.T
	addr string
	args []string
	cmd  *exec.Cmd
}

// newRedis starts one on a free port.
func newRedis(t *testing.T, options ...string) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server on the PATH: apt-get install redis-server")
	}
	s := &redisServer{t: t, addr: nobody(t)}
	_, port, _ := net.SplitHostPort(s.addr)
	s.args = append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", ""}, options...)
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *redisServer) start() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", s.args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(testTimeout); s.does("PING") != "+PONG"; {
		if time.Now().After(end) {
			s.t.Fatal("redis-server does not answer")
		}
		<-time.After(5 * time.Millisecond) // a process comes up
	}
}

func (s *redisServer) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// stall stops the server for a while.
func (s *redisServer) stall(d time.Duration) {
	s.cmd.Process.Signal(syscall.SIGSTOP)
	<-time.After(d)
	s.cmd.Process.Signal(syscall.SIGCONT)
}

// does has the server do a command, and returns the first line of its answer; empty
// if it does not answer.
func (s *redisServer) does(command string) string {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(testTimeout))
	fmt.Fprintf(conn, "%s\r\n", command) // an answer tells if it came
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}
