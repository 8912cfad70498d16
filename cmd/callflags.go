package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"agentlimit/limits"
)

// callOptions say under which limits calls are made that no file describes.
type callOptions struct {
	host, account string
	pools         []string
	limits        typedLimits
	rate          string
	burst         int
	timeout       time.Duration // 0: as in a file
}

// typedLimits are limits as a file has them: entries by "hosts", "accounts" or
// "pools", and name.
type typedLimits map[string]map[string]map[string]any

func (l typedLimits) set(kind, name string, entry map[string]any) {
	if l[kind] == nil {
		l[kind] = make(map[string]map[string]any)
	}
	l[kind][name] = entry
}

// commonPool is the pool of the bucket that --rate puts over all calls.
const commonPool = "all"

func (o *callOptions) addFlags(f *pflag.FlagSet) {
	o.limits = make(typedLimits)
	f.StringVar(&o.host, "host", "", "the `HOST` that is called (default the URL's)")
	f.StringVar(&o.account, "account", "", "the `ACCOUNT` that is used")
	f.StringArrayVar(&o.pools, "pool", nil, "a `POOL` to join; may be repeated")
	f.Var(limitFlag(o.limits), "limit", "a limit, such as host/api.example.com=4,10/s,burst=20; may be repeated; kinds: host, account, pool")
	f.Var(rateFlag(&o.rate), "rate", "most calls that start over time, of all, such as 10/s")
	f.Var(countFlag(&o.burst, 1, 1<<30), "burst", "calls that may start at once, with --rate")
	f.Var(durationFlag(&o.timeout, 1), "timeout", "how long one attempt may run (default 60s for a URL, none for a command)")
}

// describe adds the limits to a document, and what each call needs to its job.
func (o *callOptions) describe(doc, job map[string]any) error {
	pools := slices.Clone(o.pools)
	if idle := o.idleLimit(job["http"] != nil); idle != "" {
		return &hinted{fmt.Errorf("--limit %s: no call needs it", idle), "--host, --account and --pool say what a call needs"}
	}
	switch {
	case o.burst > 0 && o.rate == "":
		return &hinted{errors.New("--burst is without --rate"), "--rate 10/s --burst 20 lets 20 start at once"}
	case o.rate != "":
		entry := map[string]any{"rate": o.rate}
		if o.burst > 0 {
			entry["burst"] = o.burst
		}
		o.limits.set("pools", commonPool, entry)
		pools = append(pools, commonPool)
	}
	for _, pool := range o.pools { // one without a limit is not limited
		if o.limits["pools"][pool] == nil {
			o.limits.set("pools", pool, map[string]any{})
		}
	}
	doc["limits"] = o.limits
	for key, value := range map[string]string{"host": o.host, "account": o.account} {
		if value != "" {
			job[key] = withLine(value)
		}
	}
	if len(pools) > 0 {
		job["pools"] = pools
	}
	if o.timeout > 0 {
		job["timeout"] = o.timeout.String()
	}
	return nil
}

// idleLimit returns a limit that no call falls under, which would run without it;
// empty if there is none. A call of a URL may have any host.
func (o *callOptions) idleLimit(called bool) string {
	for kind, names := range map[string][]string{"host": {o.host}, "account": {o.account}, "pool": o.pools} {
		for limited := range o.limits[kind+"s"] {
			needed := slices.ContainsFunc(names, func(name string) bool {
				return strings.EqualFold(name, limited) || strings.Contains(name, "{}") || kind == "host" && strings.HasPrefix(strings.ToLower(name), strings.ToLower(limited)+":")
			})
			if !needed && !strings.HasPrefix(limited, "*") && !(kind == "host" && called && o.host == "") {
				return kind + "/" + limited
			}
		}
	}
	return ""
}

// limitFlag reads KIND/NAME=LIMIT,... and may be given again and again.
func limitFlag(to typedLimits) *value {
	return &value{kind: "KIND/NAME=LIMIT,...", read: func(s string) error {
		key, list, found := strings.Cut(s, "=")
		kind, name, named := strings.Cut(key, "/")
		if !found || !named || name == "" || !slices.Contains([]string{"host", "account", "pool"}, kind) {
			return errors.New("want host/NAME=LIMIT, account/NAME=LIMIT or pool/NAME=LIMIT")
		}
		entry := make(map[string]any)
		for one := range strings.SplitSeq(list, ",") {
			if err := readLimit(entry, one); err != nil {
				return err
			}
		}
		to.set(kind+"s", name, entry)
		return nil
	}}
}

// readLimit reads a concurrency, a rate or a burst.
func readLimit(entry map[string]any, s string) error {
	field, text := "burst", s
	if burst, found := strings.CutPrefix(s, "burst="); found {
		text = burst
	} else if field = "concurrency"; strings.Contains(s, "/") {
		field = "rate"
	}
	if entry[field] != nil {
		return fmt.Errorf("%q: a second %s", s, field)
	}
	if field == "rate" {
		entry[field] = text
		_, err := limits.ParseRate(text)
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || strconv.Itoa(n) != text { // a file takes no 04
		return fmt.Errorf("%q: want a number of calls at once, a rate such as 10/s, or burst=20", s)
	}
	entry[field] = n
	return nil
}

func rateFlag(to *string) *value {
	return &value{kind: "RATE", read: func(s string) error {
		_, err := limits.ParseRate(s)
		if err == nil {
			*to = s
		}
		return err
	}}
}
