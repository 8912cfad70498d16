package jobspec

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// sources are what a reference may begin with; $ and { in front of anything else
// are text.
var sources = []string{"env", "file", "var", "item", "job"}

// use says what a text with references is for.
type use uint8

const (
	forCall     use = iota // it may hold secrets
	forAll                 // it may not
	forPath                // nor may what is put in lead to another folder
	forVar                 // nothing may be put in
	asTyped                // nothing is looked for
	forRewrite             // only items are put in; the rest stays as it is typed
	forHash                // secrets and the id stay by name
	forTextHash            // and quotes make no difference
	forPathHash            // nor does what stands in front of the mark
)

// text returns a text of a call, with its references put in. It is not empty.
func (d *decoder) text(n *node) string { return d.filled(n, forCall) }

// open is text where no secrets may stand.
func (d *decoder) open(n *node) string { return d.filled(n, forAll) }

// content is text where what is put in may be empty.
func (d *decoder) content(n *node) string { return d.expand(n, d.str(n), forCall) }

// contentOrNone is content where an empty text in quotes means something, too.
func (d *decoder) contentOrNone(n *node) string { return d.expand(n, d.strOrEmpty(n), forCall) }

// filled returns a text that is not empty, or reports why it is.
func (d *decoder) filled(n *node, as use) string {
	typed, faults := d.str(n), d.faults
	s := d.expand(n, typed, as)
	if s == "" && typed != "" && d.faults == faults {
		d.fail(n, "what is put in leaves it empty")
	}
	return s
}

// filePath returns a path, which is relative to the file that it is written in,
// as the working folder sees it.
func (d *decoder) filePath(n *node, as use) string {
	path := d.filled(n, as)
	if d.folder != "" && path != "" && !filepath.IsAbs(path) {
		d.retyped[n] = escape(n.file.folder(d.folder)) + mark + n.text
	}
	return n.file.path(path)
}

// expand puts the references of s, which is typed at n, in. Values that were put
// in are not looked at again.
func (d *decoder) expand(n *node, s string, as use) string {
	if as == asTyped || !strings.Contains(s, "${") || n.key == "shell" && n == d.root.get("exec").get("shell") {
		return s
	}
	b, plain := d.expanded[:0], d.typed[:0] // plain: without what was put in
	defer func() { d.expanded, d.typed = b, plain }()
	kept := "" // in front of b, as it is to be typed
	for {
		text, rest, found := strings.Cut(s, "${")
		plain = append(plain, text...)
		if !found {
			b = append(b, text...)
			if as == forRewrite {
				return kept + escape(string(b))
			}
			return string(b)
		}
		source, _, colon := strings.Cut(rest, ":")
		literal := strings.HasSuffix(text, "$")
		if literal {
			text = text[:len(text)-1]
		}
		b = append(b, text...)
		if literal || !colon || !slices.Contains(sources, source) {
			b = append(b, "${"...)
			s = rest
			continue
		}
		ref, rest, closed := strings.Cut(rest, "}")
		value, err := d.reference(n, ref, plain, as)
		if err == nil && as == forCall {
			err = d.leads(n, ref, b, value, rest, plain)
		}
		switch stays := as == forRewrite && source != "item"; {
		case err != nil:
		case !closed:
			err = errors.New("want a closing }")
		case stays:
			kept, value = kept+d.escapeBefore(string(b))+value, ""
			b = b[:0]
		}
		if d.putIn += len(value); d.putIn > maxPutIn {
			err = fmt.Errorf("the references of one job put in over %d MiB", maxPutIn>>20)
		}
		if err != nil {
			d.failReference(n, ref, err)
			return ""
		}
		b = append(b, value...)
		s = rest
	}
}

// maxPutIn bounds the bytes that a job's references put in, which may be far more
// than is written; those that a hash is made of count, too.
const maxPutIn = 64 << 20

