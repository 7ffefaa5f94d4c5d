package attention

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// latentHeads describes the two parts of the heads of latent attention: elements of x, which may be normed, and behind
// them those of other rows, rotated in neighbours.
type latentHeads struct {
	first   int // elements of the first part
	stride  int // of x, from one head to the next
	rotated headRun
	ops     []*ir.Op // that make them
}

// headRun is the part of a head that begins at an element of its stride of x, and is so wide.
type headRun struct {
	x                    *ir.Value
	stride, start, width int
}

// matchLatent reads a group as such heads, of queries or of what is cached:
//
//	[head_cut | head_slice] [rmsnorm] [head_cut | head_slice] rope head_join [half | kvwrite]
func matchLatent(s *site.Site) (*headsGroup, bool) {
	ops := s.Group.Ops
	i := slices.IndexFunc(ops, func(op *ir.Op) bool { return op.Kind.Name == "head_join" })
	if i < 0 {
		return nil, false
	}
	h := &headsGroup{ctx: s.Program.Ctx, wave: s.Target.Wave}
	c := h.addLatent(s, ops[i])
	if c == nil {
		return nil, false
	}
	outputs := []*ir.Value{c.last}
	for _, op := range ops {
		switch {
		case slices.Contains(c.latent.ops, op):
		case op.Args[0] != c.last || c.cache != nil || c.half:
			return nil, false
		case op.Kind.Name == "half":
			c.half, c.last, outputs = true, op.Result, []*ir.Value{op.Result}
		case op.Kind.Name == "kvwrite" && site.Same(&h.pos, op.Args[1]) && site.Same(&h.slot, op.Args[2]):
			c.cache, c.kept, outputs = op.Args[3], keptOf(op, op.Args[3]), nil
		default:
			return nil, false
		}
	}
	var ok bool
	h.rows, ok = site.ExtentOf(s, c.x)
	h.vec = h.access(s.Target)
	return h, ok && slices.Equal(s.Outputs, outputs) && c.fits(h) && h.cachesFit(s)
}

// addLatent adds the chain that ends in a join, nil if it is none of latent attention.
func (h *headsGroup) addLatent(s *site.Site, join *ir.Op) *headChain {
	if s.Target.FewKernels {
		return nil
	}
	l := &latentHeads{ops: []*ir.Op{join}}
	made := func(v *ir.Value, names ...string) *ir.Op {
		op := v.Def
		if op == nil || !slices.Contains(names, op.Kind.Name) || !slices.Contains(s.Group.Ops, op) {
			return nil
		}
		l.ops = append(l.ops, op)
		return op
	}
	heads := join.Attrs.Int("heads")
	rope := made(join.Args[1], "rope")
	if rope == nil || rope.Attrs.Str("kind") != "norm" || rope.Attrs.Int("n_rot") != rope.Attrs.Int("head_dim") || int(rope.Result.Type.Last()) != heads*rope.Attrs.Int("head_dim") {
		return nil
	}
	c := &headChain{x: join.Args[0], parts: 1, rope: true, last: join.Result, latent: l}
	l.first, l.rotated = int(c.x.Type.Last())/heads, headRun{x: rope.Args[0]}
	l.stride, l.rotated.stride = l.first, rope.Attrs.Int("head_dim")
	if part := made(l.rotated.x, "head_slice", "head_cut"); part != nil {
		if l.rotated = runOf(part); l.rotated.width != rope.Attrs.Int("head_dim") {
			return nil
		}
	}
	if norm := made(c.x, "rmsnorm"); norm != nil {
		if norm.Attrs.Int("group") != l.first || len(norm.Args) != 2 || norm.Args[1].Type.DType != ir.F32 || norm.Args[1].Type.Last() != ir.Dim(l.first) {
			return nil
		}
		c.norm, c.gain, c.x, h.norm = true, norm.Args[1], norm.Args[0], norm
	}
	if part := made(c.x, "head_slice", "head_cut"); part != nil {
		run := runOf(part)
		if run.start != 0 || run.width != l.first {
			return nil
		}
		c.x, l.stride = run.x, run.stride
	}
	inside := func(v *ir.Value) bool { return v.Def != nil && slices.Contains(s.Group.Ops, v.Def) }
	if inside(c.x) || inside(l.rotated.x) || c.x.Type.DType != ir.F32 || l.rotated.x.Type.DType != ir.F32 {
		return nil
	}
	h.rope, h.pos, h.headDim = rope, rope.Args[1], l.first+rope.Attrs.Int("head_dim")
	h.rotateBy(c, rope.Args[2])
	h.chains = append(h.chains, c)
	return c
}

