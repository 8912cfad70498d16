//go:build linux || darwin

package folder

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentlimit/limits"
)

// caller makes calls to the test's server, one after the other: it says when one
// begins and ends, and goes on when the server has heard.
func caller(path string) error {
	f, err := Open(context.Background(), path, Options{Warn: func(s string) { fmt.Fprintln(os.Stderr, s) }})
	if err != nil {
		return err
	}
	server, err := net.Dial("tcp", os.Getenv(serverVar))
	if err != nil {
		return err
	}
	answers := bufio.NewReader(server)
	tell := func(format string, args ...any) error {
		if _, err := fmt.Fprintf(server, format+"\n", args...); err != nil {
			return err
		}
		_, err := answers.ReadString('\n')
		return err
	}
	over := untilEOF(new(atomic.Int64))
	var batch limits.Batch
	var reply limits.Reply
	for id := limits.ClaimID(1); ; id++ {
		batch.Max, batch.Claims = 1, []limits.Claim{crowdClaim(f, id)}
		granted, err := grant(f, over, &batch, &reply)
		if err != nil || !granted {
			return firstError(err, f.Close())
		}
		keys := []string{}
		for _, n := range batch.Claims[0].Needs {
			keys = append(keys, n.Key.String())
		}
		if err := tell("begin %d %d %s", os.Getpid(), reply.Now, strings.Join(keys, " ")); err != nil {
			return err
		}
		if err := tell("end %d 0 %s", os.Getpid(), strings.Join(keys, " ")); err != nil {
			return err
		}
		batch.Releases = []limits.ClaimID{id}
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

var crowdLimits = map[limits.Key]limits.Limit{
	{Kind: limits.Host, Name: "h"}:    {Concurrency: 3},
	{Kind: limits.Account, Name: "a"}: {Concurrency: 2},
	{Kind: limits.Pool, Name: "p"}:    {Rate: limits.Rate{Tokens: 1, Per: 2000}, Burst: 5},
}

// crowdClaim claims some of the keys in turn.
func crowdClaim(f *Folder, id limits.ClaimID) limits.Claim {
	c := limits.Claim{ID: id, Rank: limits.Rank{Deadline: limits.Never, Since: f.Now()}}
	for i, key := range []limits.Key{{Kind: limits.Host, Name: "h"}, {Kind: limits.Account, Name: "a"}, {Kind: limits.Pool, Name: "p"}} {
		if (int(id)%7+1)&(1<<i) != 0 {
			c.Needs = append(c.Needs, limits.Need{Key: key, Limit: crowdLimits[key], Cost: min(1, crowdLimits[key].Burst)})
		}
	}
	return c
}

// racer makes empty calls until it may no more, and says how many.
func racer(path string) error {
	f, err := Open(context.Background(), path, Options{})
	if err != nil {
		return err
	}
	limit := limits.Limit{Concurrency: 2}
	var calls atomic.Int64
	over := untilEOF(&calls)
	var batch limits.Batch
	var reply limits.Reply
	for id := limits.ClaimID(1); ; id++ {
		batch.Max, batch.Claims = 1, []limits.Claim{{
			ID: id, Rank: limits.Rank{Deadline: limits.Never, Since: f.Now()},
			Needs: []limits.Need{{Key: limits.Key{Kind: limits.Host, Name: "h"}, Limit: limit}},
		}}
		granted, err := grant(f, over, &batch, &reply)
		if id == 1 {
			fmt.Println("started")
		}
		if err != nil {
			return err
		}
		batch.Releases = []limits.ClaimID{id}
		select {
		case <-over:
			granted = false
		case <-time.After(2 * time.Millisecond): // the call
			calls.Add(1)
		}
		if !granted {
			fmt.Println(calls.Load())
			return f.Close()
		}
	}
}

// holder holds a permit, and has a child hold its lock, until standard input says
// "release" or ends.
func holder(path string) error {
	f, err := Open(context.Background(), path, Options{})
	if err != nil {
		return err
	}
	var reply limits.Reply
	if err := f.Sync(context.Background(), &limits.Batch{Max: 1, Claims: []limits.Claim{onlyClaim(1)}}, &reply); err != nil {
		return err
	}
	lock, err := f.Inherit(context.Background(), 1)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processVar+"=child")
	cmd.Stdout = os.Stdout
	cmd.ExtraFiles = []*os.File{lock}
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := lock.Close(); err != nil {
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if err := f.Sync(context.Background(), &limits.Batch{Releases: []limits.ClaimID{1}}, &reply); err != nil {
			return err
		}
		fmt.Println("released")
	}
	return f.Close()
}

// admitter has batches of 64 admitted, and says how many claims were.
func admitter(path string) error {
	f, err := Open(context.Background(), path, Options{})
	if err != nil {
		return err
	}
	var admitted atomic.Int64
	over := untilEOF(&admitted)
	fmt.Println("started")
	var batch limits.Batch
	var reply limits.Reply
	for id := limits.ClaimID(1); ; id += 64 {
		select {
		case <-over:
			fmt.Println(admitted.Load())
			return f.Close()
		default:
		}
		batch.Claims, batch.Max = batchOf(id, 64), 64
		if err := f.Sync(context.Background(), &batch, &reply); err != nil {
			return err
		}
		admitted.Add(64)
		batch.Releases = batch.Releases[:0]
		for i, v := range reply.Verdicts {
			if v.Cause != limits.Granted {
				return fmt.Errorf("refused: %+v", v)
			}
			batch.Releases = append(batch.Releases, batch.Claims[i].ID)
		}
	}
}

// child says its number and ends only when it is killed.
func child(string) error {
	fmt.Println("child " + strconv.Itoa(os.Getpid()))
	select {}
}

func onlyClaim(id limits.ClaimID) limits.Claim {
	return limits.Claim{ID: id, Rank: limits.Rank{Deadline: limits.Never}, Needs: []limits.Need{
		{Key: limits.Key{Kind: limits.Host, Name: "h"}, Limit: limits.Limit{Concurrency: 1}},
	}}
}
