package report

import (
	"io"
	"testing"
)

func BenchmarkPage(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		r, err := New(made(100_000), Options{Limits: limitOf})
		if err != nil {
			b.Fatal(err)
		}
		if err := r.HTML(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
