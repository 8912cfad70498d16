package call

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // as the sweep has a goroutine of its own
		var gone []string
		idle := func(server string) *conn {
			return newConn(route{server: server}, nil, closing{closed: func() {
				mu.Lock()
				defer mu.Unlock()
				gone = append(gone, server)
			}})
		}
		check := func(step string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(gone) != len(want) || len(want) > 0 && gone[len(gone)-1] != want[len(want)-1] {
				t.Errorf("%s: closed %q, want %q", step, gone, want)
			}
		}
		p := pool{max: 2}
		p.put(idle("a"))
		time.Sleep(idleTimeout / 2)
		p.put(idle("b"))
		check("both are young")
		time.Sleep(idleTimeout / 2)
		check("one is old", "a")
		p.put(idle("c"))
		p.put(idle("d"))
		check("one too many", "a", "b")
		if c := p.take(route{server: "x"}); c != nil {
			t.Errorf("take found %v on another way", c.to)
		}
		time.Sleep(idleTimeout)
		check("all are old", "a", "b", "c", "d")
		p.put(idle("e"))
		time.Sleep(idleTimeout)
		check("and again", "a", "b", "c", "d", "e")
		p.put(idle("f"))
		p.close()
		check("closed", "a", "b", "c", "d", "e", "f")
		time.Sleep(2 * idleTimeout) // the sweep finds nothing
	})
}

// A closing is a connection that calls a function when it is closed.
type closing struct {
	net.Conn
	closed func()
}

func (c closing) Close() error { c.closed(); return nil }
