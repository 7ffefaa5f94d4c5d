// Package rowwise has the families for rows without a matrix product: embedding, norms,
// elementwise ops, the choice of a token.
package rowwise

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

func ElementwiseCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	switch name := op.Kind.Name; {
	case pointwise[name] != nil:
		return pointwiseCandidates(s, op)
	case !site.Alone(s, op):
		return nil
	case headParts[name] != nil:
		return headPartCandidates(s, op)
	default:
		return copies[name](s, op)
	}
}

// ElementwiseOps are the names of the ops; slice, which others also read through, is the last.
func ElementwiseOps() []string {
	names := slices.Sorted(maps.Keys(pointwise))
	names = slices.AppendSeq(names, maps.Keys(headParts))
	names = slices.AppendSeq(names, maps.Keys(copies))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "slice" })
	return append(names, "slice")
}

// copies has ops that copy elements, from elsewhere or rounded.
var copies = map[string]func(s *site.Site, op *ir.Op) []site.Candidate{
	"half": halfCandidates, "slice": sliceCandidates, "last_row": lastRowCandidates, "take_rows": takeRowsCandidates, "head_ids": headIDCandidates,
}

// elements is how a kernel makes the result of an op: access by access.
type elements struct {
	op   *ir.Op
	rows site.Extent
	site.Accesses
}

// elementsOf returns that of op; it fails where the rows of a step are not known.
func elementsOf(s *site.Site, op *ir.Op) (e elements, ok bool) {
	rows, ok := site.ExtentOf(s, op.Result)
	return elements{op, rows, site.AccessesOf(int(op.Result.Type.Last()), s.Target)}, ok
}

// candidate returns that of what words say; the name is for listings.
func (e elements) candidate(name, words string, kernel site.Kernel) []site.Candidate {
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: "elementwise " + words + e.rows.Key(),
		Grid:   e.Grid(e.rows.Max),
		Cover:  e.Cover(e.rows.Max),
	}, name, kernel)}
}

// elementFunc computes an element of a result from those of the operands.
type elementFunc func(b *kernel.Builder, x []kernel.Value) kernel.Value

// pointwise has the ops that compute each element from those at its place in the
// rows of the operands; an operand without rows is the same in all of them. Each returns the function of an op, and
// what tells its kernel from others of that name.
var pointwise = map[string]func(op *ir.Op) (elementFunc, string){
	"add":     always(func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Add(x[0], x[1]) }),
	"mul":     always(func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(x[0], x[1]) }),
	"relu2":   always(func(b *kernel.Builder, x []kernel.Value) kernel.Value { return lane.Relu2(b, x[0]) }),
	"gate":    always(func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(x[0], lane.Sigmoid(b, x[1])) }),
	"sigmoid": always(func(b *kernel.Builder, x []kernel.Value) kernel.Value { return lane.Sigmoid(b, x[0]) }),
	"decay":   always(func(b *kernel.Builder, x []kernel.Value) kernel.Value { return lane.LogDecay(b, x[0], x[1], x[2]) }),
	"glu": func(op *ir.Op) (elementFunc, string) {
		act := op.Attrs.Str("act")
		return func(b *kernel.Builder, x []kernel.Value) kernel.Value { return lane.GLU(b, act, x[0])(x[1]) }, " " + act
	},
	"scale": func(op *ir.Op) (elementFunc, string) {
		factor := float32(op.Attrs.Float("factor"))
		if len(op.Args) > 1 {
			return func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(b.Mul(x[0], factor), x[1]) }, fmt.Sprint(" ", factor, " by")
		}
		return func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(x[0], factor) }, fmt.Sprint(" ", factor)
	},
	"softcap": func(op *ir.Op) (elementFunc, string) {
		scale, most := op.Attrs.Float("scale"), op.Attrs.Float("cap")
		return func(b *kernel.Builder, x []kernel.Value) kernel.Value {
			return b.Mul(lane.Tanh(b, b.Mul(x[0], float32(scale/most))), float32(most))
		}, fmt.Sprint(" ", scale, " ", most)
	},
}

// always is a function of all ops of a name.
func always(f elementFunc) func(op *ir.Op) (elementFunc, string) {
	return func(*ir.Op) (elementFunc, string) { return f, "" }
}

func pointwiseCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	apply, form := pointwise[op.Kind.Name](op)
	name := op.Kind.Name + form
	if len(s.Outputs) != 1 || s.Outputs[0] != op.Result {
		return nil
	}
	cuts := make([]*ir.Op, len(op.Args)) // the slices that operands are
	found := 0
	for i, v := range op.Args {
		if v.Def != nil && v.Def.Kind.Name == "slice" && slices.Contains(s.Group.Ops, v.Def) {
			cuts[i], name = v.Def, fmt.Sprint(name, " cut", i)
			found++
		}
	}
	if found != len(s.Group.Ops)-1 {
		return nil
	}
	e, ok := elementsOf(s, op)
	if !ok {
		return nil
	}
	for _, cut := range cuts {
		if cut != nil {
			e.Vec = cutVec(cut, e.Vec)
		}
	}
	return e.candidate("elementwise", fmt.Sprintf("%s v=%d", name, e.Vec), pointwiseKernel{e, apply, cuts}.kernel)
}

type pointwiseKernel struct {
	elements
	apply elementFunc
	cuts  []*ir.Op // by operand: the slice that it is, or nil
}

// pointwiseRun is such a kernel while it is built.
type pointwiseRun struct {
	pointwiseKernel
	b           *kernel.Builder
	args        []*kernel.Buffer
	from, first []kernel.Value // of slices
	numbers     []kernel.Value // of operands that are factors
}

func (k pointwiseKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	n := len(k.op.Args)
	extent := k.rows.Declare(s)
	args, from, first := make([]*kernel.Buffer, n), make([]kernel.Value, n), make([]kernel.Value, n)
	for i, v := range k.op.Args {
		if k.cuts[i] != nil {
			v = k.cuts[i].Args[0]
			from[i], first[i] = declareCut(s, k.cuts[i], fmt.Sprint(i))
		}
		args[i] = s.Read(k.op.Kind.Params[i], v)
	}
	y, accesses := s.Write("y", k.op.Result), k.Declare(s)
	return func(b *kernel.Builder) {
		bound, row := extent.Load(b), b.WorkgroupID(1)
		r := &pointwiseRun{pointwiseKernel: k, b: b, args: args, from: from, first: first, numbers: make([]kernel.Value, n)}
		for j := range k.op.Args {
			if isFactor(k.op, j) {
				r.numbers[j] = args[j].Load(kernel.F32, b.U32(0))
			}
		}
		accesses.Each(b, func(i, n kernel.Value) {
			at := b.Add(b.Mul(row, n), i)
			b.If(b.Lt(row, bound), func() {
				x := r.operands(row, i, at)
				out := make([]kernel.Operand, len(x))
				for e := range out {
					out[e] = k.apply(b, x[e])
				}
				y.Store(at, lane.Vector(b, out))
			})
		})
	}
}

// operands loads access i of a row, which is at that place among all accesses: by element, then operand.
func (r *pointwiseRun) operands(row, i, at kernel.Value) [][]kernel.Value {
	b, vec := r.b, r.Vec
	x := make([][]kernel.Value, vec)
	for j, v := range r.op.Args {
		if isFactor(r.op, j) {
			for e := range x {
				x[e] = append(x[e], r.numbers[j])
			}
			continue
		}
		place := at
		if len(v.Type.Shape) == 1 {
			place = i
		}
		if r.cuts[j] != nil {
			place = b.Add(b.Div(b.Add(b.Mul(row, r.from[j]), r.first[j]), vec), i)
		}
		for e, element := range lane.Elements(b, r.args[j].Load(kernel.F32.Vec(vec), place)) {
			x[e] = append(x[e], element)
		}
	}
	return x
}

// isFactor reports whether an operand is one number for all elements.
func isFactor(op *ir.Op, operand int) bool { return op.Kind.Name == "scale" && operand == 1 }

// declareCut declares where the rows of a slice lie in its operand.
func declareCut(s *site.Signature, cut *ir.Op, suffix string) (from, first kernel.Value) {
	return s.U32("from"+suffix, int(cut.Args[0].Type.Last()), 4096, "elements of a row of the operand"),
		s.U32("first"+suffix, cut.Attrs.Int("first"), 0, "its first element that counts")
}

// cutVec returns the elements of an access, at most vec, that begin where the rows of a slice do.
func cutVec(cut *ir.Op, vec int) int {
	for int(cut.Args[0].Type.Last())%vec != 0 || cut.Attrs.Int("first")%vec != 0 {
		vec /= 2
	}
	return vec
}