// escape returns the text that expand makes s of.
func escape(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// theDollar is put in for "$" in front of a reference, with which it would be a
// literal, where a job is written with a row for it.
const theDollar = "${item:value}"

// escapeBefore is escape for a text in front of a reference.
func (d *decoder) escapeBefore(s string) string {
	text := strings.TrimRight(escape(s), "$")
	dollars := len(escape(s)) - len(text)
	d.dollar = d.dollar || dollars > 0
	return text + strings.Repeat(theDollar, dollars)
}

// errLater is the error of an item in the defaults, which jobs with rows have.
var errLater = errors.New("known with each row only")

// unknownItem is the error of a field that no row has.
type unknownItem struct{ error }

func (d *decoder) failReference(n *node, ref string, err error) {
	if err == errLater {
		d.faults++
		return
	}
	row := d.item
	if _, any := err.(unknownItem); any && row.alike {
		d.item = nil // it is wrong for every row
	}
	d.fail(n, "${%s}: %v", ref, err)
	d.item = row
}

// reference returns what ${ref} stands for, behind plain text.
func (d *decoder) reference(n *node, ref string, plain []byte, as use) (string, error) {
	source, name, _ := strings.Cut(ref, ":")
	switch {
	case as == forVar: // values are put in once: it would stay as it is
		return "", errors.New("want plain text: put references where the var is used")
	case source == "item" && name != "":
		return d.itemValue(n, name, plain, as)
	case as == forRewrite && source == "file":
		return "${file:" + n.file.folder(d.folder) + mark + name + "}", nil
	case as == forRewrite:
		return "${" + ref + "}", nil
	case source == "var" && name != "":
		value, known := d.vars[name]
		if !known {
			return "", fmt.Errorf("unknown var%s", didYouMean(name, slices.Sorted(maps.Keys(d.vars))))
		}
		return value, nil
	case as >= forHash:
		if source == "file" {
			ref = "file:" + behindMark(name)
		}
		return "\x00" + ref, nil // no text that was typed looks like it
	case source == "env" && name != "":
		return d.environment(n, name, as)
	case source == "file" && name != "":
		return d.secretFile(n, name, as)
	case ref == "job:id" && d.job != nil:
		if n == d.root.get("id") {
			return "", errors.New("a job's id cannot stand here")
		}
		return d.job.ID, fits(d.job.ID, "id", as)
	}
	return "", errors.New("unknown reference: want ${env:NAME}, ${file:PATH}, ${var:NAME}, ${item:FIELD} or ${job:id}; $${ is a literal ${")
}

// fits refuses a value that would lead a path to another folder.
func fits(value, what string, as use) error {
	if as == forPath && value == "" {
		return fmt.Errorf("the %s is empty: it cannot be part of a path", what)
	}
	if as == forPath && (value == ".." || strings.ContainsAny(value, `/\`)) {
		return fmt.Errorf("the %s %q cannot be part of a path", what, value)
	}
	return nil
}

// itemValue returns the value of a row's field, as it stands behind plain text.
func (d *decoder) itemValue(n *node, name string, plain []byte, as use) (string, error) {
	switch {
	case d.item == nil && d.itemLater:
		return "", errLater
	case d.item == nil:
		return "", errors.New("no for_each: there is no item")
	}
	value, known := d.item.get(name)
	switch {
	case !known:
		known := didYouMean(name, d.item.names)
		if len(d.item.names) == 1 && strings.ContainsAny(d.item.names[0], ";\t|") {
			known += ", in one column: the fields are not separated by commas"
		}
		return "", unknownItem{errors.New("unknown item" + known)}
	case strings.Contains(value, "\x00"):
		return "", errors.New("want an item without NUL")
	case n.key != "url" || n != d.root.get("http").get("url") || !behindHost(plain):
	case (value == "." || value == "..") && !bytes.ContainsAny(plain, "?#"):
		return "", fmt.Errorf("the item %q cannot be part of a path", value)
	default:
		value = strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	}
	return value, fits(value, "item", as)
}

// behindHost reports whether the next character of a URL belongs to its path or
// what follows that.
func behindHost(plain []byte) bool {
	if _, rest, found := bytes.Cut(plain, []byte("://")); found {
		plain = rest
	}
	return bytes.ContainsAny(plain, "/?#")
}

// readVars takes up the vars, for references and as VAR_NAME variables, sorted by
// name.
func (d *decoder) readVars(_ *Spec, n *node) {
	d.pairs(n, func(kid *node) {
		d.vars[kid.key] = d.expand(kid, d.str(kid), forVar)
	})
	all := &item{}
	for _, name := range slices.Sorted(maps.Keys(d.vars)) {
		all.names, all.values = append(all.names, name), append(all.values, d.vars[name])
	}
	d.shell = d.shellVariables(n, "VAR_", all)
}

// shellVariables returns what is handed to shells as variables, since their text is
// never looked at. It reports, at n, two that would have one name.
func (d *decoder) shellVariables(n *node, prefix string, of *item) (all []EnvVar) {
	first := make(map[string]string, len(of.names)) // by variable
	for i, name := range of.names {
		v := EnvVar{prefix + variableName(name), of.values[i]}
		if other, taken := first[v.Name]; taken {
			d.fail(cmp.Or(n.get(name), n), "%q and %q would both be the variable %s", other, name, v.Name)
		} else {
			first[v.Name] = name
		}
		all = append(all, v)
	}
	return all
}

// variableName upper-cases a name and makes _ of what a variable's name cannot
// hold.
func variableName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return '_'
		}
		return unicode.ToUpper(r)
	}, name)
}
