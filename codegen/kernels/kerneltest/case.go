package kerneltest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans/layout"
)

// Case is one dispatch group in the text form. What it reads are globals, what
// others read of it has class io.
type Case struct {
	Family        string
	Alone         bool // of the candidates those of the family are tested; else there are no others
	Offered       bool // candidates that strategy drops are tested, too
	Ctx           int
	Ring          int // positions of caches that are rings; else 0
	Slots         int
	Rows          int
	N             int               // rows of the step; 0 for all
	First         int               // rows of a longer step before those of this one: content is that of its later rows
	RunRows       int               // of an exact step, rows of a sequence at most; 0 for all
	Part          int               // rows of a part, see InParts; else 0
	Pos           []int             // of the rows; the last counts on for the rows that lack one
	Slot          []int             // of the rows; the last repeats
	Exact         bool              // results are the oracle's to the bit
	Rounds        bool              // the kernel rounds to f16 on the way
	Terms         int               // of sums, if they are many: results may differ by more
	Fresh         bool              // the group writes what it attends to of the step's rows
	Order, Kernel string            // of the candidates those of the order, or the kernel, are tested
	Given         map[string][]byte // content of globals
	Pages         []int32           // the block table, of Paged
	Globals       string
	Group         string
}

// poison is what results hold before; it is a number in f16 as well.
const poison = -777