// runOf returns where the parts are that a head_slice or head_cut takes.
func runOf(op *ir.Op) headRun {
	if op.Kind.Name == "head_cut" {
		return headRun{op.Args[0], op.Attrs.Int("stride"), op.Attrs.Int("first"), op.Attrs.Int("width")}
	}
	width := op.Attrs.Int("head_dim")
	return headRun{op.Args[0], op.Attrs.Int("parts") * width, op.Attrs.Int("part") * width, width}
}

// fits reports whether accesses of the group lie in one part of a head.
func (c *headChain) fits(h *headsGroup) bool {
	l := c.latent
	return h.vec > 1 && l.first%h.vec == 0 && l.stride%h.vec == 0 && l.rotated.stride%h.vec == 0 && l.rotated.start%h.vec == 0
}

func (l *latentHeads) key() string { return fmt.Sprintf("/%d", l.first) }

// latentArgs are the arguments and constants of such heads in a kernel.
type latentArgs struct {
	rotated               *kernel.Buffer
	stride, other, begins kernel.Value
}

func (l *latentHeads) declare(s *site.Signature, i int) *latentArgs {
	return &latentArgs{
		rotated: s.Read(fmt.Sprint("rotated", i), l.rotated.x),
		stride:  s.U32(fmt.Sprint("stride", i), l.stride, 64, "elements of x from a head to the next"),
		other:   s.U32(fmt.Sprint("other", i), l.rotated.stride, 64, "elements of rotated from a head to the next"),
		begins:  s.U32(fmt.Sprint("begins", i), l.rotated.start, 0, "which of them is the first that counts"),
	}
}

// makeLatent is make of a head of two parts.
func (k *headMaker) makeLatent(a *chainArgs, head kernel.Value, body func(j, v kernel.Value)) {
	b, l, n := k.b, a.latentArgs, a.latent.first/k.vec
	from := b.Div(b.Mul(head, l.stride), k.vec)
	// either runs first for accesses of the first part, and second for those behind them.
	either := func(at int, j kernel.Value, first, second func()) {
		switch {
		case at+k.wave <= n:
			first()
		case at >= n:
			second()
		default:
			b.IfElse(b.Lt(j, n), first, second)
		}
	}
	var scale kernel.Value
	if a.norm {
		sum := b.Var(kernel.F32, 0)
		k.chunks(func(at int, j kernel.Value) {
			either(at, j, func() {
				for _, e := range lane.Elements(b, k.elements(a.x, from, j)) {
					sum.Set(b.FMA(e, e, sum.Get()))
				}
			}, func() {})
		})
		scale = b.InverseSqrt(b.Add(b.Div(b.SubgroupAdd(sum.Get()), float64(a.latent.first)), k.epsilon))
	}
	k.chunks(func(at int, j kernel.Value) {
		v := b.Var(kernel.F32.Vec(k.vec), b.Splat(b.F32(0), k.vec))
		either(at, j, func() { v.Set(k.load(a.x, from, a.gain, scale, j)) }, func() {
			i := b.Sub(j, n)
			x := l.rotated.Load(kernel.F32.Vec(k.vec), b.Add(b.Div(b.Add(b.Mul(head, l.other), l.begins), k.vec), i))
			v.Set(k.turnPairs(x, b.Add(b.Mul(k.at, k.rope.Attrs.Int("n_rot")/k.vec), i)))
		})
		body(j, v.Get())
	})
}
