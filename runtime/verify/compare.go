package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
)

// The tolerance: see the package documentation.
const (
	roundoff = 1.0 / (1 << 24)
	slack    = 64
	spread   = 4
	rounded  = 8.0 / (1 << 11)
	narrow   = 16 // a row of fewer elements may be near 0 by chance
)

// tolerance is what a group's elements may be off, relative to their run.
func (d *dispatch) tolerance() float64 {
	k, rounding := 0, 0.0
	if d.rounds() {
		rounding = rounded
	}
	size := ir.StepSize{Rows: len(d.step.rows), Sequences: len(d.step.sequences()), Positions: d.step.depth()}
	for _, op := range d.group.Ops {
		terms, more := op.Kind.Error(op, size)
		k, rounding = k+terms, rounding+more
	}
	return rounding + roundoff*(slack+spread*math.Sqrt(float64(k)))
}

// rounds reports whether the group may round matrices to float16 or bfloat16: weights, or those of
// a softmax.
func (d *dispatch) rounds() bool {
	return slices.ContainsFunc(d.group.Ops, func(op *ir.Op) bool {
		switch op.Kind.Name {
		case "linear", "linear_parts", "expert_linear", "attention", "attention_split":
			return op.Args[0].Type.DType == ir.F16
		case "bfloat16":
			return true
		}
		return false
	})
}

// run is so many elements of a row whose errors are measured by the largest of them, or by
// least, if that is more.
type run struct {
	length int
	least  float64
}

// single is an element that may be near 0 by chance.
var single = run{1, 1}

// runs returns the runs that a row of v consists of, over and over.
func runs(v *ir.Value) []run {
	length := int(v.Type.Last())
	if op := v.Def; op != nil {
		switch op.Kind.Name {
		case "attention", "attention_merge", "rope":
			length = op.Attrs.Int("head_dim")
		case "attention_split": // sums of values, largest score, sum of weights
			return []run{{op.Attrs.Int("head_dim"), 0}, single, single}
		case "delta_chunk": // rows of two matrices, and numbers; of the second, products of rows of length 1, which can all be near 0
			return []run{{ir.DeltaChunk, 0}, {ir.DeltaChunk, op.Attrs.Float("scale")}, single, single, single, single}
		case "rmsnorm":
			length = op.Attrs.Int("group")
		}
	}
	if length == 1 {
		return []run{single}
	}
	return []run{{length, 0}}
}

// compareOutputs compares the results of the group.
func (d *dispatch) compareOutputs(ctx context.Context) error {
	for _, v := range d.outputs {
		if err := d.compareValue(ctx, v, d.elements(v)); err != nil {
			return err
		}
	}
	return nil
}