// Parse returns the test's program, with the step block's globals.
func (c Case) Parse(t testing.TB) *ir.Program {
	t.Helper()
	sequences, class, run := ir.OneSequence, ClassOf(c.Rows), c.Rows
	part := ""
	if c.Part > 0 {
		class, part = ir.PromptStep, fmt.Sprint(" part=", c.Part)
	}
	if c.RunRows > 0 {
		class, run = ir.ExactStep, c.RunRows
	}
	if class == ir.ExactStep || c.Part > 0 || slices.ContainsFunc(c.Slot, func(s int) bool { return s != c.Slot[0] }) {
		sequences = ir.ManySequences
	}
	p, err := ir.Parse(fmt.Sprintf(`zir 1
stage fuse
model arch="" name="" path="" source="" target="" ctx=%d slots=%d layers=1

step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
%s
func "f" rows=%d sequences=%s run=%d class=%s%s {
  group "g" stage=0 waits=0 {
%s
  }
}
`, c.Ctx, c.Slots, c.Globals, c.Rows, sequences, run, class, part, c.Group))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ClassOf is the class of a step of so many rows, unless a test says otherwise.
func ClassOf(rows int) ir.StepClass {
	if rows <= target.DecodeRows {
		return ir.ExactStep
	}
	return ir.PromptStep
}

func (c Case) Site(t testing.TB, on *target.Target) *kernels.Site {
	t.Helper()
	p := c.Parse(t)
	if err := weight.Lay(on, p); err != nil {
		t.Fatal(err)
	}
	f := p.Funcs[0]
	return &kernels.Site{Program: p, Func: f, Group: f.Groups[0], Outputs: f.Groups[0].Outputs(f.Uses()), Target: on}
}

// Candidates returns those of the family that the test names.
func (c Case) Candidates(t testing.TB, s *kernels.Site) []kernels.Candidate {
	t.Helper()
	list := strategy.Candidates(s)
	if c.Offered {
		list = kernels.Candidates(s)
	}
	if c.Alone { // other families compute it, too
		list = slices.DeleteFunc(list, func(k kernels.Candidate) bool { return k.Family != c.Family })
	}
	list = slices.DeleteFunc(list, func(k kernels.Candidate) bool {
		return c.Order != "" && k.Order != c.Order || c.Kernel != "" && k.Kernel != c.Kernel
	})
	if len(list) == 0 {
		t.Fatalf("%s: no candidate", c.Group)
	}
	for _, k := range list {
		if !c.Alone && k.Kernel != c.Family && !bytes.HasPrefix([]byte(k.Kernel), []byte(c.Family+" ")) {
			t.Fatalf("%s: candidate %s, want %s", c.Group, k.Kernel, c.Family)
		}
	}
	return list
}

// At returns element i of list; past the end, the last plus the distance times step.
func At(list []int, i, step int) int {
	if len(list) == 0 {
		return i * step
	}
	if i < len(list) {
		return list[i]
	}
	return list[len(list)-1] + (i-len(list)+1)*step
}

func (c Case) live() int {
	if c.N == 0 {
		return c.Rows
	}
	return c.N
}

// Run runs the test's candidates and the oracle on the same data and compares what
// they leave in every operand.
func (c Case) Run(t testing.TB) {
	t.Helper()
	for _, wave := range OtherWaves {
		on := WithWave(t, wave)
		for _, k := range strategy.Candidates(c.Site(t, on)) {
			if racetest.First(k.Kernel, wave) {
				c.RunOn(t, on)
				break
			}
		}
	}
	c.RunOn(t, Llvmpipe(t))
}

// RunOn is run for another target.
func (c Case) RunOn(t testing.TB, on *target.Target) {
	t.Helper()
	c.FirstOf(t, on, Launch)
}

// RunAs runs the kernels on llvmpipe, the first of which has word in its name, and on Hopper through CUDA, and builds
// them.
func (c Case) RunAs(t testing.TB, word string) {
	t.Helper()
	if list := c.Candidates(t, c.Site(t, Llvmpipe(t))); !strings.Contains(list[0].Kernel, word) {
		t.Errorf("%s: %s", c.Group, list[0].Kernel)
	}
	c.Run(t)
	c.RunOn(t, Lookup(t, "sm_90-cuda"))
	c.CheckBuild(t)
}

// FirstOf is runOn with candidates launched so. It returns what the first left.
func (c Case) FirstOf(t testing.TB, on *target.Target, launch Launcher) map[string][]byte {
	t.Helper()
	s := c.Site(t, on)
	list := c.Candidates(t, s)
	m, data := c.oracle(t, s, list[0].Operands)
	if err := m.RunGroup(s.Func, s.Group); err != nil {
		t.Fatal(err)
	}
	sizes := func(v *ir.Value) int { return len(data[v]) }
	first := map[string][]byte{}
	for i, k := range list {
		if i > 0 && k.Wave != Llvmpipe(t).Wave && !racetest.First(k.Kernel, k.Wave) {
			continue
		}
		for v, got := range launch(t, k, sizes, c.OnDevice(t, on, data)) {
			if v.Class == ir.KV {
				var err error
				if got, err = layout.CacheFromDevice(v, c.Ctx, got); err != nil {
					t.Fatal(err)
				}
			}
			if !v.IsGlobal() && !slices.Contains(s.Outputs, v) || v.Class == ir.Weight {
				continue // scratch, or what is only read
			}
			want, err := m.Read(s.Func, v)
			if err != nil {
				t.Fatal(err)
			}
			c.clearDead(v, got)
			c.clearDead(v, want)
			c.compare(t, k.Kernel, v, got, want)
			if c.Exact && !bytes.Equal(got, want) {
				t.Errorf("%s: %s differs from the oracle's", k.Kernel, Label(v))
			}
			if i == 0 {
				first[Label(v)] = got
			}
		}
	}
	return first
}

// oracle returns an evaluator of the program that has the case's data, and those of the operands.
func (c Case) oracle(t testing.TB, s *kernels.Site, operands []kernels.Operand) (*oracle.Machine, map[*ir.Value][]byte) {
	t.Helper()
	src := Weights{}
	for _, g := range s.Program.Globals {
		if g.Class == ir.Weight {
			src[g.Name] = c.Value(g)
		}
	}
	m, err := oracle.New(t.Context(), s.Program, src, oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := map[*ir.Value][]byte{}
	for _, o := range operands {
		v := o.Value
		switch {
		case v.Class == ir.Table:
			if data[v], err = m.Read(s.Func, v); err != nil {
				t.Fatal(err)
			}
			continue
		case v.Class == ir.Weight:
			data[v] = src[v.Name]
			continue
		case o.Access == kernel.Write:
			n, _ := v.Type.Elements(c.Rows, c.Ctx)
			data[v] = oracle.Encode(nil, v.Type.DType, slices.Repeat([]float32{poison}, int(n)))
		default:
			data[v] = c.Value(v)
		}
		if err := m.Write(s.Func, v, data[v]); err != nil {
			t.Fatal(err)
		}
	}
	n := s.Program.Global("n")
	if err := m.Write(s.Func, n, c.Value(n)); err != nil {
		t.Fatal(err)
	}
	return m, data
}

// OnDevice returns data with caches and weights as they lie on the device.
func (c Case) OnDevice(t testing.TB, on *target.Target, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	data = maps.Clone(data)
	for v, b := range data {
		if v.Class == ir.KV {
			var err error
			if data[v], err = layout.CacheToDevice(v, c.Ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		if v.Class != ir.Weight || !v.Type.DType.IsQuantized() {
			continue
		}
		l, err := weight.LayoutOf(v)
		if err != nil {
			t.Fatal(err)
		}
		data[v] = make([]byte, l.Bytes)
		if err := l.Fill(data[v], 0, b); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

// Weights are the content of weights by name.
type Weights map[string][]byte

func (w Weights) Weight(name string) ([]byte, error) { return w[name], nil }

func Label(v *ir.Value) string {
	if v.IsGlobal() {
		return "@" + v.Name
	}
	return fmt.Sprintf("%%%d", v.ID)
}

// CheckBuild builds and validates the test's kernels for every GPU, and runs those of
// few rows with subgroups of 64, which targets may choose.
func (c Case) CheckBuild(t testing.TB) {
	t.Helper()
	if c.Rows <= 8 {
		if on := WithWave(t, 64); len(kernels.Candidates(c.Site(t, on))) > 0 {
			c.RunOn(t, on)
		}
	}
	for _, on := range target.All() {
		if !on.IsHost() && !on.Processor() && on.Name != "llvmpipe" { // which runs them; processors have families of their own
			c.CheckOn(t, on)
		}
	}
}

// CheckOn builds and validates the test's kernels for one target.
func (c Case) CheckOn(t testing.TB, on *target.Target) {
	t.Helper()
	for _, k := range Different(c.Candidates(t, c.Site(t, on))) {
		Builds(t, on, max(on.Shared, on.SharedOptIn), k)
	}
	if launch, ok := Emulated(on); ok {
		c.FirstOf(t, on, launch)
	}
}

// CheckWidths runs the test with 8, 4, 2 and 1 rows: rows must come out the same in the interpreter. The device has 8.
func (c Case) CheckWidths(t *testing.T, result string) {
	t.Helper()
	c.CheckWidthsOn(t, Llvmpipe(t), result)
}

func (c Case) CheckWidthsOn(t *testing.T, on *target.Target, result string) {
	t.Helper()
	c.Rows, c.N = 8, 0
	c.RunOn(t, on)
	all := c.FirstOf(t, on, InterpretOnly)[result]
	for _, rows := range []int{4, 2, 1} {
		c.Rows = rows
		got := c.FirstOf(t, on, InterpretOnly)[result]
		if want := all[:len(all)*rows/8]; !bytes.Equal(got, want) {
			t.Errorf("%s: %d rows differ from the same of 8", c.Group, rows)
		}
	}
}

// CheckSequences holds that what takes the rows of a step as one sequence is not offered where they may be of several.
func (c Case) CheckSequences(t *testing.T) {
	t.Helper()
	s := c.Site(t, Llvmpipe(t))
	if len(kernels.Candidates(s)) == 0 {
		t.Error("no candidate for a step of one sequence")
	}
	s.Func.Sequences = ir.ManySequences
	for _, k := range kernels.Candidates(s) {
		t.Errorf("%s for rows of many sequences", k.Kernel)
	}
	s.Program.Slots = 1
	if len(kernels.Candidates(s)) == 0 {
		t.Error("no candidate where there is one slot")
	}
}

// RoundedFor returns the ops whose input families want rounded by that op.
func RoundedFor(s *kernels.Site, round string) []*ir.Op {
	for _, w := range kernels.Wants(s) {
		if w.Round == round {
			return w.Readers
		}
	}
	return nil
}
