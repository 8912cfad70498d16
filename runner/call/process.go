package call

import (
	"context"
	"os"
	"os/exec"
	"time"

	"agentlimit/jobspec"
)

// goneWithin is how long a killed group may take to disappear before the attempt
// ends all the same: a process in the kernel's hands cannot be hurried.
const goneWithin = 50 * time.Millisecond

// A process is a command under way, in a session and process group of its own.
type process struct {
	cmd     *exec.Cmd
	streams []*stream
	stdin   *os.File   // our end; nil: none
	theirs  []*os.File // the command's ends, until it has started
}

// start starts the attempt's command. On error nothing is left behind.
func (c *Client) start(a Attempt, stdout, stderr *capture) (*process, error) {
	p := &process{cmd: command(a.Job.Exec)}
	p.cmd.Env = c.environment(a)
	isolate(p.cmd)
	err := p.open(a.Job.Exec, stdout, stderr)
	if err == nil {
		err = a.sending()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	for _, f := range p.theirs {
		f.Close()
	}
	if err != nil {
		p.close()
		return nil, startFailure(err)
	}
	for _, s := range p.streams {
		go s.read()
	}
	if p.stdin != nil {
		go p.feed(a.Job.Exec.Stdin)
	}
	return p, nil
}

// open connects the command's input and outputs. An input that is not given is
// empty.
func (p *process) open(x *jobspec.Exec, outputs ...*capture) error {
	for _, keep := range outputs {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		p.theirs = append(p.theirs, w)
		p.streams = append(p.streams, &stream{capture: keep, r: r, done: make(chan struct{})})
	}
	p.cmd.Stdout, p.cmd.Stderr = p.theirs[0], p.theirs[1]
	var stdin *os.File
	var err error
	switch {
	case x.StdinFile != "":
		if stdin, err = openRegular(x.StdinFile); err != nil {
			return fileFailure("read stdin file", err)
		}
	case len(x.Stdin) > 0:
		if stdin, p.stdin, err = os.Pipe(); err != nil {
			return err
		}
	default:
		return nil
	}
	p.theirs = append(p.theirs, stdin)
	p.cmd.Stdin = stdin
	return nil
}

// feed writes the command's input. An early end of the command ends it too.
func (p *process) feed(text []byte) {
	p.stdin.Write(text)
	p.stdin.Close()
}

func (p *process) close() {
	for _, s := range p.streams {
		s.r.Close()
	}
	if p.stdin != nil {
		p.stdin.Close()
	}
}

// wait returns when the command has ended and what it wrote has been read. The
// result says whether ctx ended it.
func (p *process) wait(ctx context.Context, grace time.Duration, hurry func() bool) bool {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		p.end(grace, hurry)
	})
	p.cmd.Wait() // its error is in ProcessState
	ended := !stop()
	if ended {
		<-done
	}
	for _, s := range p.streams {
		s.finish(ended)
	}
	if p.stdin != nil {
		p.stdin.Close()
	}
	return ended
}

// end ends the whole group: TERM, and KILL for what is left after the grace. What
// the leader leaves behind when it obeys has the rest of the grace as well.
func (p *process) end(grace time.Duration, hurry func() bool) {
	if !hurry() && terminate(p.cmd.Process) && p.gone(grace, hurry) {
		return
	}
	kill(p.cmd.Process)
	p.gone(goneWithin, func() bool { return false })
}

// gone waits until no process of the group is left, and reports whether that came
// about in time. It looks again and again, since nobody tells it: the group's
// members are not our children.
func (p *process) gone(within time.Duration, hurry func() bool) bool {
	end := time.Now().Add(within)
	for pause := time.Millisecond; alive(p.cmd.Process); pause = min(2*pause, 20*time.Millisecond) {
		if hurry() || time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}
