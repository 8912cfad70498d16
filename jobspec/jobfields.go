package jobspec

import (
	"cmp"
	"math"
	"slices"
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

// The keys of a job. The id comes first, since the others may refer to it, and
// the URL behind the host, which it must not override.
var jobFields = []field[Job]{
	{"id", func(d *decoder, j *Job, n *node) { j.ID = cmp.Or(d.name(n), j.ID) }},
	{"host", func(d *decoder, j *Job, n *node) { j.Host = parse(d, n, HostTag) }},
	{"account", func(d *decoder, j *Job, n *node) { j.Account = d.name(n) }},
	{"pools", (*decoder).joined},
	{"priority", func(d *decoder, j *Job, n *node) { j.Priority = d.whole(n, math.MinInt32, math.MaxInt32) }},
	{"deadline", func(d *decoder, j *Job, n *node) { j.Deadline = parse(d, n, parseWhen) }},
	{"not_before", func(d *decoder, j *Job, n *node) { j.NotBefore = parse(d, n, parseWhen) }},
	{"timeout", func(d *decoder, j *Job, n *node) { j.Timeout = parse(d, n, durationOr("none")) }},
	{"cost", (*decoder).cost},
	{"retry", func(d *decoder, j *Job, n *node) { fields(d, &j.Retry, n, retryFields) }},
	{"expect", func(d *decoder, j *Job, n *node) { fields(d, &j.Expect, n, expectFields) }},
	{"output", func(d *decoder, j *Job, n *node) { fields(d, &j.Output, n, outputFields) }},
	{"labels", (*decoder).labels},
	{"http", (*decoder).http},
	{"exec", (*decoder).exec},
	{"for_each", func(d *decoder, _ *Job, n *node) { d.failKey(n, "it belongs to a job of a YAML or JSON document") }},
}

var retryFields = []field[Retry]{
	{"attempts", func(d *decoder, r *Retry, n *node) { r.Attempts = int(d.whole(n, 1, 1000)) }},
	{"backoff", (*decoder).backoff},
	{"on_status", func(d *decoder, r *Retry, n *node) { r.OnStatus = d.numbers(n, 100, 599) }},
	{"on_exit", func(d *decoder, r *Retry, n *node) { r.OnExit = d.numbers(n, 1, 255) }},
	{"idempotent", func(d *decoder, r *Retry, n *node) { r.Idempotent = new(d.boolean(n)) }},
	{"max_wait", func(d *decoder, r *Retry, n *node) { r.MaxWait = parse(d, n, durationOr("0s")) }},
}

var backoffFields = []field[Retry]{
	{"initial", func(d *decoder, r *Retry, n *node) { r.Initial = parse(d, n, parseDuration) }},
	{"max", func(d *decoder, r *Retry, n *node) { r.Max = parse(d, n, parseDuration) }},
	{"multiplier", func(d *decoder, r *Retry, n *node) { r.Multiplier = parse(d, n, parseMultiplier) }},
}

var expectFields = []field[Expect]{
	{"status", func(d *decoder, e *Expect, n *node) {
		e.Status = each(d, n, func(n *node) StatusRange { return parse(d, n, parseStatus) })
	}},
	{"exit_codes", func(d *decoder, e *Expect, n *node) { e.ExitCodes = d.numbers(n, 0, 255) }},
	{"body_matches", func(d *decoder, e *Expect, n *node) { e.Body = d.regexp(n) }},
}

var outputFields = []field[Output]{
	{"inline", func(d *decoder, o *Output, n *node) { o.Inline = parse(d, n, parseInline) }},
	{"save", func(d *decoder, o *Output, n *node) { o.Save = d.filePath(n, forPath) }},
}

// merged are the mappings of the defaults that a job's own are laid over; any
// other value of a job replaces the default.
var merged = []string{"retry", "backoff", "expect", "output", "labels", "http", "headers", "tls", "exec", "env"}

// over lays a job's own value over another.
func over(own, base *node) *node {
	if own.kind == mapping && base.kind == mapping && slices.Contains(merged, own.key) {
		return join(own, base, over)
	}
	return own
}

// withDefaults returns the job n with what the defaults add to it.
func (d *decoder) withDefaults(n *node) *node {
	if d.defaults == nil || n.kind != mapping {
		return n
	}
	all := join(n, d.defaults, over)
	all.kids = slices.DeleteFunc(all.kids, func(kid *node) bool {
		return (kid.key == "http" || kid.key == "exec") && n.get(kid.key) == nil
	})
	return all
}

// read returns the job that an entry describes; d.errs says what is wrong with
// it. If it names no id, name makes one of its hash.
func (d *decoder) read(e entry, name func(hash string) string) *Job {
	j, n := &d.checked, e.n
	if !d.checking {
		j = new(Job)
	}
	*j = standard
	if e.item == nil {
		n = d.withDefaults(n)
	}
	j.Pos = n.pos()
	d.root, d.path, d.job, d.item = n, e.path, j, e.item
	if e.item != nil {
		j.Pos = e.item.pos
		n = d.withItems(n)
		d.root = n
	}
	d.putIn = 0
	clear(d.retyped)
	clear(d.bare)
	http := n.get("http")
	if http != nil {
		j.Timeout = httpTimeout
	}
	if unnamed := n.get("id") == nil; unnamed || !d.checking {
		j.Hash = d.hash(cmp.Or(http, n.get("exec"), n))
		if unnamed {
			j.ID = name(j.Hash)
		}
	}
	fields(d, j, n, jobFields)
	if n.kind != mapping {
		return j
	}
	d.complete(n)
	d.checkCosts(j, n)
	d.checkShown(j, n)
	j.Secrets = d.secrets
	if d.folder != "" && len(d.errs) == 0 {
		d.dollar = false
		d.buffer = d.json(d.buffer[:0], written(j, n), forRewrite)
		if j.Written = string(d.buffer); d.dollar {
			j.Written = `{"for_each":{"values":["$"]},` + j.Written[1:]
		}
	}
	return j
}

// withItems returns the job n with the items that a shell gets: as variables of its
// environment, behind which the job's own win.
func (d *decoder) withItems(n *node) *node {
	shell := n.get("exec").get("shell")
	if shell == nil {
		return n
	}
	env := mappingAt(shell, "env")
	for _, v := range d.shellVariables(shell, "ITEM_", d.item) {
		env.kids = append(env.kids, literal(shell, v.Name, v.Value))
	}
	return join(n, mappingAt(n, "", mappingAt(n, "exec", env)), over)
}

// checkDefaults reports what is wrong in the defaults, whether or not a job
// uses it.
func (d *decoder) checkDefaults(_ *Spec, n *node) {
	d.checkAhead(n)
	if n.kind == mapping {
		d.defaults = n
	}
}

// checkAhead reports what is wrong in a job whose items are not known yet, and returns
// what is known.
func (d *decoder) checkAhead(n *node) *Job {
	j := new(standard)
	d.job, d.item, d.itemLater = j, nil, true
	j.ID = "id"
	fields(d, j, n, jobFields)
	d.job, d.itemLater = nil, false
	return j
}

// checkTemplate reports what is wrong in a job with rows, whatever they are.
func (d *decoder) checkTemplate(n *node) {
	d.root = n
	j := d.checkAhead(n)
	d.complete(n)
	d.checkCosts(j, n)
}

func (d *decoder) backoff(r *Retry, n *node) {
	fields(d, r, n, backoffFields)
	if most := n.get("max"); most != nil && r.Max < r.Initial {
		d.wrong(most, "want at least initial")
	}
	r.Max = max(r.Max, r.Initial)
}

func (d *decoder) labels(j *Job, n *node) {
	j.Labels = make(map[string]string)
	d.pairs(n, func(kid *node) { j.Labels[kid.key] = d.expand(kid, d.str(kid), forAll) })
}

// joined reads the pools that a job joins.
func (d *decoder) joined(j *Job, n *node) {
	for _, item := range d.items(n) {
		d.join(j, item, d.open(item), 1)
	}
}

// cost reads the tokens that a job takes. A cost for a pool joins it.
func (d *decoder) cost(j *Job, n *node) {
	if n.kind != mapping {
		j.Cost = d.whole(n, 0, maxCount)
		return
	}
	for _, kid := range n.kids {
		if tokens := d.whole(kid, 0, maxCount); kid.key == "requests" {
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
	if !member {
		j.Pools = slices.Insert(j.Pools, at, pool)
		j.PoolCost = slices.Insert(j.PoolCost, at, 0)
	}
	j.PoolCost[at] = tokens
}

// checkCosts refuses a cost that its bucket can never hold.
func (d *decoder) checkCosts(j *Job, n *node) {
	at := cmp.Or(n.get("cost"), n)
	d.needs = j.Needs(d.needs[:0], &d.table)
	for _, need := range d.needs {
		if need.Limit == (limits.Limit{}) {
			continue
		}
		if need.Limit.Validate() != nil {
			d.fail(at, "the limits of %s: %v", need.Key, d.table.Check(need.Key))
		} else if need.Limit.Rate != (limits.Rate{}) && need.Cost > need.Limit.Burst {
			d.fail(at, "a cost of %d is above the burst of %s, %d: it could never start", need.Cost, need.Key, need.Limit.Burst)
		}
	}
}
