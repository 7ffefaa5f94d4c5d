package matmul_test

import (
	"bytes"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/ir/oracle"
)

// check runs a candidate and compares the first rows rows of its outputs.
func (w *work) check(c kernels.Candidate, rows int, outputs ...*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	return w.checkWith(kerneltest.Launch, c, rows, outputs...)
}

// bits is check in the interpreter, which gives all widths the same bits, and on the device, too, if that shows
// something.
func (w *work) bits(c kernels.Candidate, rows int, outputs ...*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	if kerneltest.Showing(w.t, c) {
		w.check(c, rows, outputs...)
	}
	return w.checkWith(kerneltest.InterpretOnly, c, rows, outputs...)
}

// checkWith is check with another way to run it: by onDevice or interpretOnly all widths give the same bits.
func (w *work) checkWith(launch kerneltest.Launcher, c kernels.Candidate, rows int, outputs ...*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	got := launch(w.t, c, w.sizes, w.data)
	w.compareAll(c, got, rows, outputs)
	if w.on.Backend != kerneltest.Llvmpipe(w.t).Backend { // weights lie otherwise for other targets
		return got
	}
	for _, wave := range kerneltest.OtherWaves {
		for _, c := range w.candidates(kerneltest.WithWave(w.t, wave), outputs...) {
			if racetest.First(c.Kernel, wave) {
				w.compareAll(c, launch(w.t, c, w.sizes, w.data), rows, outputs)
			}
		}
	}
	return got
}

// checkAll runs a candidate and compares n rows of its outputs; of the others, nothing may be written.
func (w *work) checkAll(launch kerneltest.Launcher, c kernels.Candidate, n int, outputs []*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	got := launch(w.t, c, w.sizes, w.data)
	w.compareAll(c, got, n, outputs)
	for _, v := range outputs {
		if rest := got[v][int(v.Type.DType.Bytes(int64(n)*int64(v.Type.Last()))):]; bytes.Count(rest, []byte{0xff}) != len(rest) {
			w.t.Errorf("%s: %s has rows that are not of the step", c.Kernel, v)
		}
	}
	return got
}

func (w *work) compareAll(c kernels.Candidate, got map[*ir.Value][]byte, rows int, outputs []*ir.Value) {
	w.t.Helper()
	for _, v := range outputs {
		w.compare(c, got[v], rows, v)
	}
}

// compare compares the first rows rows of an output with the oracle's.
func (w *work) compare(c kernels.Candidate, got []byte, rows int, v *ir.Value) {
	w.t.Helper()
	width := int(v.Type.Last())
	n := min(rows*width, w.count(v))
	if v.Type.DType == ir.I32 {
		if want := w.want[v]; !bytes.Equal(got[:4*n], want[:4*n]) {
			w.t.Fatalf("%s: %s is %v, want %v", c.Kernel, v, got[:4*n], want[:4*n])
		}
		kerneltest.Covered(w.t, c, v, w.count(v))
		return
	}
	y, want := w.decode(v, got)[:n], w.decode(v, w.want[v])[:n]
	run := width
	if width < narrow {
		run = n
	}
	for at := 0; at < n; at += run {
		most := 0.0
		for _, x := range want[at : at+run] {
			most = max(most, math.Abs(float64(x)))
		}
		bound := w.tolerance(v) * most
		for i := at; i < at+run; i++ {
			if off := math.Abs(float64(y[i]) - float64(want[i])); !(off <= bound) {
				w.t.Fatalf("%s: %s row %d element %d is %g, want %g within %g", c.Kernel, v, i/width, i%width, y[i], want[i], bound)
			}
		}
	}
	kerneltest.Covered(w.t, c, v, w.count(v))
}

// narrow is how many elements rows have whose largest may be near 0 by chance.
const narrow = 16

// tolerance is what elements of v may be off, relative to the largest of their row: sums in another order, and
// roundings.
func (w *work) tolerance(v *ir.Value) float64 {
	terms, rounding := 0, 0.0
	if v.Type.DType == ir.F16 {
		rounding = 1.0 / (1 << 11)
	}
	for _, op := range w.ops {
		n, _ := op.Kind.Error(op, ir.StepSize{Rows: w.live(), Sequences: 1, Positions: w.p.Ctx})
		terms += n
		rounding += roundings(op)
	}
	return rounding + (64+4*math.Sqrt(float64(terms)))/(1<<24)
}

// roundings is what an op that rounds adds to the tolerance, or one whose kernel rounds weights. Of fixed point few
// elements of a row lie so near the middle of two numbers that they become the other one.
func roundings(op *ir.Op) float64 {
	switch op.Kind.Name {
	case "fixed12":
		return 16 / math.Sqrt(float64(op.Result.Type.Last())) / (1 << 12)
	case "fixed8":
		return 16 / math.Sqrt(float64(op.Result.Type.Last())) / (1 << 8)
	case "bfloat16":
		if x := op.Args[0].Def; x != nil && x.Kind.Name == "rmsnorm" { // kernels round what is normed before they know the norm's scale
			return 2.0 / (1 << 8)
		}
	case "linear", "expert_linear":
		if op.Args[0].Type.DType == ir.F16 {
			return 4.0 / (1 << 11)
		}
	}
	return 0
}

func (w *work) decode(v *ir.Value, b []byte) []float32 {
	w.t.Helper()
	x := make([]float32, w.count(v))
	decode := func() error { return oracle.Decode(x, v.Type.DType, b) }
	if v.Class == ir.Weight {
		decode = func() error { return gguf.Dequantize(x, b, v.Type.DType) }
	}
	if err := decode(); err != nil {
		w.t.Fatal(err)
	}
	return x
}
