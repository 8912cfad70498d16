package jobspec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentlimit/limits"
)

const httpTimeout = time.Minute

// standard is a job in which everything has its default but Timeout, which
// depends on the kind of job.
var standard = Job{
	Cost: 1,
	Retry: Retry{
		Attempts:   4,
		Initial:    500 * time.Millisecond,
		Max:        30 * time.Second,
		Multiplier: 2,
		OnStatus:   []int{408, 425, 429, 500, 502, 503, 504},
		OnExit:     []int{75},
		MaxWait:    5 * time.Minute,
	},
	Expect: Expect{Status: []StatusRange{{200, 299}}, ExitCodes: []int{0}},
	Output: Output{Inline: 64 << 10},
}

func blank(pos Position) *Job {
	j := standard
	j.Pos = pos
	return &j
}

var jobKeys = []string{
	"id", "host", "account", "pools", "priority", "deadline", "not_before", "timeout",
	"cost", "retry", "expect", "output", "labels", "http", "exec",
}

// checkDefaults reports what is wrong in the defaults, whether or not a job
// uses it.
func (d *decoder) checkDefaults() {
	n := d.defaults
	if n == nil {
		return
	}
	d.begin(n, "defaults")
	d.mapping(n, jobKeys...)
	if n.kind != mapping {
		d.defaults = nil
		return
	}
	d.partial, d.id = true, "id"
	j, l := blank(n.pos()), layers{own: n}
	d.call(j, l, n.get("http") != nil, n.get("exec") != nil)
	d.rest(j, l)
	d.partial = false
}

// begin makes n the job at hand.
func (d *decoder) begin(n *node, path string) {
	d.own, d.path, d.id, d.usesID = n, path, "", false
	d.secrets, d.hashed = nil, d.hashed[:0]
}

// job returns the job that n describes; d.errs says what is wrong with it. If it
// names no id, name makes one of its hash.
func (d *decoder) job(n *node, path string, name func(hash string) string) *Job {
	d.begin(n, path)
	j := blank(n.pos())
	if !d.mapping(n, jobKeys...) && n.kind != mapping {
		return j
	}
	l := layers{n, d.defaults}
	isHTTP, isExec := n.get("http") != nil, n.get("exec") != nil
	if isHTTP == isExec {
		d.fail(n, "want one of http and exec")
		return j
	}
	if id := l.get("id"); id != nil {
		d.id = d.name(id, d.open(id, 0))
	}
	d.call(j, l, isHTTP, isExec)
	sum := sha256.Sum256(d.hashed)
	j.Hash = string(hex.AppendEncode(append(d.hashed[:0], "sha256:"...), sum[:]))
	if d.named = d.id != ""; !d.named {
		d.id = name(j.Hash)
		if d.usesID { // now it is known
			d.hashed = d.hashed[:0]
			d.call(j, l, isHTTP, isExec)
		}
	}
	j.ID = d.id
	d.rest(j, l)
	d.checkCosts(j, l)
	if len(d.secrets) > 0 {
		slices.SortFunc(d.secrets, func(a, b string) int {
			return cmp.Or(len(b)-len(a), strings.Compare(a, b))
		})
		j.Secrets = slices.Compact(d.secrets)
	}
	return j
}

// call reads the block that says what to do, and the host that follows from it.
func (d *decoder) call(j *Job, l layers, isHTTP, isExec bool) {
	if isHTTP {
		j.HTTP, j.Host = d.http(d.block(l, "http", httpKeys...))
		j.Timeout = httpTimeout
	}
	if isExec {
		j.Exec = d.exec(d.block(l, "exec", execKeys...))
	}
}

// rest reads everything but the id and the call.
func (d *decoder) rest(j *Job, l layers) {
	set(&j.Host, l.get("host"), d.host)
	set(&j.Account, l.get("account"), func(n *node) string { return d.name(n, d.open(n, jobRefs)) })
	set(&j.Priority, l.get("priority"), func(n *node) int64 { return d.whole(n, math.MinInt32, math.MaxInt32) })
	set(&j.Deadline, l.get("deadline"), d.when)
	set(&j.NotBefore, l.get("not_before"), d.when)
	set(&j.Timeout, l.get("timeout"), d.timeout)
	d.cost(j, l)
	d.retry(&j.Retry, d.block(l, "retry", "attempts", "backoff", "on_status", "on_exit", "idempotent", "max_wait"))
	expect := d.block(l, "expect", "status", "exit_codes", "body_matches")
	set(&j.Expect.Status, expect.get("status"), func(n *node) []StatusRange { return each(d, n, d.status) })
	set(&j.Expect.ExitCodes, expect.get("exit_codes"), func(n *node) []int { return each(d, n, d.number(0, 255)) })
	set(&j.Expect.Body, expect.get("body_matches"), d.pattern)
	output := d.block(l, "output", "inline", "save")
	set(&j.Output.Inline, output.get("inline"), d.size)
	set(&j.Output.Save, output.get("save"), d.save)
	d.pairs(l.own.get("labels"), l.base.get("labels"), equal, func(n *node) {
		if j.Labels == nil {
			j.Labels = make(map[string]string)
		}
		j.Labels[n.key] = d.open(n, jobRefs)
	})
	d.checkKind(j, l)
}

// host returns the key that a tag names.
func (d *decoder) host(n *node) string {
	tag := d.open(n, jobRefs)
	key, err := HostTag(tag)
	if err != nil && tag != "" {
		d.wrong(n, err.Error())
	}
	return key
}

