package jobspec

import (
	"slices"
	"strings"
)

var execKeys = []string{"argv", "shell", "dir", "env", "inherit_env", "stdin", "stdin_file"}

// exec reads a command.
func (d *decoder) exec(l layers) *Exec {
	e := &Exec{InheritEnv: true}
	switch n := d.oneOf(l, "argv", "shell"); {
	case n == nil && !d.partial:
		d.fail(d.own.get("exec"), "want argv or shell")
	case n == nil:
	case n.key == "shell":
		d.shell(e, n)
	default:
		d.argv(e, n)
	}
	set(&e.Dir, l.get("dir"), func(n *node) string { return d.filePath("exec", n) })
	d.pairs(l.own.get("env"), l.base.get("env"), equal, func(n *node) {
		if strings.Contains(n.key, "=") {
			d.failAt(n.keyPos(), n, "want a variable's name, without =")
		}
		e.Env = append(e.Env, EnvVar{n.key, d.textOrEmpty("env", n)})
	})
	if n := l.get("inherit_env"); n != nil {
		e.InheritEnv = d.boolean(n)
		d.hash("exec", n.key, n.text)
	}
	switch n := d.oneOf(l, "stdin", "stdin_file"); {
	case n == nil:
	case n.key == "stdin":
		e.Stdin = []byte(d.text("exec", n))
	default:
		e.StdinFile = d.filePath("exec", n)
	}
	return e
}

func (d *decoder) argv(e *Exec, n *node) {
	for i, item := range d.items(n) {
		if i == 0 {
			e.Argv = append(e.Argv, d.text("argv", item))
		} else {
			e.Argv = append(e.Argv, d.textOrEmpty("argv", item))
		}
	}
	if n.kind == list && len(n.kids) == 0 {
		d.fail(n, "want a program and its arguments")
	}
}

// shell takes the text as it is: no reference is looked for, vars come as
// variables. Those that the text names belong to its hash.
func (d *decoder) shell(e *Exec, n *node) {
	e.Shell = d.str(n)
	d.hash("exec", n.key, e.Shell)
	e.Env = slices.Clone(d.values.shell)
	for _, v := range d.values.shell {
		if strings.Contains(e.Shell, v.Name) {
			d.hash("vars", v.Name, v.Value)
		}
	}
}
