package jobspec

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// shortSecret is the length in bytes below which a secret is not searched for
// in bodies.
const shortSecret = 8

// allowed says which references a field may hold.
type allowed uint8

const (
	openRefs   allowed = 1 << iota // values that are no secrets
	secretRefs                     // secrets
	jobRefs                        // ${job:id}
)

// values is what references stand for. It is made once for all jobs.
type values struct {
	vars   map[string]string
	public map[string]bool // environment variables that are no secrets
	lookup func(string) (string, bool)
	env    map[string]envValue // looked up before
	shell  []EnvVar            // the vars as commands in a shell get them
}

func newValues(lookup func(string) (string, bool)) values {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	return values{make(map[string]string), make(map[string]bool), lookup, make(map[string]envValue), nil}
}

type envValue struct {
	value string
	err   error
}

// getenv returns an environment variable, the same for as long as the run lasts.
func (v *values) getenv(name string) (value string, first bool, err error) {
	have, known := v.env[name]
	if !known {
		var set bool
		have.value, set = v.lookup(name)
		switch {
		case !set:
			have.err = fmt.Errorf("the environment variable %s is not set", name)
		case have.value == "":
			have.err = fmt.Errorf("the environment variable %s is empty", name)
		}
		v.env[name] = have
	}
	return have.value, !known, have.err
}

// expand puts the references of s, which is typed at n, in. The second result
// names secrets and the job's id instead of holding them: it is what a job's
// hash covers. Values that were put in are not looked at again.
func (d *decoder) expand(n *node, s string, may allowed) (value, named string) {
	if !strings.Contains(s, "${") {
		return s, s
	}
	var v, byName strings.Builder
	for {
		text, rest, found := strings.Cut(s, "${")
		if !found {
			v.WriteString(s)
			byName.WriteString(s)
			return v.String(), byName.String()
		}
		if plain, literal := strings.CutSuffix(text, "$"); literal {
			v.WriteString(plain + "${")
			byName.WriteString(plain + "$${")
			s = rest
			continue
		}
		ref, rest, closed := strings.Cut(rest, "}")
		one, secret, err := d.reference(n, ref, may)
		if err == nil && !closed {
			err = fmt.Errorf("want a closing }")
		}
		if err != nil {
			d.fail(n, "${%s}: %v", ref, err)
			return "", ""
		}
		v.WriteString(text + one)
		if secret {
			one = "${" + ref + "}"
		}
		byName.WriteString(text + one)
		s = rest
	}
}

// reference returns what ${ref} stands for, and whether a hash names it rather
// than its value.
func (d *decoder) reference(n *node, ref string, may allowed) (value string, named bool, err error) {
	source, name, _ := strings.Cut(ref, ":")
	switch {
	case source == "var" && name != "":
		value, known := d.vars[name]
		if !known {
			err = fmt.Errorf("unknown var%s", didYouMean(name, slices.Sorted(maps.Keys(d.vars))))
		}
		return value, false, err
	case source == "env" && name != "":
		value, err := d.environment(n, name, may)
		return value, true, err
	case ref == "job:id":
		if may&jobRefs == 0 {
			return "", false, fmt.Errorf("a job's id cannot stand here")
		}
		d.usesID = true
		return d.id, true, nil
	}
	return "", false, fmt.Errorf("unknown reference: want ${env:NAME}, ${var:NAME} or ${job:id}; $${ is a literal ${")
}

func (d *decoder) environment(n *node, name string, may allowed) (string, error) {
	if !d.public[name] && may&secretRefs == 0 {
		return "", fmt.Errorf("a secret cannot stand here: name %s in public_env if it is none", name)
	}
	value, first, err := d.getenv(name)
	if err != nil || d.public[name] {
		return value, err
	}
	if first && len(value) < shortSecret {
		d.warn(n, "the secret %s has under %d bytes: it is not searched for in bodies", name, shortSecret)
	}
	d.secrets = append(d.secrets, value)
	return value, nil
}

// shellVars returns the vars as VAR_NAME variables, sorted by name.
func (d *decoder) shellVars(root *node) []EnvVar {
	from := make(map[string]string)
	var all []EnvVar
	for _, name := range slices.Sorted(maps.Keys(d.vars)) {
		variable := "VAR_" + shellName(name)
		if other, doubled := from[variable]; doubled {
			d.fail(root.get(name), "%q and %q would both be the variable %s", other, name, variable)
		}
		from[variable] = name
		all = append(all, EnvVar{variable, d.vars[name]})
	}
	return all
}

// shellName upper-cases a name and makes _ of what a variable's name cannot hold.
func shellName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, name)
}
