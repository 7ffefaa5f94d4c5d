package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// A post-norm in front of projections of few rows makes their x: every workgroup norms the whole row and adds the
// residual, as it reads the whole row anyway, and one of them writes the sum for those that read it later. Its squares are added up as in rownorm,
// so that a step which has the post-norm as a dispatch of its own gives the same bits.

// postSum is the post-norm that makes x.
type postSum struct {
	*site.PostNorm
	kept bool // others read the sum, too
}

// matchSum returns the post-norm that the site's group begins with, nil if there is none before other ops, or not one of whole rows of vec4 with weights of f32.
func matchSum(s *site.Site) *postSum {
	p := site.PostNormOf(s.Group.Ops)
	if p == nil || len(p.Ops) == len(s.Group.Ops) {
		return nil
	}
	width := int(p.Result.Type.Last())
	if p.Norm.Attrs.Int("group") != width || width%4 != 0 || len(p.Norm.Args) > 1 && p.Norm.Args[1].Type.DType != ir.F32 {
		return nil
	}
	return &postSum{p, slices.Contains(s.Outputs, p.Result)}
}

// takesSum reports whether gemv can make x: for projections that all take it in fixed point, or a single one that takes it as it is.
func (g *linearGroup) takesSum() bool {
	if g.last || g.runs > 0 || g.ringed() || g.fixed == nil && len(g.projects) > 1 {
		return false
	}
	return !slices.ContainsFunc(g.projects, func(p *projection) bool { return p.fixed != (g.fixed != nil) })
}

// norms is how many there are.
func (p *postSum) norms() int {
	if p.Again != nil {
		return 2
	}
	return 1
}

func (p *postSum) key() string {
	key := "sum" + p.Key()
	if p.kept {
		key += " kept"
	}
	return key
}

// besideSum is the lanes that a unit must have registers for, 0 if the compiler chooses: weights and residuals that are loaded ahead would
// take those of a second workgroup. Put aside until they are needed, they cost little.
func (k gemv) besideSum() int {
	if k.sum == nil || k.teams == 0 || k.lanes() > gemvLanes {
		return 0
	}
	return 2 * k.lanes()
}

// sumArgs is a postSum in a kernel. Lists are by norm.
type sumArgs struct {
	*postSum
	of, by, out *kernel.Buffer
	gains, adds []*kernel.Buffer // gains may be nil
	eps         []kernel.Value
}

func (p *postSum) declare(s *site.Signature) *sumArgs {
	a := &sumArgs{postSum: p, of: s.Read("of", p.Norm.Args[0])}
	norm := func(op *ir.Op, add *ir.Value, gain, residual, eps string) {
		var weights *kernel.Buffer
		if len(op.Args) > 1 {
			weights = s.Read(gain, op.Args[1])
		}
		a.gains, a.adds = append(a.gains, weights), append(a.adds, s.Read(residual, add))
		a.eps = append(a.eps, s.F32(eps, op.Attrs.Float("eps"), 1e-6, "added to the mean square of what is normed before the sum"))
	}
	norm(p.Norm, p.Add, "sum_gain", "sum_add", "sum_eps")
	if p.Again != nil {
		norm(p.Again, p.Add2, "sum_gain2", "sum_add2", "sum_eps2")
	}
	if p.By != nil {
		a.by = s.Read("sum_by", p.By)
	}
	if p.kept {
		a.out = s.Write("sum", p.Result)
	}
	return a
}

// sumRun is a postSum while its kernel is built.
type sumRun struct {
	*sumArgs
	r       *gemvRun
	squares []*kernel.Array  // by norm: of groups, by column
	scales  [][]kernel.Value // by norm and column, once they are known
	factor  kernel.Value     // of the sum
}

func newSumRun(r *gemvRun) *sumRun {
	s := &sumRun{sumArgs: r.a.sum, r: r, scales: make([][]kernel.Value, r.a.sum.norms())}
	for range s.norms() {
		s.squares = append(s.squares, r.b.Shared(kernel.F32, r.columns*r.squareGroups()))
	}
	s.factor = s.LoadFactor(r.b, s.by) // which waits for no dispatch
	return s
}

// sumLoads are the operands of a vec4 of x, those of norms by norm.
type sumLoads struct {
	of          kernel.Value
	gains, adds [2]kernel.Value
}

// loadGains loads the norms' weights, which need not wait for the dispatch before.
func (s *sumRun) loadGains(l *sumLoads, at kernel.Value) {
	for i, g := range s.gains {
		if g != nil {
			l.gains[i] = g.Load(lane.F32x4, at)
		}
	}
}

