//go:build unix

// Bench measures agentlimit beside programs that do the same work, and writes a table in
// Markdown. It builds the product, installs nothing, and leaves out what is not there.
//
//	go run ./testscripts/bench                 # all: about half an hour
//	go run ./testscripts/bench -only requests  # rows by a regexp
//
// In each round every program of a row has its turn, so that what else the machine does
// hits all of them. A figure is the median of the rounds, a ratio the median of those
// within the rounds; behind it the least and the most.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
)

// A row is a piece of work, and the ways to do it: the first is agentlimit's.
type row struct {
	work string
	ways []*way
}

// A way does the work once and returns its figure. What goes wrong there panics, and ends
// the way.
type way struct {
	name string
	tool string // program that must be there; empty: none
	want string // "≥ 1.05": of the ratio to it, or of agentlimit's own figure; empty: nothing
	run  func() float64
	got  []float64 // by round
	err  any       // why it has ended
}

func main() {
	rounds := flag.Int("n", 5, "rounds")
	only := flag.String("only", "", "the rows whose work this regexp matches")
	if flag.Parse(); flag.NArg() > 0 { // a process of our own
		helper(flag.Args())
		return
	}
	chosen := regexp.MustCompile(*only)
	w := newWorld()
	defer w.close()
	fmt.Printf("%d rounds, %s/%s, %d cores\n\n", *rounds, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Println("| work | program | median (least–most) | agentlimit ÷ it | to reach |\n| --- | --- | --- | --- | --- |")
	for _, r := range w.rows() {
		if !chosen.MatchString(r.work) {
			continue
		}
		for range *rounds {
			for _, way := range r.ways {
				way.turn()
			}
		}
		r.print()
	}
}

// turn does the work once more.
func (w *way) turn() {
	if _, err := exec.LookPath(w.tool); w.tool != "" && err != nil {
		w.err = "not here"
	}
	if w.err != nil {
		return
	}
	defer func() {
		if err := recover(); err != nil {
			fmt.Fprintln(os.Stderr, w.name, err)
			w.err = "does not work here"
		}
	}()
	w.got = append(w.got, w.run())
}

func (r *row) print() {
	work, ours := r.work, r.ways[0].got
	for i, w := range r.ways {
		judged, ratio, figure := w.got, "", spread(w.got)
		if i > 0 {
			judged = nil
			for k := range min(len(ours), len(w.got)) {
				judged = append(judged, ours[k]/w.got[k])
			}
			ratio = spread(judged)
		}
		if w.err != nil {
			figure = fmt.Sprint(w.err)
		}
		fmt.Printf("| %s | %s | %s | %s | %s |\n", work, w.name, figure, ratio, verdict(w.want, judged))
		work = ""
	}
}

// verdict says whether the median of figures is what is wanted.
func verdict(want string, figures []float64) string {
	var sign string
	var bound float64
	if _, err := fmt.Sscanf(want, "%s %g", &sign, &bound); err != nil || len(figures) == 0 {
		return want
	}
	if v := median(figures); sign == "≥" && v < bound || sign == "≤" && v > bound {
		return want + ": **no**"
	}
	return want + ": yes"
}

// spread shows the median of figures, and if there are several the least and the most.
func spread(figures []float64) string {
	number := func(v float64) string {
		if v >= 1000 {
			return fmt.Sprintf("%.0f", v)
		}
		return fmt.Sprintf("%.4g", v)
	}
	if len(figures) == 0 {
		return ""
	}
	least, most := slices.Min(figures), slices.Max(figures)
	if least == most {
		return number(most)
	}
	return fmt.Sprintf("%s (%s–%s)", number(median(figures)), number(least), number(most))
}

// median returns the middle figure, the upper one of two.
func median(figures []float64) float64 {
	return slices.Sorted(slices.Values(figures))[len(figures)/2]
}
