package attention

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// matchLatentKey reads the group as the one chain that latent attention caches: the first elements of a row normed, those behind them
// rotated in neighbours,
//
//	head_cut rmsnorm head_slice rope head_join kvwrite
func matchLatentKey(s *site.Site) (*headsGroup, bool) {
	ops := s.Group.Ops
	if len(ops) != 6 || s.Target.Backend == plans.CPU || len(s.Outputs) > 0 {
		return nil, false
	}
	made := func(v *ir.Value, name string) *ir.Op {
		if op := v.Def; op != nil && op.Kind.Name == name && slices.Contains(ops, op) {
			return op
		}
		return nil
	}
	write := ops[5] // all others lead to it
	join := made(write.Args[0], "head_join")
	if write.Kind.Name != "kvwrite" || join == nil || join.Attrs.Int("heads") != 1 {
		return nil, false
	}
	norm, rope := made(join.Args[0], "rmsnorm"), made(join.Args[1], "rope")
	if norm == nil || rope == nil || len(norm.Args) != 2 || rope.Attrs.Str("kind") != "norm" {
		return nil, false
	}
	cut, slice := made(norm.Args[0], "head_cut"), made(rope.Args[0], "head_slice")
	if cut == nil || slice == nil || cut.Args[0] != slice.Args[0] || rope.Args[1] != write.Args[1] {
		return nil, false
	}
	x := cut.Args[0]
	width, first, turned := int(x.Type.Last()), cut.Attrs.Int("width"), rope.Attrs.Int("head_dim")
	if cut.Attrs.Int("first") != 0 || cut.Attrs.Int("stride") != width || norm.Attrs.Int("group") != first || norm.Args[1].Type.DType != ir.F32 || first+turned != width {
		return nil, false
	}
	if rope.Attrs.Int("n_rot") != turned || slice.Attrs.Int("head_dim") != turned || slice.Attrs.Int("part") != slice.Attrs.Int("parts")-1 || slice.Attrs.Int("parts")*turned != width {
		return nil, false
	}
	c := &headChain{x: x, parts: 1, norm: true, gain: norm.Args[1], rope: true, latent: first, last: join.Result, cache: write.Args[3]}
	h := &headsGroup{chains: []*headChain{c}, headDim: width, norm: norm, rope: rope, pos: write.Args[1], slot: write.Args[2], tables: []*ir.Value{rope.Args[2]},
		ctx: s.Program.Ctx, wave: s.Target.Wave}
	var ok bool
	h.rows, ok = site.ExtentOf(s, x)
	h.vec = h.access(s.Target)
	return h, ok && h.vec > 0 && first%h.vec == 0 && h.cachesFit(s)
}

// makeLatent is make of such a chain, whose head begins at access from of x.
func (k *headMaker) makeLatent(a *chainArgs, from kernel.Value, body func(j, v kernel.Value)) {
	b, normed := k.b, a.latent/k.vec
	sum := b.Var(kernel.F32, 0)
	k.chunks(func(_ int, j kernel.Value) {
		for _, e := range lane.Elements(b, k.elements(a.x, from, j)) {
			e = b.Select(b.Lt(j, normed), e, 0)
			sum.Set(b.FMA(e, e, sum.Get()))
		}
	})
	mean := b.Div(b.SubgroupAdd(sum.Get()), float64(a.latent))
	scale := b.InverseSqrt(b.Add(mean, k.epsilon))
	k.chunks(func(_ int, j kernel.Value) {
		x := k.elements(a.x, from, j)
		v := b.Var(x.Type(), x)
		b.IfElse(b.Lt(j, normed), func() { v.Set(k.normed(x, a.gain, scale, j)) }, func() {
			v.Set(k.turnPairs(x, b.Add(b.Mul(k.at, k.rope.Attrs.Int("n_rot")/k.vec), b.Sub(j, normed))))
		})
		body(j, v.Get())
	})
}
