package matmul_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
)

// work is a dispatch group under construction, and its data. The oracle says what each op means.
type work struct {
	t    testing.TB
	p    *ir.Program
	f    *ir.Func
	n    *ir.Value
	make *ir.Builder
	ops  []*ir.Op
	rng  *rand.Rand
	data map[*ir.Value][]byte // of what is given, as on the device
	want map[*ir.Value][]byte // of all values, as in the program
	on   *target.Target       // whose layouts weights have
	from int                  // rows of a longer step before those of this one: content is that of its later rows
}

// newWork has a function of rows rows, of which a step has n.
func newWork(t testing.TB, rows, n int) *work {
	f := &ir.Func{Name: "f", Rows: rows, Run: rows, Class: kerneltest.ClassOf(rows)}
	w := &work{t: t, p: &ir.Program{Stage: ir.Fuse, Ctx: 16, Slots: 1, Funcs: []*ir.Func{f}}, f: f, make: ir.NewBuilder(f),
		rng: rand.New(rand.NewPCG(1, 2)), data: map[*ir.Value][]byte{}, want: map[*ir.Value][]byte{}, on: kerneltest.Llvmpipe(t)}
	w.n = w.p.AddGlobal("n", ir.Step, ir.MakeType(ir.I32, 1))
	w.give(w.n, kerneltest.I32Bytes(int32(n)))
	return w
}

// give makes b the content of a value that no op of the group makes.
func (w *work) give(v *ir.Value, b []byte) { w.data[v], w.want[v] = b, b }

