package main

import (
	"os"
	"testing"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
)

func TestMain(m *testing.M) {
	radv.Main()
	os.Exit(m.Run())
}

// TestOneModel runs the kernels of a token of the smallest model, in the shapes that its plan has.
func TestOneModel(t *testing.T) {
	on, err := target.Lookup("gfx1201")
	if err != nil {
		t.Fatal(err)
	}
	s, err := synth.Parse("qwen3-0.6b:1")
	if err != nil {
		t.Fatal(err)
	}
	o := options{entries: []string{"decode/1"}, layers: 1}
	rows, err := o.target(t.Context(), on, []synth.Shape{s}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var sum summary
	for _, r := range rows {
		sum.add(r)
		if r.result != bits && r.result != near || r.counts.Instructions == 0 || r.counts.LoadedBytes == 0 {
			t.Errorf("%s: %s, %+v", r.kernel, r.result, r.counts)
		}
	}
	if err := sum.err(); err != nil || sum.ran < 6 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// TestDistance is relative to the largest number, and infinite where one is none.
func TestDistance(t *testing.T) {
	want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}
	got := []byte{0, 0, 0xc0, 0x3f, 0, 0, 0, 0x40}
	if d := distance(ir.F32, want, got); d != .25 {
		t.Errorf("1 and 1.5 beside 2 are %g apart", d)
	}
	if d := distance(ir.F32, want, []byte{0, 0, 0xc0, 0x7f, 0, 0, 0, 0x40}); !(d > 1e9) {
		t.Errorf("a number and none are %g apart", d)
	}
}

// TestSummary: a fault, or too few that ran, fail.
func TestSummary(t *testing.T) {
	for _, c := range []struct {
		results []string
		bad     bool
	}{
		{[]string{bits, near, noCode}, false},
		{[]string{bits, "race in shared memory at 0x4"}, true},
		{[]string{bits, differs}, true},
		{[]string{bits, inputs}, true},
	} {
		var s summary
		for _, r := range c.results {
			s.add(&row{result: r})
		}
		if err := s.err(); (err != nil) != c.bad {
			t.Errorf("%q: %v", c.results, err)
		}
	}
}
