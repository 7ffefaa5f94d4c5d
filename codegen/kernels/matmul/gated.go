package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// A projection of one row takes in the gated norm of the heads that it reads. All workgroups norm and gate all of the
// row, to the bits of the delta rule's kernel, which does it in steps of more rows. Only teams, which share x, have
// such a norm.

// gatedHeads is the gated norm of a row of x.
type gatedHeads struct {
	gain, z *ir.Value
	dim     int // elements of a head
	eps     float64
}

// gatedOf returns op, a gated_rmsnorm, if a kernel can take it in, else nil.
func gatedOf(op *ir.Op, rows int) *gatedHeads {
	dim := op.Attrs.Int("group")
	if rows != 1 || dim%16 != 0 || op.Args[1].Type.DType != ir.F32 {
		return nil
	}
	return &gatedHeads{gain: op.Args[1], z: op.Args[2], dim: dim, eps: op.Attrs.Float("eps")}
}

func (h *gatedHeads) key(k int) string { return fmt.Sprintf("gated %dx%d", k/h.dim, h.dim) }

// gatedArgs are the arguments of gatedHeads in a kernel.
type gatedArgs struct {
	gain, z *kernel.Buffer
	eps     kernel.Value
}

func (h *gatedHeads) declare(s *site.Signature) *gatedArgs {
	return &gatedArgs{s.Read("gated_gain", h.gain), s.Read("z", h.z), s.F32("gated_eps", h.eps, 1e-6, "added to the mean square of a head")}
}

// scaleHeads finds the factors of all heads, a team each.
func (r *gemvRun) scaleHeads() {
	if r.gated == nil {
		return
	}
	b, dim := r.b, r.gated.dim
	team := lane.HeadTeam(dim)
	mine, member := b.Div(b.LocalID(), team), b.Mod(b.LocalID(), team)
	b.For(mine, r.k/dim, r.lanes()/team, func(head kernel.Value) {
		list := make([]kernel.Value, dim/4/team)
		for i := range list {
			list[i] = r.a.x.Load(lane.F32x4, b.Add(b.Mul(head, dim/4), b.Add(member, i*team)))
		}
		scale := lane.HeadScale(b, lane.TeamSquares(b, list, team), dim, r.a.gated.eps)
		b.If(b.Eq(member, 0), func() { r.headScales.Store(head, scale) })
	})
	b.Barrier()
}

// gate norms and gates e, the j-th vec4 of the eight elements of x with number n; without loads ahead it loads what
// that takes.
func (r *gemvRun) gate(e, n kernel.Value, j int, ahead *eightLoads) kernel.Value {
	if r.gated == nil {
		return e
	}
	if ahead == nil {
		ahead = &eightLoads{}
		ahead.gain[j], ahead.z[j] = r.gainOfHead(n, j), r.gateOf(n, j)
	}
	scale := r.headScales.Load(r.b.Div(n, r.gated.dim/8))
	return lane.GatedHead(r.b, e, scale, ahead.gain[j], ahead.z[j])
}

// gainOfHead and gateOf load the norm's weights and the gate of the j-th vec4 of the eight elements of x with number n.
func (r *gemvRun) gainOfHead(n kernel.Value, j int) kernel.Value {
	b := r.b
	return r.a.gated.gain.Load(lane.F32x4, b.Add(b.Mul(b.Mod(n, r.gated.dim/8), 2), j))
}

func (r *gemvRun) gateOf(n kernel.Value, j int) kernel.Value {
	return r.a.gated.z.Load(lane.F32x4, r.b.Add(r.b.Mul(n, 2), j))
}
