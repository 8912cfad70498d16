package cmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentlimit/limits"
	"agentlimit/limits/folder"
	"agentlimit/limits/redis"
	"agentlimit/runner"
	"agentlimit/runner/call"
)

// errCoordinator is why a coordinator cannot be meant. What was typed is not shown:
// it may hold a password.
var errCoordinator = errors.New("want local, folder, folder:PATH, redis://HOST or rediss://HOST, and ?namespace=NAME behind it if need be (the value is not shown, it may hold a secret)")

// meeting is where the processes meet that share a coordinator.
type meeting struct {
	folder string // its absolute path; empty: Redis
	redis  string // URL
}

// parseMeeting reads what users name a shared coordinator.
func parseMeeting(name string) (m meeting, err error) {
	place, query, _ := strings.Cut(name, "?")
	kind, path, named := strings.Cut(place, ":")
	switch kind {
	case "redis", "rediss":
		if u, err := url.Parse(name); err != nil || u.Host == "" {
			return m, errCoordinator
		}
		return meeting{redis: name}, redis.Check(name)
	case "folder":
	default:
		return m, errCoordinator
	}
	switch {
	case !named:
		path, err = stateFolder()
	case path == "": // a variable that is not set, as likely as not
		err = errors.New("folder: has no path behind it; the bare word folder means one of your own")
	default:
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return m, err
	}
	values, err := url.ParseQuery(query)
	space := values.Get("namespace")
	if err != nil || len(values) > 1 || len(values) == 1 && !isName(space) {
		return m, errCoordinator
	}
	return meeting{folder: filepath.Join(path, space)}, nil
}

// isName reports whether s can be the name of a folder.
func isName(s string) bool {
	return s != "" && !strings.HasPrefix(s, ".") && !strings.ContainsAny(s, `/\`)
}

// stateFolder is where the bare word folder leads: to a place of the user's own.
func stateFolder() (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "agentlimit"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", &hinted{fmt.Errorf("the coordinator folder has no path: %w", err), "folder:PATH names one"}
	}
	return filepath.Join(home, ".local", "state", "agentlimit"), nil
}

// id names a meeting to commands, which may come to it themselves, without what it
// may hold of secrets; empty: nobody meets.
func (m meeting) id() string {
	if m == (meeting{}) {
		return ""
	}
	if real, err := filepath.EvalSymlinks(m.folder); err == nil {
		m.folder = real
	}
	sum := sha256.Sum256([]byte(m.folder + "\x00" + m.redis))
	return hex.EncodeToString(sum[:6])
}

// meet opens a shared coordinator, of which a command of a job may hold keys already.
func (p *program) meet(ctx context.Context, o *runOptions) (limits.Coordinator, error) {
	c, err := p.openInTime(ctx, o)
	if err != nil {
		return nil, broken(err)
	}
	if keys := o.meeting.parentKeys(); len(keys) > 0 {
		return &child{c, keys}, nil
	}
	return c, nil
}

// unmet is the error of a coordinator that could not be reached before the deadline.
type unmet struct{ error }

// Unwrap returns why.
func (u *unmet) Unwrap() error { return u.error }

// openInTime waits for a coordinator that cannot be reached for as long as the
// deadline allows, which then is as much nearer. Without a deadline it does not wait:
// an address may be wrong.
func (p *program) openInTime(ctx context.Context, o *runOptions) (limits.Coordinator, error) {
	began, waited := time.Now(), false
	for {
		c, err := p.open(ctx, o.meeting)
		left := o.Deadline - time.Since(began)
		switch {
		case err == nil && waited:
			p.sayLost(nil)
			o.Deadline = max(1, left)
			return c, nil
		case err == nil:
			return c, nil
		case o.Lost == runner.LostStop || !isUnreachable(err):
			return nil, err
		case o.Deadline == 0:
			return nil, &hinted{err, "--deadline 5m waits for it, for so long"}
		case left <= 0:
			return nil, &unmet{err}
		case !waited:
			waited = true
			p.sayLost(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(left, time.Second/2+rand.N(time.Second/2))): // not all at once
		}
	}
}

// isUnreachable reports whether err is of the way to Redis, and not what is said there.
func isUnreachable(err error) bool {
	return errors.As(err, new(*net.OpError)) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF)
}

func (p *program) open(ctx context.Context, m meeting) (limits.Coordinator, error) {
	warn := func(text string) { p.voice.note(slog.LevelWarn, text) }
	if m.redis != "" {
		return redis.Open(ctx, m.redis, redis.Options{Say: warn})
	}
	return folder.Open(ctx, m.folder, folder.Options{Warn: warn})
}

// parentKeys returns the keys that are held there by the job whose command this is.
func (m meeting) parentKeys() []string {
	if m == (meeting{}) || os.Getenv("AGENTLIMIT_JOB_COORDINATOR") != m.id() {
		return nil
	}
	return strings.Split(os.Getenv("AGENTLIMIT_JOB_KEYS"), " ")
}

// child is the coordinator of a command that runs under permits of its own parent:
// to wait for those would be to wait for itself.
type child struct {
	limits.Coordinator
	held []string
}

// Sync refuses a claim on a key of the parent's.
func (c *child) Sync(ctx context.Context, batch *limits.Batch, reply *limits.Reply) error {
	for _, claim := range batch.Claims {
		for _, need := range claim.Needs {
			if slices.Contains(c.held, call.KeyWord(need.Key)) {
				return &coded{fmt.Errorf("%s is held by the job whose command this is: it would wait for itself", need.Key), exitUsage}
			}
		}
	}
	return c.Coordinator.Sync(ctx, batch, reply)
}

// sayLost says that the coordinator cannot be reached, or that it is back.
func (p *program) sayLost(err error) {
	if err == nil {
		p.voice.say(slog.LevelInfo, "the coordinator is back")
		return
	}
	p.voice.say(slog.LevelWarn, fmt.Sprintf("the coordinator cannot be reached: nothing starts until it is back (%v)", err))
}

// coordinatorFlag reads local or where to meet.
func coordinatorFlag(to *string) *value {
	return &value{kind: "WHERE", read: func(s string) error {
		if s != "local" {
			if _, err := parseMeeting(s); err != nil {
				return err
			}
		}
		*to = s
		return nil
	}}
}

func lostFlag(to *runner.LostPolicy) *value {
	return wordFlag((*string)(to), string(runner.LostWait), string(runner.LostStop), string(runner.LostCancel))
}

// shardFlag reads i/n.
func shardFlag(to *limits.Shard) *value {
	return &value{kind: "I/N", read: func(s string) error {
		index, of, _ := strings.Cut(s, "/")
		i, err := strconv.ParseInt(index, 10, 32)
		n, errOf := strconv.ParseInt(of, 10, 32)
		if err != nil || errOf != nil || i < 1 || i > n {
			return errors.New("want I/N, such as 1/4 for the first of four")
		}
		*to = limits.Shard{Index: i, Of: n}
		return nil
	}}
}
