package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// sortBatch is how many vectors of ids a lane loads at once.
const sortBatch = 4

// expertSort is a group of expert_order and expert_offsets, or the latter alone.
// One workgroup works for one expert: its subgroups go through a part of the ids each, to count
// those below its own and its own, and then again, to write the places of its own. So workgroups
// need nothing from each other.
type expertSort struct {
	ids, order, offsets *ir.Value // order may be nil
	rows                site.Extent
	slots, experts      int
	vec                 int // ids of an access
	wave                int
}

func ExpertSortCandidates(s *site.Site, _ *ir.Op) []site.Candidate {
	k := &expertSort{wave: s.Target.Wave}
	for _, op := range s.Group.Ops {
		if !site.Same(&k.ids, op.Args[0]) {
			return nil
		}
		if op.Kind.Name == "expert_order" {
			k.order = op.Result
		} else {
			k.offsets, k.experts = op.Result, op.Attrs.Int("experts")
		}
		if !slices.Contains(s.Outputs, op.Result) {
			return nil
		}
	}
	if k.offsets == nil || len(s.Group.Ops) != len(s.Outputs) {
		return nil
	}
	var ok bool
	if k.rows, ok = site.ExtentOf(s, k.ids); !ok {
		return nil
	}
	k.slots = int(k.ids.Type.Last())
	k.vec = site.Widest(k.rows.Max * k.slots)
	return []site.Candidate{k.candidate(s.Target.Workgroup)}
}

// step is the ids that a subgroup goes through at a time.
func (k *expertSort) step() int { return sortBatch * k.wave * k.vec }

func (k *expertSort) candidate(most int) site.Candidate {
	workspace := k.rows.Max * k.slots
	subgroups := min(site.CeilDiv(workspace, 2*k.step()), k.wave, most/k.wave)
	c := site.Candidate{
		Kernel: fmt.Sprintf("expert_sort v=%d w=%d%s", k.vec, k.wave, k.rows.Key()),
		Grid:   [3]int{k.experts + 1, 1, 1},
		Cover:  []plans.Cover{{Arg: "offsets", Dims: []int{k.experts + 1}, Tile: []int{1}, Axis: []int{0}}},
	}
	if k.order != nil {
		c.Kernel += " order"
		c.Cover = append(c.Cover, plans.Cover{Arg: "order", Dims: []int{workspace}, Tile: []int{0}, Axis: []int{0}})
	}
	return site.Implement(c, "expert_sort", func(s *site.Signature) func(b *kernel.Builder) { return k.kernel(s, subgroups*k.wave) })
}

func (k *expertSort) kernel(s *site.Signature, lanes int) func(b *kernel.Builder) {
	extent, ids, offsets := k.rows.Declare(s), s.Read("ids", k.ids), s.Write("offsets", k.offsets)
	var order *kernel.Buffer
	if k.order != nil {
		order = s.Write("order", k.order)
	}
	slots, workspace := declareSlots(s, k.slots), s.U32("workspace", k.rows.Max*k.slots, 4096, "experts of all rows that there can be")
	workgroup := s.U32("workgroup", lanes, 128, "lanes")
	return func(b *kernel.Builder) {
		rows := extent.Load(b)
		b.Workgroup(workgroup)
		subgroups := b.Div(workgroup, k.wave)
		expert, laneID := b.WorkgroupID(0), b.SubgroupLane()
		total := b.Mul(rows, slots)
		part := b.Mul(b.Div(b.Add(total, b.Sub(b.Mul(subgroups, k.step()), 1)), b.Mul(subgroups, k.step())), k.step())
		begin := b.Mul(part, b.SubgroupID())
		end := b.Min(b.Add(begin, part), total)

		// each runs body for vectors of the subgroup's slots, ascending through lanes and calls; of
		// slots past the end, exists does not hold.
		each := func(body func(slots, ids []kernel.Value, exists []kernel.Value)) {
			b.For(begin, end, k.step(), func(from kernel.Value) {
				at := b.Add(b.Div(from, k.vec), b.Mul(laneID, sortBatch))
				var list, loaded, exists []kernel.Value
				for i := range sortBatch {
					v := b.Min(b.Add(at, i), b.Sub(b.Div(workspace, k.vec), 1))
					loaded = append(loaded, lane.Elements(b, ids.Load(kernel.U32.Vec(k.vec), v))...)
				}
				for i := range loaded {
					slot := b.Add(b.Mul(at, k.vec), i)
					list, exists = append(list, slot), append(exists, b.Lt(slot, total))
				}
				body(list, loaded, exists)
			})
		}
		below, own := b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
		each(func(_, ids, exists []kernel.Value) {
			for i, id := range ids {
				below.Set(b.Add(below.Get(), b.Select(b.And(exists[i], b.Lt(id, expert)), b.U32(1), 0)))
				own.Set(b.Add(own.Get(), b.Select(b.And(exists[i], b.Eq(id, expert)), b.U32(1), 0)))
			}
		})
		// A lane adds what is below in one subgroup's part, and what is its own in parts before.
		counts := b.Shared(kernel.U32.Vec(2), k.wave)
		sums := b.Vec(b.SubgroupAdd(below.Get()), b.SubgroupAdd(own.Get()))
		b.If(b.SubgroupElect(), func() { counts.Store(b.SubgroupID(), sums) })
		b.Barrier()
		count := counts.Load(b.Min(laneID, b.Sub(subgroups, 1)))
		exists := b.Lt(laneID, subgroups)
		first := b.SubgroupAdd(b.Select(exists, b.Elem(count, 0), 0))
		b.If(b.Eq(b.LocalID(), 0), func() { offsets.Store(expert, first) })
		if order == nil {
			return
		}
		before := b.SubgroupAdd(b.Select(b.Lt(laneID, b.SubgroupID()), b.Elem(count, 1), 0))
		next := b.Var(kernel.U32, b.Add(first, before))
		each(func(list, ids, exists []kernel.Value) {
			own := b.U32(0)
			places := make([]kernel.Value, len(ids)) // in the lane
			for i, id := range ids {
				places[i] = own
				own = b.Add(own, b.Select(b.And(exists[i], b.Eq(id, expert)), b.U32(1), 0))
			}
			start := b.Add(next.Get(), b.SubgroupExclusiveAdd(own))
			for i, id := range ids {
				b.If(b.And(exists[i], b.Eq(id, expert)), func() { order.Store(b.Add(start, places[i]), list[i]) })
			}
			next.Set(b.Add(next.Get(), b.SubgroupAdd(own)))
		})
	}
}
