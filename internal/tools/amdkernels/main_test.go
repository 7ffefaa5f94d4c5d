package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
)

func TestMain(m *testing.M) {
	radv.Main()
	os.Exit(m.Run())
}

// TestOneModel lists the kernels of a token of the smallest model, in the shapes that its plans have, and does not run
// them again. What the cost model takes projections to cost is near what they execute.
func TestOneModel(t *testing.T) {
	s, err := synth.Parse("qwen3-0.6b:1")
	if err != nil {
		t.Fatal(err)
	}
	o := options{targets: []string{"gfx1201", "gfx1200"}, entries: []string{"decode/1"}, layers: 1, cycles: true}
	units, err := o.units(t.Context(), []synth.Shape{s})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var sum summary
	if err := o.list(t.Context(), units, &sum, &out); err != nil {
		t.Fatal(err)
	}
	if err := sum.err(io.Discard); err != nil || sum.bits+sum.near < 12 {
		t.Errorf("%+v, %v, in\n%s", sum, err, &out)
	}
	if c := sum.cycles["gemv 32"]; c == nil || c.mean() < 0.75 || c.mean() > 1.6 {
		t.Errorf("cycles of projections by the cost model, relative to what is executed: %+v", c)
	}
	sum.cycles, sum.worst = nil, 0 // of which the list has a figure
	if !strings.Contains(out.String(), "\tgfx1201,gfx1200 ") {
		t.Errorf("no code is that of both:\n%s", &out)
	}
	var again summary
	kept, left, err := current(bytes.NewReader(out.Bytes()), units, &again)
	again.worst = 0
	if err != nil || !reflect.DeepEqual(again, sum) || len(left) > 0 || kept != out.String() {
		t.Fatalf("read again: %+v, %v, %d left, kept\n%s", again, err, len(left), kept)
	}
}

// TestCurrent: a line stands for the sets of constants that its module has, and for no others.
func TestCurrent(t *testing.T) {
	of := func(kernel string, targets ...[]string) (sets []*unit) {
		for _, on := range targets {
			sets = append(sets, &unit{c: &kernels.Candidate{Kernel: kernel, Wave: 32}, targets: on})
		}
		return sets
	}
	one, both := []string{"gfx1201"}, []string{"gfx1201", "gfx1100"}
	units := [][]*unit{of("same", both, one), of("more", both, one), of("fewer", one), of("new", one)}
	same := "same\t32\tgfx1201 2 2e-05 15 near\tgfx1100 1 0 5 bits\n"
	var sum summary
	kept, left, err := current(strings.NewReader("gone\t32\tgfx1201 1 0 5 bits\n"+same+"more\t32\tgfx1201,gfx1100 1 0 5 bits\n"+
		"fewer\t32\tgfx1201 2 0 5 bits\nnew\t64\tgfx1201 1 0 5 bits\n"), units, &sum)
	if err != nil || kept != same || !reflect.DeepEqual(left, units[1:]) || sum.all != 2 || sum.sets != 3 {
		t.Errorf("kept %q, left %d, counted %+v, %v", kept, len(left), sum, err)
	}
	if _, _, err := current(strings.NewReader("a line\n"), units, &sum); err == nil {
		t.Error("no error about a line of something else")
	}
}

// TestDistance is relative to the largest number, and infinite where one is none.
func TestDistance(t *testing.T) {
	want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}
	got := []byte{0, 0, 0xc0, 0x3f, 0, 0, 0, 0x40}
	if d := distance(ir.F32, want, got); d != .25 {
		t.Errorf("1 and 1.5 beside 2 are %g apart", d)
	}
	if d := distance(ir.F32, want, []byte{0, 0, 0xc0, 0x7f, 0, 0, 0, 0x40}); !math.IsInf(d, 1) {
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
			s.add(&row{targets: []string{"gfx1201"}, result: r})
		}
		if err := s.err(io.Discard); (err != nil) != c.bad {
			t.Errorf("%q: %v", c.results, err)
		}
	}
}

// TestMerge: a module has the worst of its sets of constants, and targets for which all is the same share a row.
func TestMerge(t *testing.T) {
	both, one, other := []string{"gfx1201", "gfx1200"}, []string{"gfx1201"}, []string{"gfx1200"}
	got := line(merge([]*row{
		{kernel: "k", wave: 32, targets: both, sets: 1, result: near, worst: 2e-5, instructions: 10},
		{kernel: "k", wave: 32, targets: one, sets: 1, result: bits, instructions: 5},
		{kernel: "k", wave: 32, targets: other, sets: 1, result: differs, worst: 0.5, instructions: 5},
	}, []string{"gfx1201", "gfx1100", "gfx1200"}))
	if want := "k\t32\tgfx1201 2 2e-05 15 near\tgfx1200 2 0.5 15 differs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := line(merge([]*row{{kernel: "k", wave: 32, targets: both, sets: 1, result: bits}}, both)); got != "k\t32\tgfx1201,gfx1200 1 0 0 bits" {
		t.Errorf("%q", got)
	}
}

// TestList: what was run of the published shapes had no fault, and nothing differs.
func TestList(t *testing.T) {
	f, err := os.Open("../../../docs/backends/amd-kernels.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sum summary
	modules := 0
	err = read(f, func(_, _ string, rows []*row) {
		modules++
		for _, r := range rows {
			sum.add(r)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sum.err(io.Discard); err != nil || modules < 1000 {
		t.Errorf("%d modules, %+v, %v", modules, sum, err)
	}
}
