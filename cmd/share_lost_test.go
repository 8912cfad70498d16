//go:build linux

package cmd_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

const busyHost = `{hosts: {"*": {concurrency: 2, rate: 20/s, burst: 1}}}`

// TestRedisInTrouble has Redis fail in the midst of two runs: they go on when it is
// back, and no limit is passed.
func TestRedisInTrouble(t *testing.T) {
	restart := func(s *redisServer) { s.kill(); s.start() }
	trouble := func(says string, happens func(*redisServer), options ...string) func(*testing.T) {
		return func(t *testing.T) {
			p := atRedis(t, newRedis(t, options...))
			a := p.run("a", busyHost, p.calls("a", 10, "h", shortCall, ""))
			b := p.run("b", busyHost, p.calls("b", 10, "h", shortCall, ""))
			p.service.await(t, "", 6)
			happens(p.redis)
			a.exitsSaying(0, says)
			b.exitsSaying(0, says)
			p.service.wantKept(t, "h", 2, 20)
			p.audit()
		}
	}
	tests := map[string]func(*testing.T){
		"restarted without its data": trouble("nothing starts for", restart),
		"restarted with its data":    trouble("nothing starts for", restart, "--appendonly", "yes"),
		"emptied":                    trouble("nothing starts for", func(s *redisServer) { s.does("FLUSHALL") }),
		"away for three seconds": trouble("the coordinator is back", func(s *redisServer) {
			s.kill()
			<-time.After(3 * time.Second)
			s.start()
		}),
		"stalled for two seconds": trouble("", func(s *redisServer) { s.stall(2 * time.Second) }),
	}
	if long() {
		tests["stalled for longer than a lease"] = trouble("the coordinator is back", func(s *redisServer) { s.stall(lease + time.Second) })
	}
	sideBySide(t, tests)
}

// TestRedisLost has Redis go in the midst of a run and not come back, or not be there
// when a process comes.
func TestRedisLost(t *testing.T) {
	lost := func(takes time.Duration, code int, says string, flags ...string) func(*testing.T) {
		return func(t *testing.T) {
			p := atRedis(t, newRedis(t))
			m := p.run("m", busyHost, p.calls("m", 10, "h", takes, ""), flags...)
			p.service.await(t, "", 2)
			p.redis.kill()
			m.exitsSaying(code, says)
			if n := len(p.service.arrivals("")); n > 2 {
				t.Errorf("%d calls came, want the 2 that came before", n)
			}
		}
	}
	exec := []string{"exec", "--host", "box", "--limit", "host/box=1"}
	run := []string{"run", "jobs.yaml"}
	comes := func(at time.Duration, code int, says string, args []string, more ...string) func(*testing.T) {
		return func(t *testing.T) {
			s := newRedis(t)
			s.kill()
			p := atRedis(t, s)
			p.write("jobs", busyHost, p.calls("jobs", 1, "h", 0, ""))
			m := p.start("m", slices.Concat(args, more)...)
			if at > 0 {
				<-time.After(at)
				s.start()
			}
			m.exitsSaying(code, says)
		}
	}
	sideBySide(t, map[string]func(*testing.T){
		"gone: deadlines defer the rest": lost(shortCall, 75, "the coordinator cannot be reached: nothing starts until it is back", "--deadline", "6s"),
		"gone: the records say so": func(t *testing.T) {
			lost(shortCall, 75, "such as m-9: the coordinator", "--deadline", "5s")(t)
		},
		"gone: the run is to stop":         lost(shortCall, 3, "coordinator lost", "--coordinator-lost", "stop"),
		"gone: the run is to cancel calls": lost(time.Minute, 3, "the coordinator was lost for longer than it keeps permits", "--coordinator-lost", "cancel"),
		"gone: the run is stopped": func(t *testing.T) {
			p := atRedis(t, newRedis(t))
			m := p.run("m", busyHost, p.calls("m", 10, "h", shortCall, ""))
			p.service.await(t, "", 2)
			p.redis.kill()
			began := time.Now()
			m.Process.Signal(syscall.SIGTERM)
			m.exitsSaying(143, "8 not started")
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %v to stop", took)
			}
		},
		"gone: a command's turn does not come": func(t *testing.T) {
			p := atRedis(t, newRedis(t))
			box := []string{"exec", "--host", "box", "--limit", "host/box=1", "--deadline", "4s", "--"}
			holder := p.start("holder", append(box, "sh", "-c", "touch held; exec sleep 6")...)
			awaitFile(t, filepath.Join(p.dir, "held"))
			m := p.start("m", append(box, "touch", "late")...)
			p.awaitWaiting()
			p.redis.kill()
			m.exitsSaying(75, "not started")
			holder.exitsSaying(0, "the coordinator cannot be reached")
		},
		"not there: ends a run at once": comes(0, 3, "connection refused\nagentlimit: hint: --deadline 5m waits", run),
		"not there: ends exec at once":  comes(0, 125, "connection refused\nagentlimit: hint: --deadline 5m waits", exec, "--", "true"),
		"not there: is stalled when exec comes": func(t *testing.T) {
			p := atRedis(t, newRedis(t))
			p.redis.cmd.Process.Signal(syscall.SIGSTOP)
			m := p.start("m", append(exec, "--deadline", "30s", "--", "true")...)
			<-time.After(4 * time.Second) // longer than an answer may take
			p.redis.cmd.Process.Signal(syscall.SIGCONT)
			m.exits(0)
		},
		"a folder is not waited for": func(t *testing.T) {
			p := atFolder(t)
			p.write("jobs", busyHost, p.calls("jobs", 1, "h", 0, ""))
			p.start("m", append(run, "--coordinator", "folder:jobs.yaml", "--deadline", "1h")...).exitsSaying(3, "not a directory\n")
		},
		"not there: ends a run that is to stop at once": comes(0, 3, "connection refused\n", run, "--deadline", "1h", "--coordinator-lost", "stop"),
		"not there: ends a run at its deadline":         comes(0, 3, "cannot be reached: nothing starts", run, "--deadline", "1s"),
		"not there: ends exec at its deadline":          comes(0, 75, "not started: open coordinator redis", exec, "--deadline", "1s", "--", "true"),
		"not there: is waited for by a run":             comes(time.Second, 0, "", run, "--deadline", "20s"),
		"not there: is waited for by exec":              comes(time.Second, 0, "", exec, "--deadline", "20s", "--", "true"),
		"not there: is back too late":                   comes(2*time.Second, 75, "not started", exec, "--deadline", "3s", "--", "true"),
	})
}