// sliceCandidates copy a run of each row.
func sliceCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	e, ok := elementsOf(s, op)
	if !ok {
		return nil
	}
	e.Vec = cutVec(e.op, e.Vec)
	return e.candidate("slice", fmt.Sprintf("slice v=%d", e.Vec), func(s *site.Signature) func(b *kernel.Builder) {
		extent, x, y := e.rows.Declare(s), s.Read("x", e.op.Args[0]), s.Write("y", e.op.Result)
		from, first := declareCut(s, e.op, "")
		accesses := e.Declare(s)
		return func(b *kernel.Builder) {
			bound, row := extent.Load(b), b.WorkgroupID(1)
			accesses.Each(b, func(i, n kernel.Value) {
				at := b.Add(b.Div(b.Add(b.Mul(row, from), first), e.Vec), i)
				b.If(b.Lt(row, bound), func() { y.Store(b.Add(b.Mul(row, n), i), x.Load(kernel.F32.Vec(e.Vec), at)) })
			})
		}
	})
}

// lastRowCandidates copies row n-1 of a value of 32-bit elements.
func lastRowCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	width := 1
	for _, d := range op.Result.Type.Shape[1:] {
		width *= int(d)
	}
	if d := op.Result.Type.DType; d != ir.F32 && d != ir.I32 || width <= 0 {
		return nil
	}
	a := site.AccessesOf(width, s.Target)
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("elementwise last_row v=%d", a.Vec),
		Grid:   a.Grid(1),
		Cover:  a.Cover(1),
	}, "last_row", func(s *site.Signature) func(b *kernel.Builder) {
		x, rows, y, accesses := s.Read("x", op.Args[0]), s.Read("n", op.Args[1]), s.Write("y", op.Result), a.Declare(s)
		return func(b *kernel.Builder) {
			accesses.Each(b, func(i, n kernel.Value) {
				last := b.Sub(rows.Load(kernel.U32, 0), 1)
				y.Store(i, x.Load(kernel.U32.Vec(a.Vec), b.Add(b.Mul(last, n), i)))
			})
		}
	})}
}

// takeRowsCandidates copies rows of a value of 32-bit elements.
func takeRowsCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	width := 1
	for _, d := range op.Result.Type.Shape[1:] {
		width *= int(d)
	}
	if d := op.Result.Type.DType; d != ir.F32 && d != ir.I32 || width <= 0 {
		return nil
	}
	a, count := site.AccessesOf(width, s.Target), op.Attrs.Int("count")
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("elementwise take_rows v=%d", a.Vec),
		Grid:   a.Grid(count),
		Cover:  a.Cover(count),
	}, "take_rows", func(sig *site.Signature) func(b *kernel.Builder) {
		x, rows, y, accesses := sig.Read("x", op.Args[0]), sig.Read("rows", op.Args[1]), sig.Write("y", op.Result), a.Declare(sig)
		most := sig.U32("most", s.Func.Rows, 512, "rows of x")
		return func(b *kernel.Builder) {
			row := b.WorkgroupID(1)
			from := b.Min(rows.Load(kernel.U32, row), b.Sub(most, 1))
			accesses.Each(b, func(i, n kernel.Value) {
				y.Store(b.Add(b.Mul(row, n), i), x.Load(kernel.U32.Vec(a.Vec), b.Add(b.Mul(from, n), i)))
			})
		}
	})}
}

// halfCandidates computes a half of its own.
func halfCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	e, ok := elementsOf(s, op)
	if !ok || op.Result.Type.Last()%4 != 0 {
		return nil
	}
	return e.candidate("half", "half", func(s *site.Signature) func(b *kernel.Builder) {
		extent, x, y, accesses := e.rows.Declare(s), s.Read("x", e.op.Args[0]), s.Write("y", e.op.Result), e.Declare(s)
		return func(b *kernel.Builder) {
			bound, row := extent.Load(b), b.WorkgroupID(1)
			accesses.Each(b, func(i, n kernel.Value) {
				at := b.Add(b.Mul(row, n), i)
				b.If(b.Lt(row, bound), func() { y.Store(at, lane.RoundHalf(b, x.Load(lane.F32x4, at))) })
			})
		}
	})
}