// load loads the rest, of column c.
func (s *sumRun) load(l *sumLoads, c int, at kernel.Value) {
	from := s.r.b.Add(s.r.starts[c], at)
	l.of = s.of.Load(lane.F32x4, from)
	for i, a := range s.adds {
		l.adds[i] = a.Load(lane.F32x4, from)
	}
}

// norm returns v of column c normed by the i-th norm, with what is added to that.
func (s *sumRun) norm(i, c int, v kernel.Value, l *sumLoads) kernel.Value {
	b := s.r.b
	v = b.Mul(v, b.Splat(s.scales[i][c], 4))
	if s.gains[i] != nil {
		v = b.Mul(v, l.gains[i])
	}
	return b.Add(v, l.adds[i])
}

// until returns what the norms before the i-th make.
func (s *sumRun) until(i, c int, l *sumLoads) kernel.Value {
	v := l.of
	for n := range i {
		v = s.norm(n, c, v, l)
	}
	return v
}

// finish returns x of what was loaded.
func (s *sumRun) finish(c int, l *sumLoads) kernel.Value {
	return s.Finish(s.r.b, s.until(s.norms(), c, l), s.factor, 4)
}

// four returns a vec4 of column c of x.
func (s *sumRun) four(c int, at kernel.Value) kernel.Value {
	var l sumLoads
	s.loadGains(&l, at)
	s.load(&l, c, at)
	return s.finish(c, &l)
}

// scale finds the scale of the i-th norm of column c, behind a barrier.
func (s *sumRun) scale(i, c int) {
	b, r := s.r.b, s.r
	mean := b.Div(r.total(s.squares[i], b.U32(uint32(c)), r.squareGroups()), b.Convert(kernel.F32, r.a.k))
	s.scales[i] = append(s.scales[i], b.InverseSqrt(b.Add(mean, s.eps[i])))
}

// writes reports whether the workgroup writes the sum.
func (s *sumRun) writes() kernel.Value { return s.r.b.Eq(s.r.b.WorkgroupID(0), 0) }

// all finds the scales of all columns in passes of their own, and writes the sum.
func (s *sumRun) all() {
	b, r, quads := s.r.b, s.r, s.r.k/4
	for i := range s.norms() {
		for c := range r.columns {
			b.For(b.LocalID(), r.squareGroups()*r.wave, r.lanes(), func(n kernel.Value) {
				var l sumLoads
				at := b.Min(n, quads-1)
				if i > 0 {
					s.loadGains(&l, at)
				}
				s.load(&l, c, at)
				square := lane.SquareOf(b, s.until(i, c, &l))
				if quads%r.wave != 0 {
					square = b.Select(b.Lt(n, quads), square, 0)
				}
				sum := lane.Sum(b, square, 1, r.wave)
				b.If(b.SubgroupElect(), func() { s.squares[i].Store(b.Add(b.Div(n, r.wave), c*r.squareGroups()), sum) })
			})
		}
		b.Barrier()
		for c := range r.columns {
			s.scale(i, c)
		}
	}
	if s.out == nil {
		return
	}
	b.If(s.writes(), func() {
		for c := range r.columns {
			b.For(b.LocalID(), quads, r.lanes(), func(at kernel.Value) { s.out.Store(b.Add(r.starts[c], at), s.four(c, at)) })
		}
	})
}

// eights makes x of what lanes have loaded of the eights with such numbers, of column c, where only says which lanes have some.
func (s *sumRun) eights(c int, numbers []kernel.Value, loaded []*eightLoads, only func(do func())) {
	b, r := s.r.b, s.r
	perGroup := r.wave / 2 // lanes that share a sum of squares
	for i := range s.norms() {
		only(func() {
			for turn, n := range numbers {
				var squares [2]kernel.Value
				for j := range squares {
					squares[j] = lane.SquareOf(b, s.until(i, c, &loaded[turn].sum[j]))
				}
				sum := lane.Sum(b, b.Add(squares[0], squares[1]), 1, perGroup)
				b.If(b.Eq(b.Mod(n, perGroup), 0), func() { s.squares[i].Store(b.Add(b.Div(n, perGroup), c*r.squareGroups()), sum) })
			}
		})
		b.Barrier()
		s.scale(i, c)
	}
	for _, l := range loaded {
		for j := range l.x {
			l.x[j] = s.finish(c, &l.sum[j])
		}
	}
	if s.out == nil {
		return
	}
	only(func() {
		b.If(s.writes(), func() {
			for turn, n := range numbers {
				for j, v := range loaded[turn].x {
					s.out.Store(b.Add(r.starts[c], b.Mul(n, 2), j), v)
				}
			}
		})
	})
}
