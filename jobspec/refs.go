package jobspec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// shortSecret is the length in bytes below which a secret is not searched for
// in bodies.
const shortSecret = 8

// values is what references stand for.
type values struct {
	vars    map[string]string
	shell   []EnvVar                    // the vars as commands in a shell get them
	public  map[string]bool             // environment variables that are no secrets
	lookup  func(string) (string, bool) // of the environment
	env     map[string]string           // looked up before, the same for the whole run
	secrets []string                    // among those values, longest first
	recent  []string                    // secrets that were put into the latest text
}

// sources are what a reference may begin with; $ and { in front of anything else
// are text. Files and items are refused, so that they can get a meaning later.
var sources = []string{"env", "file", "var", "item", "job"}

// use says what a text with references is for.
type use uint8

const (
	forCall     use = iota // it may hold secrets
	forAll                 // it may not
	forPath                // nor may what is put in lead to another folder
	forVar                 // nothing may be put in
	forFile                // it stays as it is typed
	forHash                // all but vars stays by name
	forTextHash            // and quotes make no difference
	forPathHash            // nor does what stands in front of the mark
)

// text returns a text of a call, with its references put in. It is not empty.
func (d *decoder) text(n *node) string { return d.expand(n, d.str(n), forCall) }

// textOrEmpty is text for where an empty text in quotes means something.
func (d *decoder) textOrEmpty(n *node) string { return d.expand(n, d.strOrEmpty(n), forCall) }

// open returns a text that may hold no secrets.
func (d *decoder) open(n *node) string { return d.expand(n, d.str(n), forAll) }

// filePath returns a path, which is relative to the file that it is written in,
// as the working folder sees it.
func (d *decoder) filePath(n *node, as use) string {
	path := d.expand(n, d.str(n), as)
	if d.folder != "" && path != "" && !filepath.IsAbs(path) {
		d.retyped[n] = escape(n.file.folder(d.folder)) + mark + n.text
	}
	return n.file.path(path)
}

// expand puts the references of s, which is typed at n, in. Values that were put
// in are not looked at again.
func (d *decoder) expand(n *node, s string, as use) string {
	d.recent = d.recent[:0]
	if as == forFile || !strings.Contains(s, "${") {
		return s
	}
	var b strings.Builder
	for {
		text, rest, found := strings.Cut(s, "${")
		if !found {
			b.WriteString(s)
			return b.String()
		}
		if before, literal := strings.CutSuffix(text, "$"); literal {
			b.WriteString(before + "${")
			s = rest
			continue
		}
		if source, _, colon := strings.Cut(rest, ":"); !colon || !slices.Contains(sources, source) {
			b.WriteString(text + "${")
			s = rest
			continue
		}
		ref, rest, closed := strings.Cut(rest, "}")
		value, err := d.reference(n, ref, as)
		if err == nil && !closed {
			err = errors.New("want a closing }")
		}
		if err != nil {
			d.fail(n, "${%s}: %v", ref, err)
			return ""
		}
		b.WriteString(text + value)
		s = rest
	}
}

// escape returns the text that expand makes s of.
func escape(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// reference returns what ${ref} stands for.
func (d *decoder) reference(n *node, ref string, as use) (string, error) {
	source, name, _ := strings.Cut(ref, ":")
	switch {
	case as == forVar: // values are put in once: it would stay as it is
		return "", errors.New("want plain text: put references where the var is used")
	case source == "var" && name != "":
		value, known := d.vars[name]
		if !known {
			return "", fmt.Errorf("unknown var%s", didYouMean(name, slices.Sorted(maps.Keys(d.vars))))
		}
		return value, nil
	case as >= forHash:
		return "\x00" + ref, nil // no text that was typed looks like it
	case source == "env" && name != "":
		return d.environment(n, name, as)
	case ref == "job:id":
		switch id := d.job.ID; {
		case n == d.root.get("id"):
			return "", errors.New("a job's id cannot stand here")
		case as == forPath && (id == ".." || strings.ContainsAny(id, `/\`)):
			return "", fmt.Errorf("the id %q cannot be part of a path", id)
		default:
			return id, nil
		}
	}
	return "", errors.New("unknown reference: want ${env:NAME}, ${var:NAME} or ${job:id}; $${ is a literal ${")
}

func (d *decoder) environment(n *node, name string, as use) (string, error) {
	if !d.public[name] && as != forCall {
		return "", fmt.Errorf("a secret cannot stand here: name %s in public_env if it is none", name)
	}
	value, known := d.env[name]
	if !known {
		var set bool
		switch value, set = d.lookup(name); {
		case !set:
			return "", fmt.Errorf("the environment variable %s is not set", name)
		case value == "":
			return "", fmt.Errorf("the environment variable %s is empty", name)
		case !d.public[name] && len(value) < shortSecret:
			d.warn(n, "the secret %s has under %d bytes: it is not searched for in bodies", name, shortSecret)
		}
		d.env[name] = value
		if !d.public[name] {
			d.addSecret(value)
		}
	}
	if !d.public[name] {
		d.recent = append(d.recent, value)
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
}

// readVars takes up the vars, for references and as VAR_NAME variables, sorted by
// name.
func (d *decoder) readVars(_ *Spec, n *node) {
	d.pairs(n, func(kid *node) {
		value := d.str(kid)
		if kid.file != flagFile {
			value = d.expand(kid, value, forVar)
		}
		d.vars[kid.key] = value
	})
	from := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(d.vars)) {
		variable := "VAR_" + variableName(name)
		if other, doubled := from[variable]; doubled {
			d.fail(n.get(name), "%q and %q would both be the variable %s", other, name, variable)
		}
		from[variable] = name
		d.shell = append(d.shell, EnvVar{variable, d.vars[name]})
	}
}

// variableName upper-cases a name and makes _ of what a variable's name cannot
// hold.
func variableName(name string) string {
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