// timeout is a duration above zero, or none.
func (d *decoder) timeout(n *node) time.Duration {
	if none(n) {
		return 0
	}
	return d.duration(n)
}

// checkKind refuses settings of the other kind of job, which would do nothing.
// Defaults may hold both.
func (d *decoder) checkKind(j *Job, l layers) {
	kind, foreign := "a command", [][2]string{{"expect", "status"}, {"retry", "on_status"}}
	if j.HTTP != nil {
		kind, foreign = "a request", [][2]string{{"expect", "exit_codes"}, {"retry", "on_exit"}}
	}
	for _, f := range foreign {
		if n := l.own.get(f[0]).get(f[1]); n != nil && !d.partial {
			d.failAt(n.keyPos(), n, "means nothing for %s", kind)
		}
	}
}

// cost reads the pools a job joins and the tokens it takes. A cost for a pool
// joins it.
func (d *decoder) cost(j *Job, l layers) {
	if n := l.get("pools"); n != nil {
		for _, item := range d.items(n) {
			d.join(j, item, d.str(item), 1)
		}
	}
	n := l.get("cost")
	if n == nil || n.kind != mapping {
		set(&j.Cost, n, func(n *node) int64 { return d.whole(n, 0, maxCount) })
		return
	}
	for _, kid := range n.kids {
		tokens := d.whole(kid, 0, maxCount)
		if kid.key == "requests" {
			j.Cost = tokens
		} else {
			d.join(j, kid, kid.key, tokens)
		}
	}
}

// join makes the job a member of a pool; the last cost counts.
func (d *decoder) join(j *Job, n *node, pool string, tokens int64) {
	if pool != "" && !d.knownPool(pool) {
		d.fail(n, "unknown pool %q%s", pool, didYouMean(pool, d.pools))
	}
	at, member := slices.BinarySearch(j.Pools, pool)
	if member {
		j.PoolCost[at] = tokens
		return
	}
	j.Pools = slices.Insert(j.Pools, at, pool)
	j.PoolCost = slices.Insert(j.PoolCost, at, tokens)
}

// checkCosts refuses a cost that its bucket can never hold.
func (d *decoder) checkCosts(j *Job, l layers) {
	d.needs = j.Needs(d.needs[:0], &d.table)
	for _, need := range d.needs {
		if need.Limit.Rate == (limits.Rate{}) {
			continue
		}
		at := d.own
		if n := l.own.get("cost"); n != nil {
			at = n
		}
		if need.Cost > need.Limit.Burst {
			d.fail(at, "a cost of %d is above the burst of %s, %d: it could never start", need.Cost, need.Key, need.Limit.Burst)
		} else if err := need.Limit.Validate(); err != nil {
			d.fail(at, "the limits of %s: %v", need.Key, err)
		}
	}
}

func (d *decoder) retry(r *Retry, l layers) {
	set(&r.Attempts, l.get("attempts"), d.number(1, 1000))
	backoff := d.block(l, "backoff", "initial", "max", "multiplier")
	set(&r.Initial, backoff.get("initial"), d.duration)
	set(&r.Max, backoff.get("max"), d.duration)
	if n := backoff.own.get("max"); n != nil && r.Max < r.Initial {
		d.wrong(n, "want at least initial")
	}
	r.Max = max(r.Max, r.Initial)
	set(&r.Multiplier, backoff.get("multiplier"), d.multiplier)
	set(&r.OnStatus, l.get("on_status"), func(n *node) []int { return each(d, n, d.number(100, 599)) })
	set(&r.OnExit, l.get("on_exit"), func(n *node) []int { return each(d, n, d.number(1, 255)) })
	set(&r.Idempotent, l.get("idempotent"), func(n *node) *bool { return new(d.boolean(n)) })
	if n := l.get("max_wait"); n != nil {
		// Here alone 0s has a meaning: never wait on a pause.
		if r.MaxWait = 0; n.text != "0s" {
			r.MaxWait = d.duration(n)
		}
	}
}

// pattern compiles a regular expression; lines often share one.
func (d *decoder) pattern(n *node) *regexp.Regexp {
	text := d.str(n)
	if d.lastPattern != nil && d.lastPattern.String() == text {
		return d.lastPattern
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		d.wrong(n, "want a regular expression: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return nil
	}
	d.lastPattern = compiled
	return compiled
}

// status reads a status, such as 404, or a class of them, such as 2xx.
func (d *decoder) status(n *node) StatusRange {
	if n.kind == plain || n.kind == quoted {
		if class, found := strings.CutSuffix(n.text, "xx"); found && len(class) == 1 && '1' <= class[0] && class[0] <= '5' {
			low := int(class[0]-'0') * 100
			return StatusRange{low, low + 99}
		}
		if v, err := strconv.Atoi(n.text); err == nil && n.kind == plain && 100 <= v && v <= 599 {
			return StatusRange{v, v}
		}
	}
	d.wrong(n, "want a status from 100 to 599 or a class, such as 2xx")
	return StatusRange{}
}

// save returns the path that an answer is saved to. The id must not lead it to
// another folder.
func (d *decoder) save(n *node) string {
	usesID := d.usesID
	d.usesID = false
	path := d.open(n, jobRefs)
	if d.usesID && (d.id == ".." || strings.ContainsAny(d.id, `/\`)) {
		d.fail(n, "the id %q cannot be part of a path", d.id)
	}
	d.usesID = d.usesID || usesID
	return n.file.path(path)
}
