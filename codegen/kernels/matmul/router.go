package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// RouterCandidates are for topk or route on its own: one subgroup a row.
func RouterCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	k := routerKernel{op: op, route: op.Kind.Name == "route", wave: s.Target.Wave}
	if k.route && int(op.Result.Type.Last()) > maxSlots {
		return nil
	}
	if s.Target.FewKernels && k.op.Attrs.Int("groups") == 0 {
		return nil // see routerLanes
	}
	var ok bool
	if k.rows, ok = site.ExtentOf(s, k.op.Result); !ok {
		return nil
	}
	slots := int(k.op.Result.Type.Last())
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: k.key(),
		Grid:   [3]int{k.rows.Max, 1, 1},
		Cover:  []plans.Cover{{Arg: "y", Dims: []int{k.rows.Max, slots}, Tile: []int{1, slots}, Axis: []int{0, -1}}},
	}, "router", k.kernel)}
}

type routerKernel struct {
	op    *ir.Op
	route bool
	rows  site.Extent
	wave  int
}

func (k routerKernel) key() string {
	key := "router " + k.op.Kind.Name
	if k.route {
		key += " " + gatingOf(k.op).key()
	} else {
		key += weighedKey(k.op)
	}
	return fmt.Sprintf("%s %d of %d w=%d%s", key, k.op.Result.Type.Last(), k.op.Args[0].Type.Last(), k.wave, k.rows.Key())
}

func (k routerKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	extent, bufs, y, workgroup := k.rows.Declare(s), s.ReadArgs(k.op), s.Write("y", k.op.Result), s.U32("workgroup", k.wave, 32, "lanes")
	return func(b *kernel.Builder) {
		rows := extent.Load(b)
		b.Workgroup(workgroup)
		row := b.WorkgroupID(0)
		experts, slots := int(k.op.Args[0].Type.Last()), int(k.op.Result.Type.Last())
		scores := bufs[0]
		first := b.Mul(row, slots)
		all := loadScores(b, scores, row, experts, k.wave)
		b.ReturnIf(b.Ge(row, rows))
		if !k.route {
			if byWeight(k.op) {
				var bias *kernel.Buffer
				if len(bufs) > 1 {
					bias = bufs[1]
				}
				all = all.weighed(k.op, bias)
			}
			all.each(b.U32(uint32(slots)), func(i, index kernel.Value) {
				b.If(b.SubgroupElect(), func() { y.Store(b.Add(first, i), index) })
			})
			return
		}
		chosen, scales := make([]kernel.Value, slots), []kernel.Value(nil)
		for i := range chosen {
			id := bufs[1].Load(kernel.U32, b.Add(first, i))
			chosen[i] = scores.Load(kernel.F32, b.Add(b.Mul(row, experts), id))
			if len(k.op.Args) > 2 {
				scales = append(scales, bufs[2].Load(kernel.F32, id))
			}
		}
		for i, w := range scaledBy(b, gatingOf(k.op).weights(b, all, chosen), scales) {
			b.If(b.Eq(b.SubgroupLane(), i%k.wave), func() { y.Store(b.Add(first, i), w) })
		}
	}
}
