package kernels_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/layout"
)

// siteTest is one dispatch group in the text form. What it reads are globals, what
// others read of it has class io.
type siteTest struct {
	family        string
	alone         bool // of the candidates those of the family are tested; else there are no others
	offered       bool // candidates that strategy drops are tested, too
	ctx           int
	ring          int // positions of caches that are rings; else 0
	slots         int
	rows          int
	n             int               // rows of the step; 0 for all
	pos           []int             // of the rows; the last counts on for the rows that lack one
	slot          []int             // of the rows; the last repeats
	exact         bool              // results are the oracle's to the bit
	rounds        bool              // the kernel rounds to f16 on the way
	terms         int               // of sums, if they are many: results may differ by more
	fresh         bool              // the group writes what it attends to of the step's rows
	order, kernel string            // of the candidates those of the order, or the kernel, are tested
	given         map[string][]byte // content of globals
	globals       string
	group         string
}

// poison is what results hold before; it is a number in f16 as well.
const poison = -777

// parse returns the test's program, with the step block's globals.
func (c siteTest) parse(t testing.TB) *ir.Program {
	t.Helper()
	sequences := ir.OneSequence
	if c.rows <= ir.DecodeRows || slices.ContainsFunc(c.slot, func(s int) bool { return s != c.slot[0] }) {
		sequences = ir.ManySequences
	}
	p, err := ir.Parse(fmt.Sprintf(`zir 1
stage fuse
model arch="" name="" path="" source="" target="" ctx=%d slots=%d layers=1

step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
%s
func "f" rows=%d sequences=%s {
  group "g" step=0 {
%s
  }
}
`, c.ctx, c.slots, c.globals, c.rows, sequences, c.group))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (c siteTest) site(t testing.TB, on *target.Target) *kernels.Site {
	t.Helper()
	p := c.parse(t)
	f := p.Funcs[0]
	return &kernels.Site{Program: p, Func: f, Group: f.Groups[0], Outputs: f.Groups[0].Outputs(f.Uses()), Target: on}
}

// candidates returns those of the family that the test names.
func (c siteTest) candidates(t testing.TB, s *kernels.Site) []kernels.Candidate {
	t.Helper()
	list := strategy.Candidates(s)
	if c.offered {
		list = kernels.Candidates(s)
	}
	if c.alone { // other families compute it, too
		list = slices.DeleteFunc(list, func(k kernels.Candidate) bool { return k.Family != c.family })
	}
	list = slices.DeleteFunc(list, func(k kernels.Candidate) bool {
		return c.order != "" && k.Order != c.order || c.kernel != "" && k.Kernel != c.kernel
	})
	if len(list) == 0 {
		t.Fatalf("%s: no candidate", c.group)
	}
	for _, k := range list {
		if !c.alone && k.Kernel != c.family && !bytes.HasPrefix([]byte(k.Kernel), []byte(c.family+" ")) {
			t.Fatalf("%s: candidate %s, want %s", c.group, k.Kernel, c.family)
		}
	}
	return list
}

// at returns element i of list; past the end, the last plus the distance times step.
func at(list []int, i, step int) int {
	if len(list) == 0 {
		return i * step
	}
	if i < len(list) {
		return list[i]
	}
	return list[len(list)-1] + (i-len(list)+1)*step
}

func (c siteTest) live() int {
	if c.n == 0 {
		return c.rows
	}
	return c.n
}

// value returns the content of a global: random numbers that depend on the name
// and the place alone, ties and NaNs in @tied, the step block, NaN in rows of a
// cache that no row may see.
func (c siteTest) value(v *ir.Value) []byte {
	if b, ok := c.given[v.Name]; ok {
		return b
	}
	h := fnv.New64a()
	h.Write([]byte(v.Name))
	rng := rand.New(rand.NewPCG(h.Sum64(), 7))
	n, _ := v.Type.Elements(c.rows, c.ctx)
	if v.Class == ir.Weight && v.Type.DType.IsQuantized() {
		return synth.Blocks(rng, v.Type.DType, n, 0)
	}
	var b []byte
	var block []float32 // of a cache that has scales
	q := gguf.QuantizerOf(v.Type.DType)
	for i := range int(n) {
		x := float32(rng.NormFloat64())
		if q != nil {
			if block = append(block, x); len(block) == v.Type.DType.Block() {
				if v.Class == ir.KV && !c.seen(i/int(v.Type.Last())) {
					b = binary.LittleEndian.AppendUint16(b, 0x7e00) // NaN
					b = append(b, make([]byte, v.Type.DType.BlockBytes()-2)...)
				} else {
					b = q.Encode(b, block)
				}
				block = block[:0]
			}
			continue
		}
		switch {
		case v.Name == "pos" && i >= c.live(), v.Name == "slot" && i >= c.live():
			b = binary.LittleEndian.AppendUint32(b, 1<<30)
		case v.Name == "pos":
			b = binary.LittleEndian.AppendUint32(b, uint32(at(c.pos, i, 1)))
		case v.Name == "slot":
			b = binary.LittleEndian.AppendUint32(b, uint32(at(c.slot, i, 0)))
		case v.Name == "n":
			b = binary.LittleEndian.AppendUint32(b, uint32(c.live()))
		case v.Name == "arrivals":
			b = binary.LittleEndian.AppendUint32(b, 0)
		case v.Name == "edges": // 32 elements of one magnitude, from the smallest to the largest
			e := i/ir.Q8_0.Block()*7%41 - 24
			if i/ir.Q8_0.Block()%3 == 0 { // codes are halfway between two
				if x = float32(i%ir.Q8_0.Block()) - 15.5; x < -15 {
					x = 127
				}
			}
			b = appendElement(b, v.Type.DType, float32(math.Ldexp(float64(x), e)))
		case v.Name == "rate": // decays
			b = appendElement(b, v.Type.DType, -x*x)
		case v.Name == "chunk": // as delta_chunk makes them: of matrices nothing above the diagonal, none large
			if j := i % ir.DeltaChunkWidth; j < 2*ir.DeltaChunk && j%ir.DeltaChunk > i/int(v.Type.Last())%ir.DeltaChunk {
				x = 0
			}
			b = appendElement(b, v.Type.DType, x/32)
		case v.Name == "tied" && i%int(v.Type.Last())%7 == 3:
			b = appendElement(b, v.Type.DType, float32(math.NaN()))
		case v.Name == "tied":
			b = appendElement(b, v.Type.DType, float32(rng.IntN(3)))
		case v.Name == "ids": // of experts
			b = binary.LittleEndian.AppendUint32(b, uint32(rng.IntN(12)))
		case v.Type.DType == ir.I32:
			b = binary.LittleEndian.AppendUint32(b, uint32(rng.IntN(1000)))
		case v.Class == ir.KV && !c.seen(i/int(v.Type.Last())):
			x = float32(math.NaN())
			fallthrough
		default:
			b = appendElement(b, v.Type.DType, x)
		}
	}
	return b
}

// seen reports whether a row attends to a row of a cache, as it is before.
func (c siteTest) seen(row int) (seen bool) {
	positions := c.ctx
	if c.ring > 0 {
		positions = c.ring
	}
	for r := range c.live() {
		if c.fresh && at(c.slot, r, 0) == row/positions && row%positions == at(c.pos, r, 1)%positions {
			return false
		}
		seen = seen || at(c.slot, r, 0) == row/positions && row%positions <= at(c.pos, r, 1)
	}
	return seen
}

func appendElement(b []byte, d ir.DType, x float32) []byte {
	if d == ir.F16 {
		return binary.LittleEndian.AppendUint16(b, gguf.F32ToF16(x))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
}

// run runs the test's candidates and the oracle on the same data and compares what
// they leave in every operand.
func (c siteTest) run(t testing.TB) {
	t.Helper()
	for _, wave := range otherWaves {
		on := withWave(t, wave)
		for _, k := range strategy.Candidates(c.site(t, on)) {
			if racetest.First(k.Kernel, wave) {
				c.runOn(t, on)
				break
			}
		}
	}
	c.runOn(t, llvmpipe(t))
}

// runOn is run for another target.
func (c siteTest) runOn(t testing.TB, on *target.Target) {
	t.Helper()
	c.firstOf(t, on, launch)
}

// runAs runs the kernels on llvmpipe, the first of which has word in its name, and on Hopper through CUDA, and builds them.
func (c siteTest) runAs(t testing.TB, word string) {
	t.Helper()
	if list := c.candidates(t, c.site(t, llvmpipe(t))); !strings.Contains(list[0].Kernel, word) {
		t.Errorf("%s: %s", c.group, list[0].Kernel)
	}
	c.run(t)
	c.runOn(t, lookup(t, "sm_90-cuda"))
	c.checkBuild(t)
}

// firstOf is runOn with candidates launched so. It returns what the first left.
func (c siteTest) firstOf(t testing.TB, on *target.Target, launch launcher) map[string][]byte {
	t.Helper()
	s := c.site(t, on)
	src := weightSource{}
	for _, g := range s.Program.Globals {
		if g.Class == ir.Weight {
			src[g.Name] = c.value(g)
		}
	}
	m, err := oracle.New(t.Context(), s.Program, src, oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := c.candidates(t, s)
	data := map[*ir.Value][]byte{}
	for _, o := range list[0].Operands {
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
			n, _ := v.Type.Elements(c.rows, c.ctx)
			data[v] = oracle.Encode(nil, v.Type.DType, slices.Repeat([]float32{poison}, int(n)))
		default:
			data[v] = c.value(v)
		}
		if err := m.Write(s.Func, v, data[v]); err != nil {
			t.Fatal(err)
		}
	}
	n := s.Program.Global("n")
	if err := m.Write(s.Func, n, c.value(n)); err != nil {
		t.Fatal(err)
	}
	if err := m.RunGroup(s.Func, s.Group); err != nil {
		t.Fatal(err)
	}
	sizes := func(v *ir.Value) int { return len(data[v]) }
	first := map[string][]byte{}
	for i, k := range list {
		if i > 0 && k.Wave != llvmpipe(t).Wave && !racetest.First(k.Kernel, k.Wave) {
			continue
		}
		for v, got := range launch(t, k, sizes, c.onDevice(t, on, data)) {
			if v.Class == ir.KV {
				if got, err = layout.CacheFromDevice(v.Type, v.Type.Positions(c.ctx), got); err != nil {
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
			c.compare(t, k.Kernel, v, got, want)
			if c.exact && !bytes.Equal(got, want) {
				t.Errorf("%s: %s differs from the oracle's", k.Kernel, label(v))
			}
			if i == 0 {
				first[label(v)] = got
			}
		}
	}
	return first
}

// onDevice returns data with caches and weights as they lie on the device.
func (c siteTest) onDevice(t testing.TB, on *target.Target, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	data = maps.Clone(data)
	for v, b := range data {
		if v.Class == ir.KV {
			var err error
			if data[v], err = layout.CacheToDevice(v.Type, v.Type.Positions(c.ctx), b); err != nil {
				t.Fatal(err)
			}
		}
		if v.Class != ir.Weight || !v.Type.DType.IsQuantized() {
			continue
		}
		l, err := weight.LayoutOf(on, v)
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

type weightSource map[string][]byte

func (w weightSource) Weight(name string) ([]byte, error) { return w[name], nil }

func lookup(t testing.TB, name string) *target.Target {
	t.Helper()
	on, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func label(v *ir.Value) string {
	if v.IsGlobal() {
		return "@" + v.Name
	}
	return fmt.Sprintf("%%%d", v.ID)
}

// compare fails where got differs from want: by more than rounding, or at all
// where want is poison or an integer.
func (c siteTest) compare(t testing.TB, kernel string, v *ir.Value, got, want []byte) {
	t.Helper()
	if v.Type.DType == ir.I32 {
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %s is %v, want %v", kernel, label(v), got, want)
		}
		return
	}
	x, y, tolerance := make([]float32, len(want)*v.Type.DType.Block()/v.Type.DType.BlockBytes()), []float32(nil), 1e-5
	y = slices.Clone(x)
	if err := errors.Join(oracle.Decode(x, v.Type.DType, got), oracle.Decode(y, v.Type.DType, want)); err != nil {
		t.Fatal(err)
	}
	switch {
	case c.rounds:
		tolerance = 1.0 / 128
	case v.Type.DType == ir.F16:
		tolerance = 1.0 / 1024
	case v.Type.DType == ir.Q8_0:
		compareBlocks(t, kernel, v, got, want)
		return
	}
	tolerance *= math.Sqrt(max(1, float64(c.terms)/64))
	for i := range y {
		if x[i] == y[i] || y[i] != y[i] && x[i] != x[i] {
			continue
		}
		diff := math.Abs(float64(x[i]) - float64(y[i]))
		if y[i] == poison || !(diff <= tolerance*(1+math.Abs(float64(y[i])))) {
			t.Errorf("%s: element %d of %s is %g, want %g", kernel, i, label(v), x[i], y[i])
			return
		}
	}
}

func halves(b []byte) []float32 {
	x := make([]float32, len(b)/2)
	for i := range x {
		x[i] = gguf.F16ToF32(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return x
}

// compareBlocks fails where a scale differs by more than its last place, or a code by more
// than 1: what is rounded may differ in its last place.
func compareBlocks(t testing.TB, kernel string, v *ir.Value, got, want []byte) {
	t.Helper()
	for i := range len(want) / ir.Q8_0.BlockBytes() {
		x, y := got[i*ir.Q8_0.BlockBytes():][:ir.Q8_0.BlockBytes()], want[i*ir.Q8_0.BlockBytes():][:ir.Q8_0.BlockBytes()]
		d := int(binary.LittleEndian.Uint16(x)) - int(binary.LittleEndian.Uint16(y))
		bad := d*d > 1
		for j := range x[2:] {
			d := int(int8(x[2+j])) - int(int8(y[2+j]))
			bad = bad || d*d > 1
		}
		if bad {
			t.Errorf("%s: block %d of %s is %v, want %v", kernel, i, label(v), x, y)
			return
		}
	}
}

// checkBuild builds and validates the test's kernels for every GPU, and runs those of
// few rows with subgroups of 64, which targets may choose.
func (c siteTest) checkBuild(t testing.TB) {
	t.Helper()
	if c.rows <= 8 {
		if on := withWave(t, 64); len(kernels.Candidates(c.site(t, on))) > 0 {
			c.runOn(t, on)
		}
	}
	for _, on := range target.All() {
		if !on.IsHost() && on.Backend != plans.CPU && on.Name != "llvmpipe" { // which runs them; processors have families of their own
			c.checkOn(t, on)
		}
	}
}

// checkOn builds and validates the test's kernels for one target.
func (c siteTest) checkOn(t testing.TB, on *target.Target) {
	t.Helper()
	for _, k := range different(c.candidates(t, c.site(t, on))) {
		builds(t, on, max(on.Shared, on.Asked), k)
	}
}

// checkWidths runs the test with 8, 4, 2 and 1 rows: rows must come out the same in the interpreter. The device has 8.
func (c siteTest) checkWidths(t *testing.T, result string) {
	t.Helper()
	c.checkWidthsOn(t, llvmpipe(t), result)
}

func (c siteTest) checkWidthsOn(t *testing.T, on *target.Target, result string) {
	t.Helper()
	c.rows, c.n = 8, 0
	c.runOn(t, on)
	all := c.firstOf(t, on, interpretOnly)[result]
	for _, rows := range []int{4, 2, 1} {
		c.rows = rows
		got := c.firstOf(t, on, interpretOnly)[result]
		if want := all[:len(all)*rows/8]; !bytes.Equal(got, want) {
			t.Errorf("%s: %d rows differ from the same of 8", c.group, rows)
		}
	}
}

// roundedFor returns the ops whose input families want rounded by that op.
func roundedFor(s *kernels.Site, round string) []*ir.Op {
	for _, w := range kernels.Wants(s) {
		if w.Round == round {
			return w.Readers
		}
	}
	return nil
}
