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
	if d.defaults == nil {
		return
	}
	n := d.defaults
	d.defaults = nil
	d.begin(n, "defaults")
	d.partial, d.id = true, "id"
	if d.mapping(n, jobKeys...) {
		j, l := blank(n.pos()), layers{own: n}
		d.call(j, l, n.get("http") != nil, n.get("exec") != nil)
		d.rest(j, l)
		d.defaults = n
	}
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
	j.Hash = "sha256:" + hex.EncodeToString(sum[:])
	if d.id == "" {
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
	if n := l.get("host"); n != nil {
		if tag := d.open(n, jobRefs); tag != "" {
			var err error
			if j.Host, err = HostTag(tag); err != nil {
				d.wrong(n, err.Error())
			}
		}
	}
	if n := l.get("account"); n != nil {
		j.Account = d.name(n, d.open(n, jobRefs))
	}
	if n := l.get("priority"); n != nil {
		j.Priority = d.whole(n, math.MinInt32, math.MaxInt32)
	}
	j.Deadline = d.when(l.get("deadline"))
	j.NotBefore = d.when(l.get("not_before"))
	if n := l.get("timeout"); none(n) {
		j.Timeout = 0
	} else if n != nil {
		j.Timeout = d.duration(n)
	}
	d.cost(j, l)
	d.retry(&j.Retry, d.block(l, "retry", "attempts", "backoff", "on_status", "on_exit", "idempotent", "max_wait"))
	d.expect(&j.Expect, d.block(l, "expect", "status", "exit_codes", "body_matches"))
	d.output(&j.Output, d.block(l, "output", "inline", "save"))
	d.pairs(l.own.get("labels"), l.base.get("labels"), equal, func(n *node) {
		if j.Labels == nil {
			j.Labels = make(map[string]string)
		}
		j.Labels[n.key] = d.open(n, jobRefs)
	})
	d.checkKind(j, l)
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
	costs := make(map[string]int64)
	if n := l.get("pools"); n != nil {
		for _, item := range d.items(n) {
			d.join(item, d.str(item), 1, costs)
		}
	}
	if n := l.get("cost"); n != nil && n.kind == mapping {
		for _, kid := range n.kids {
			tokens := d.whole(kid, 0, maxCount)
			if kid.key == "requests" {
				j.Cost = tokens
			} else {
				d.join(kid, kid.key, tokens, costs)
			}
		}
	} else if n != nil {
		j.Cost = d.whole(n, 0, maxCount)
	}
	if len(costs) == 0 {
		return
	}
	for name := range costs {
		j.Pools = append(j.Pools, name)
	}
	slices.Sort(j.Pools)
	for _, name := range j.Pools {
		j.PoolCost = append(j.PoolCost, costs[name])
	}
}

func (d *decoder) join(n *node, pool string, tokens int64, costs map[string]int64) {
	if pool != "" && !d.knownPool(pool) {
		d.fail(n, "unknown pool %q%s", pool, didYouMean(pool, d.pools))
	}
	costs[pool] = tokens
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
	if n := l.get("attempts"); n != nil {
		r.Attempts = int(d.whole(n, 1, 1000))
	}
	b := d.block(l, "backoff", "initial", "max", "multiplier")
	if n := b.get("initial"); n != nil {
		r.Initial = d.duration(n)
		r.Max = max(r.Max, r.Initial)
	}
	if n := b.get("max"); n != nil {
		if r.Max = d.duration(n); r.Max < r.Initial {
			d.wrong(n, "want at least initial")
		}
	}
	if n := b.get("multiplier"); n != nil {
		r.Multiplier = d.multiplier(n)
	}
	if n := l.get("on_status"); n != nil {
		r.OnStatus = d.wholes(n, 100, 599)
	}
	if n := l.get("on_exit"); n != nil {
		r.OnExit = d.wholes(n, 1, 255)
	}
	if n := l.get("idempotent"); n != nil {
		safe := d.boolean(n)
		r.Idempotent = &safe
	}
	if n := l.get("max_wait"); n != nil {
		// Here alone 0s has a meaning: never wait on a pause.
		if r.MaxWait = 0; n.text != "0s" {
			r.MaxWait = d.duration(n)
		}
	}
}

func (d *decoder) expect(e *Expect, l layers) {
	if n := l.get("status"); n != nil {
		e.Status = nil
		for _, item := range d.items(n) {
			e.Status = append(e.Status, d.status(item))
		}
	}
	if n := l.get("exit_codes"); n != nil {
		e.ExitCodes = d.wholes(n, 0, 255)
	}
	if n := l.get("body_matches"); n != nil {
		if text := d.str(n); text != "" {
			e.Body = d.pattern(n, text)
		}
	}
}

// pattern compiles a regular expression; lines often share one.
func (d *decoder) pattern(n *node, text string) *regexp.Regexp {
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

func (d *decoder) output(o *Output, l layers) {
	if n := l.get("inline"); n != nil {
		o.Inline = d.size(n)
	}
	n := l.get("save")
	if n == nil {
		return
	}
	d.usesID = false
	path := d.open(n, jobRefs)
	if d.usesID && (d.id == ".." || strings.ContainsAny(d.id, `/\`)) {
		d.fail(n, "the id %q cannot be part of a path", d.id)
	}
	o.Save = n.file.path(path)
}