func (w *work) sizes(v *ir.Value) int {
	if d, ok := w.data[v]; ok {
		return len(d)
	}
	n, err := v.Type.Bytes(w.f.Rows, w.p.Ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return int(n)
}

// rows returns a value of random rows.
func (w *work) rows(rows, width ir.Dim) *ir.Value {
	v := &ir.Value{ID: 1000 + len(w.data), Type: ir.MakeType(ir.F32, rows, width), Offset: -1}
	w.floats(v)
	return v
}

func (w *work) floats(v *ir.Value) {
	x := make([]float32, w.count(v))
	for i := range x {
		x[i] = float32(w.rng.NormFloat64())
	}
	if v.Type.Shape[0] == ir.T {
		x = slices.Concat(x[w.from*len(x)/w.f.Rows:], x[:w.from*len(x)/w.f.Rows])
	}
	w.give(v, kerneltest.F32Bytes(x))
}

func (w *work) vector(name string, n int) *ir.Value {
	v := w.p.AddGlobal(name, ir.Weight, ir.MakeType(ir.F32, ir.Dim(n)))
	w.floats(v)
	return v
}

// lay makes what is on the device of a weight whose blocks are in want.
func (w *work) lay(v *ir.Value) {
	l, err := weight.LayoutOf(v)
	if err != nil {
		w.t.Fatal(err)
	}
	w.data[v] = make([]byte, l.Bytes)
	if err := l.Fill(w.data[v], 0, w.want[v]); err != nil {
		w.t.Fatal(err)
	}
}

// matrix adds a weight of random blocks.
func (w *work) matrix(d ir.DType, rows, cols int) *ir.Value {
	return w.weight(fmt.Sprintf("m%d", len(w.p.Globals)), d, ir.Dim(rows), ir.Dim(cols))
}

func (w *work) weight(name string, d ir.DType, shape ...ir.Dim) *ir.Value {
	v := w.p.AddGlobal(name, ir.Weight, ir.MakeType(d, shape...))
	reader := &ir.Op{Kind: ir.LookupOp("linear"), Args: []*ir.Value{nil, v, {}}}
	if strings.HasSuffix(name, "_exps.weight") {
		reader.Kind = ir.LookupOp("expert_linear")
	}
	alone := &ir.Program{Globals: []*ir.Value{v}, Funcs: []*ir.Func{{Groups: []*ir.Group{{Ops: []*ir.Op{reader}}}}}}
	if err := weight.Lay(w.on, alone); err != nil {
		w.t.Fatal(err)
	}
	w.want[v] = synth.Blocks(w.rng, d, int64(w.count(v)), 0)
	w.lay(v)
	return v
}

// op appends an op to the group.
func (w *work) op(kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Value {
	w.t.Helper()
	op := w.alone(kind, attrs, args...)
	w.ops = append(w.ops, op)
	w.want[op.Result] = w.meaning(op, w.live())
	return op.Result
}

// given computes an op outside of the group, whose result is given, for so many rows.
func (w *work) given(rows int, kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Value {
	w.t.Helper()
	op := w.alone(kind, attrs, args...)
	w.give(op.Result, w.meaning(op, rows))
	return op.Result
}

// alone makes an op that does not belong to the group.
func (w *work) alone(kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Op {
	w.t.Helper()
	op, err := w.make.Make(kind, attrs, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

// meaning returns what the oracle makes of an op in a step of so many rows.
func (w *work) meaning(op *ir.Op, rows int) (result []byte) {
	w.t.Helper()
	f := &ir.Func{Name: "f", Rows: w.f.Rows, Sequences: w.f.Sequences, Run: w.f.Run, Class: w.f.Class}
	p := &ir.Program{Stage: w.p.Stage, Ctx: w.p.Ctx, Slots: w.p.Slots, Funcs: []*ir.Func{f}}
	n := p.AddGlobal("n", ir.Step, w.n.Type)
	matrices, given := kerneltest.Weights{}, map[*ir.Value][]byte{n: kerneltest.I32Bytes(int32(rows))}
	var args []*ir.Value
	for i, a := range op.Args {
		name := fmt.Sprint("operand", i)
		switch {
		case a == w.n:
			args = append(args, n)
		case a.Class == ir.Weight && inBF16(op.Args[0]) && len(a.Type.Shape) > 1: // kernels round these as x is
			args = append(args, p.AddGlobal(name, ir.Weight, ir.MakeType(ir.BF16, a.Type.Shape...)))
			matrices[name] = toBF16(w.decode(a, w.want[a]))
		case a.Class == ir.Weight:
			args = append(args, p.AddGlobal(name, ir.Weight, a.Type))
			matrices[name] = w.want[a]
		default:
			args = append(args, p.AddGlobal(name, ir.Step, a.Type))
			given[args[i]] = w.want[a]
		}
	}
	same, err := ir.NewBuilder(f).Make(op.Kind.Name, op.Attrs, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	f.Groups = []*ir.Group{{Name: "g", Ops: []*ir.Op{same}}}
	m, err := oracle.New(w.t.Context(), p, matrices, oracle.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	for v, b := range given {
		if err := m.Write(f, v, b); err != nil {
			w.t.Fatal(err)
		}
	}
	err = m.RunGroupWith(f, f.Groups[0], func(*ir.Op) (err error) {
		result, err = m.Read(f, same.Result)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// inBF16 reports whether x is rounded to bf16.
func inBF16(x *ir.Value) bool { return x.Def != nil && x.Def.Kind.Name == "bfloat16" }

// toBF16 rounds as kernels do: the middle between two numbers away from zero.
func toBF16(x []float32) (b []byte) {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint16(b, uint16((math.Float32bits(v)+0x8000)>>16))
	}
	return b
}

// live is the rows of the step.
func (w *work) live() int { return int(binary.LittleEndian.Uint32(w.data[w.n])) }

func (w *work) count(v *ir.Value) int {
	n, err := v.Type.Elements(w.f.Rows, w.p.Ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return int(n)
}

func (w *work) norm(x *ir.Value) *ir.Value {
	k := int(x.Type.Last())
	attrs := ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(k)}}
	return w.op("rmsnorm", attrs, x, w.vector(fmt.Sprintf("gain%d", len(w.p.Globals)), k))
}

func (w *work) linear(x *ir.Value, d ir.DType, n int) *ir.Value {
	return w.op("linear", nil, x, w.matrix(d, n, int(x.Type.Last())))
}

func (w *work) glu(act string, gate, up *ir.Value) *ir.Value {
	return w.op("glu", ir.Attrs{{Name: "act", Value: act}}, gate, up)
}

// rounded returns x in f16.
func (w *work) rounded(x *ir.Value) *ir.Value { return w.given(w.f.Rows, "half", nil, x) }

// tiled returns x, of f16, as a group has it that takes it from tiles.
func (w *work) tiled(x *ir.Value, lanes string) *ir.Value {
	w.t.Helper()
	attrs := ir.Attrs{{Name: "rows", Value: int64(w.f.Rows)}, {Name: "lanes", Value: lanes}}
	return w.op("untile", attrs, w.given(w.live(), "tile", attrs, x))
}

// candidates returns those of the group that w has built and that are worth a look; others read outputs.
func (w *work) candidates(t *target.Target, outputs ...*ir.Value) []kernels.Candidate {
	w.t.Helper()
	return strategy.Candidates(w.site(t, outputs...))
}

func (w *work) site(t *target.Target, outputs ...*ir.Value) *kernels.Site {
	return &kernels.Site{Program: w.p, Func: w.f, Group: &ir.Group{Name: "g", Ops: w.ops}, Outputs: outputs, Target: t}
}

// first returns the first candidate, which is of the family.
func first(t testing.TB, list []kernels.Candidate, family string) kernels.Candidate {
	t.Helper()
	if len(list) == 0 || !strings.HasPrefix(list[0].Kernel, family+" ") {
		t.Fatalf("no %s among %d candidates", family, len(list))
	}
	return list[0]
}
