package jobspec

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// shortSecret is the length in bytes below which a secret is not searched for
// in bodies.
const shortSecret = 8

// maxSecret bounds a file that a secret comes from, in bytes.
const maxSecret = 1 << 20

// values is what references stand for.
type values struct {
	vars    map[string]string
	shell   []EnvVar                    // the vars as commands in a shell get them
	item    *item                       // of the job that is being read; nil: none
	public  map[string]bool             // environment variables that are no secrets
	lookup  func(string) (string, bool) // of the environment
	known   map[string]string           // values of ${env:…} and ${file:…}, looked up once, by "env:" or "file:" and the name
	secrets []string                    // among those values, longest first
	folded  []string                    // those that are long enough to be searched for, in lower case
}

func (d *decoder) environment(n *node, name string, as use) (string, error) {
	if !d.public[name] && as != forCall {
		return "", fmt.Errorf("a secret cannot stand here: name %s in public_env if it is none", name)
	}
	return d.lookedUp(n, "env:"+name, d.public[name], func() (string, error) {
		switch value, set := d.lookup(name); {
		case !set:
			return "", fmt.Errorf("the environment variable %s is not set", name)
		case value == "":
			return "", fmt.Errorf("the environment variable %s is empty", name)
		default:
			return value, nil
		}
	})
}

// secretFile returns what a file holds, without one final line break.
func (d *decoder) secretFile(n *node, name string, as use) (string, error) {
	if as != forCall {
		return "", errors.New("a secret cannot stand here")
	}
	path := n.file.path(name)
	return d.lookedUp(n, "file:"+path, false, func() (string, error) {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe might never open
			return "", fmt.Errorf("%q is not a regular file", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
		if line, ended := bytes.CutSuffix(text, []byte("\n")); ended {
			text = bytes.TrimSuffix(line, []byte("\r"))
		}
		switch {
		case err != nil:
			return "", err
		case len(text) == 0:
			return "", fmt.Errorf("%q is empty", path)
		case len(text) > maxSecret:
			return "", fmt.Errorf("%q has over %d MiB", path, maxSecret>>20)
		case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
			return "", fmt.Errorf("%q is no text", path)
		}
		return string(text), nil
	})
}

// lookedUp returns the value of a reference, which is found once for the whole run.
func (d *decoder) lookedUp(n *node, ref string, public bool, find func() (string, error)) (string, error) {
	value, known := d.known[ref]
	if !known {
		var err error
		if value, err = find(); err != nil {
			return "", err
		}
		if d.known[ref] = value; !public {
			d.addSecret(value)
			if len(value) < shortSecret {
				_, name, _ := strings.Cut(ref, ":")
				d.warn(n, "the secret %s has under %d bytes: it is not searched for in bodies", name, shortSecret)
			}
		}
	}
	return value, nil
}

// addSecret adds to the secrets of the run. Jobs share the slice, so it is never
// changed in place.
func (v *values) addSecret(value string) {
	v.secrets = append(slices.Clone(v.secrets), value)
	slices.SortFunc(v.secrets, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	v.secrets = slices.Compact(v.secrets)
	if len(value) >= shortSecret {
		v.folded = append(v.folded, strings.ToLower(value))
	}
}

// checkShown refuses a job in which what is shown everywhere, and cannot be hidden
// without another meaning, holds a secret of any job.
func (d *decoder) checkShown(j *Job, n *node) {
	if len(d.folded) == 0 {
		return
	}
	d.checkName(n, "id", j.ID)
	d.checkName(n, "host", j.Host)
	d.checkName(n, "account", j.Account)
	for _, pool := range j.Pools {
		d.checkName(n, "pools", pool)
	}
	for name, text := range j.Labels {
		d.checkName(n, "labels", name)
		d.checkName(n, "labels", text)
	}
}

func (d *decoder) checkName(n *node, key, name string) {
	name = strings.ToLower(name)
	if slices.ContainsFunc(d.folded, func(secret string) bool { return strings.Contains(name, secret) }) {
		d.fail(cmp.Or(n.get(key), n), "it holds the value of a secret, which would be shown: a variable that is no secret belongs into public_env")
	}
}