// compareState compares all of the recurrent state that the group writes.
func (d *dispatch) compareState(ctx context.Context) error {
	for _, v := range d.group.Writes() {
		if v.Class == ir.State {
			if err := d.compareValue(ctx, v, len(d.held(v))); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareValue compares the first n elements of v.
func (d *dispatch) compareValue(ctx context.Context, v *ir.Value, n int) error {
	raw, err := d.read(ctx, v, 0, n)
	if err != nil {
		return err
	}
	if v.Type.DType == ir.I32 {
		if v.Def != nil && v.Def.Kind.Name == "pack12" {
			return d.comparePacked(v, raw)
		}
		d.compareInts(v, d.machine.Ints(v), raw)
		return nil
	}
	got := make([]float32, n)
	if err := oracle.Decode(got, v.Type.DType, raw); err != nil {
		return err
	}
	w, want, least := int(v.Type.Last()), d.held(v), 0.0
	d.passDead(v, got, want)
	together := d.together(v, n)
	for row, part, end := 0, 0, 0; row < n/w; row++ {
		if len(together) > 0 && row*w == end {
			end += together[part%len(together)]
			least = largest(want[row*w : end])
			part++
		}
		var products []float32
		if p := d.products[v]; p != nil {
			products = p[row*w : (row+1)*w]
		}
		d.compareRow(v, runs(v), row, least, products, got[row*w:(row+1)*w], want[row*w:(row+1)*w])
	}
	return nil
}

// passDead lets pass what rows that are dead have of v.
func (d *dispatch) passDead(v *ir.Value, got, want []float32) {
	if d.step.entry.Part == 0 || v.IsGlobal() {
		return
	}
	rowOf := rowOf(v, len(got))
	if rowOf == nil {
		return
	}
	for i := range got {
		if r := rowOf(i); r < len(d.step.rows) && !d.step.live(r) {
			got[i], want[i] = 0, 0
		}
	}
}

// rowOf returns the row of the step that element i of n of v is of, in rows, in tiles or packed; nil if there is none.
func rowOf(v *ir.Value, n int) func(i int) int {
	width := int(v.Type.Last())
	switch op := v.Def; {
	case op != nil && op.Kind.Name == "tile":
		each := ir.TileRows * (n / op.Attrs.Int("rows")) // elements of the rows of a tile
		return func(i int) int { return i/each*ir.TileRows + i%width/ir.PieceElements }
	case op != nil && op.Kind.Name == "pack12":
		if p, err := ir.PackedOf(op); err == nil && !p.Whole {
			return p.Row
		}
	case len(v.Type.Shape) > 1 && v.Type.Shape[0] == ir.T:
		return func(i int) int { return i / width }
	}
	return nil
}

// together is how many of the first n elements of v share the magnitude that their errors are
// measured by, over and over, or nil if each run has its own.
func (d *dispatch) together(v *ir.Value, n int) []int {
	if v.Class == ir.State { // a row of a head has the error of one element of the value, or of B, which may be near 0
		for _, op := range d.group.Ops {
			a := op.Attrs
			switch name := op.Kind.Name; {
			case len(op.Kind.Writes) == 0 || op.Args[op.Kind.Writes[0]] != v:
			case strings.HasPrefix(name, "deltanet"):
				each := a.Int("head_dim")
				if log := 2 * ir.DeltaLog(v.Type); log > 0 {
					return []int{each * each, log * each}
				}
				return []int{each * each}
			case name == "ssd":
				return []int{a.Int("state_dim") * a.Int("head_dim")}
			}
		}
	}
	if int(v.Type.Last()) < narrow && d.rounds() {
		return []int{n}
	}
	return nil
}

// largest is the largest magnitude in x.
func largest(x []float32) float64 {
	m := 0.0
	for _, v := range x {
		m = math.Max(m, math.Abs(float64(v)))
	}
	return m
}

// compareRow compares a row of floats, run by run, whose magnitude is least or more. Of products
// it may be more for an element.
func (d *dispatch) compareRow(v *ir.Value, list []run, row int, least float64, products, got, want []float32) {
	relative := d.tolerance()
	for at, i := 0, 0; at < len(want); i++ {
		r := list[i%len(list)]
		end := min(len(want), at+r.length)
		magnitude := max(least, r.least, largest(want[at:end]))
		for ; at < end; at++ {
			g, w := float64(got[at]), float64(want[at])
			off := math.Abs(g - w)
			off = max(0, off-lastPlace(v, want, at))
			of := magnitude
			if products != nil {
				of = max(of, float64(products[at]))
			}
			d.note(v, row, at, g, w, off/of, relative)
		}
	}
}

// noteProduct keeps what errors of a glu's elements are measured by, if the group makes a factor: see products.
func (d *dispatch) noteProduct(op *ir.Op) {
	var p []float32
	switch op.Kind.Name {
	case "half":
		p = d.products[op.Args[0]]
	case "glu":
		gate, up := op.Args[0], op.Args[1]
		made := func(v *ir.Value) bool { return slices.Contains(d.group.Ops, v.Def) }
		beside := float32(0)
		if op.Attrs.Str("act") == "swiglu_oai" {
			beside = 1
		}
		n := d.elements(op.Result)
		p = products(d.held(gate)[:n], d.held(up)[:n], int(op.Result.Type.Last()), made(gate), made(up), beside)
	}
	if p == nil {
		return
	}
	if d.products == nil {
		d.products = map[*ir.Value][]float32{}
	}
	d.products[op.Result] = p
}

// products returns what the errors of act(gate) * (up + beside) are measured by, element by element, in rows of width:
// an error of a factor that is made here has the size of the factor's row, and the other factor multiplies it. |act(x)|
// is |x| at most.
func products(gate, up []float32, width int, madeGate, madeUp bool, beside float32) []float32 {
	p := make([]float32, len(gate))
	for at := 0; at < len(p); at += width {
		g, u := float32(largest(gate[at:at+width])), float32(largest(up[at:at+width]))
		for i := at; i < at+width; i++ {
			if madeGate {
				p[i] += g * (abs(up[i]) + beside)
			}
			if madeUp {
				p[i] += abs(gate[i]) * u
			}
		}
	}
	return p
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

// lastPlace is what the rounding of an element of want to v's dtype may be off, if what is
// rounded differs by little.
func lastPlace(v *ir.Value, want []float32, at int) float64 {
	switch v.Type.DType {
	case ir.F16:
		return ulpF16(float64(want[at]))
	}
	if codes := cacheCodes[v.Type.DType]; codes > 0 { // a code, and the last place of the scale
		n := v.Type.DType.Block()
		return largest(want[at/n*n:][:n]) * (1/codes + 1.0/(1<<10))
	}
	return 0
}

// cacheCodes are how many codes the largest magnitude of a block has, by the type of a cache.
var cacheCodes = map[ir.DType]float64{ir.Q8_0: 127, ir.Q4_0: 8}

// ulpF16 is the unit in the last place of a float16.
func ulpF16(x float64) float64 {
	_, e := math.Frexp(x) // |x| = f * 2^e, f in [0.5, 1)
	if x == 0 || e < -13 {
		e = -13
	}
	return math.Ldexp(1, e-11)
}

// note takes an element into the result that is off by so much of its run's
// magnitude.
func (d *dispatch) note(v *ir.Value, row, column int, got, want, off, limit float64) {
	problem, ratio := "", math.Inf(1)
	switch {
	case math.IsNaN(want) || math.IsInf(want, 0):
		problem = "the oracle's value is not finite, since an input is not"
	case math.Float32bits(float32(got)) == poison || v.Type.DType != ir.F32 && math.IsNaN(got):
		problem = "not written"
	case math.IsNaN(got):
		problem = "not a number"
	case got == want || off == 0:
		return
	default:
		if ratio = off / limit; ratio > 1 {
			problem = "off by more than tolerated"
		}
	}
	if ratio <= d.worst {
		return
	}
	d.worst = ratio
	r := &d.result
	r.Output = name(v)
	r.Error, r.Tolerance = Number(off), Number(limit)
	if problem != "" {
		r.Difference = &Difference{problem, name(v), row, column, Number(got), Number(want)}
	}
}

func name(v *ir.Value) string { return v.String() }

// fail notes a difference that has no tolerance.
func (d *dispatch) fail(problem, value string, row, column int, got, want float64) {
	if d.result.Difference == nil {
		d.result.Difference = &Difference{problem, value, row, column, Number(got), Number(want)}
	}
}

// compareInts compares all elements of v that raw has.
func (d *dispatch) compareInts(v *ir.Value, want []int32, raw []byte) {
	rowOf := rowOf(v, len(raw)/4)
	for i, want := range want[:len(raw)/4] {
		if rowOf != nil {
			if r := rowOf(i); r < len(d.step.rows) && !d.step.live(r) {
				continue
			}
		}
		if got := int32(binary.LittleEndian.Uint32(raw[4*i:])); got != want {
			problem := "a wrong integer"
			if got == poison {
				problem = "not written"
			}
			d.fail(problem, name(v), i, 0, float64(got), float64(want))
			return
		}
	}
}

// compareCache compares the rows that had to be written, and demands that all others
// are as before. What follows in the group is judged on the device's rows: they may
// have been rounded the other way.
func (d *dispatch) compareCache(ctx context.Context, c *cache) error {
	v, w := c.value, int(c.value.Type.Last())
	raw, err := d.read(ctx, v, 0, len(d.machine.Floats(v)))
	if err != nil {
		return err
	}
	written := make([]float32, w*len(c.rows))
	rowOf := map[int]int{} // of the cache -> of the step
	for i, row := range c.rows {
		rowOf[row] = i
	}
	for row := range len(raw) / c.rowBytes() {
		part := raw[row*c.rowBytes() : (row+1)*c.rowBytes()]
		if i, ok := rowOf[row]; ok {
			got := written[i*w:][:w]
			if err := oracle.Decode(got, v.Type.DType, part); err != nil {
				return err
			}
			d.compareRow(v, runs(c.source), i, 0, nil, got, d.machine.Floats(v)[row*w:(row+1)*w])
		} else if !bytes.Equal(part, c.before[row*c.rowBytes():(row+1)*c.rowBytes()]) {
			d.fail(fmt.Sprintf("cache row %d is not of this step and has changed", row), name(v), row, 0, 0, 0)
		}
	}
	if d.result.Difference == nil {
		for i, row := range c.rows {
			copy(d.machine.Floats(v)[row*w:(row+1)*w], written[i*w:])
		}
	}
	return nil
}

// compareStep compares the whole step block.
func (d *dispatch) compareStep(ctx context.Context) error {
	for _, g := range d.plan.Program.Globals {
		if g.Class != ir.Step {
			continue
		}
		raw, err := d.read(ctx, g, 0, len(d.machine.Ints(g)))
		if err != nil {
			return err
		}
		d.compareInts(g, d.machine.Ints(g), raw)
	}
	return nil
}

// compareGuards demands that the memory around the outputs is as before.
func (d *dispatch) compareGuards(ctx context.Context) error {
	for _, g := range d.guards {
		after := make([]byte, len(g.before))
		if err := d.dev.Read(ctx, g.at, after); err != nil {
			return err
		}
		for i := range after {
			if after[i] != g.before[i] {
				d.fail(fmt.Sprintf("wrote outside of its outputs, at arena offset %d", g.at.Offset+int64(i)), "arena", 0, 0, 0, 0)
				break
			}
		}
	}
	return nil
}
