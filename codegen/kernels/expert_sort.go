package kernels

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// sortBatch is how many vectors of ids a lane loads at once.
const sortBatch = 4

// expertSort is a group of expert_order and expert_offsets, or the latter alone.
// One subgroup works for one expert: it goes through all ids twice, to count those
// below its own, then to write the places of its own. So subgroups need nothing
// from each other.
type expertSort struct {
	ids, order, offsets *ir.Value // order may be nil
	rows                extent
	slots, experts      int
	vec                 int // ids of an access
	wave                int
}

func expertSortCandidates(s *Site) []Candidate {
	k := &expertSort{wave: s.Target.Wave}
	for _, op := range s.Group.Ops {
		name := op.Kind.Name
		if name != "expert_order" && name != "expert_offsets" || !same(&k.ids, op.Args[0]) {
			return nil
		}
		if name == "expert_order" {
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
	if k.rows, ok = extentOf(s, k.ids); !ok {
		return nil
	}
	k.slots = int(k.ids.Type.Last())
	k.vec = widest(k.rows.max * k.slots)
	return []Candidate{k.candidate()}
}

func (k *expertSort) candidate() Candidate {
	const subgroups = 4
	groups := ceilDiv(k.experts+1, subgroups)
	c := Candidate{
		Kernel:   fmt.Sprintf("expert_sort v=%d w=%d%s", k.vec, k.wave, k.rows.key()),
		Build:    k.build,
		Operands: append(k.rows.operands(), Operand{"ids", k.ids, kernel.Read}, Operand{"offsets", k.offsets, kernel.Write}),
		Consts: append(k.rows.consts(), ir.Const{Name: "slots", Value: uint32(k.slots)}, ir.Const{Name: "experts", Value: uint32(k.experts)},
			ir.Const{Name: "room", Value: uint32(k.rows.max * k.slots)}, ir.Const{Name: "workgroup", Value: uint32(subgroups * k.wave)}),
		Grid:  [3]int{groups, 1, 1},
		Cover: []plans.Cover{{Arg: "offsets", Dims: []int{k.experts + 1}, Tile: []int{subgroups}, Axis: []int{0}}},
	}
	if k.order != nil {
		c.Kernel += " order"
		c.Operands = append(c.Operands, Operand{"order", k.order, kernel.Write})
		c.Cover = append(c.Cover, plans.Cover{Arg: "order", Dims: []int{k.rows.max * k.slots}, Tile: []int{0}, Axis: []int{0}})
	}
	return c
}

func (k *expertSort) build() (*kernel.Func, error) {
	return kernel.Build("expert_sort", func(b *kernel.Builder) {
		rows := k.rows.bound(b)
		ids, offsets := b.Arg("ids", kernel.Read), b.Arg("offsets", kernel.Write)
		var order *kernel.Buffer
		if k.order != nil {
			order = b.Arg("order", kernel.Write)
		}
		slots, experts, room := b.SpecU32("slots", 8), b.SpecU32("experts", 256), b.SpecU32("room", 4096)
		workgroup := b.SpecU32("workgroup", 128)
		b.Workgroup(workgroup)
		expert := b.Add(b.Mul(b.WorkgroupID(0), b.Div(workgroup, k.wave)), b.SubgroupID())
		b.ReturnIf(b.Gt(expert, experts))
		total := b.Mul(rows, slots)

		// each runs body for vectors of slots, ascending through lanes and calls; of
		// slots past the end, exists does not hold.
		lane := b.SubgroupLane()
		each := func(body func(slots, ids []kernel.Value, exists []kernel.Value)) {
			step := sortBatch * k.wave * k.vec
			b.For(0, total, step, func(from kernel.Value) {
				at := b.Add(b.Div(from, k.vec), b.Mul(lane, sortBatch))
				var list, loaded, exists []kernel.Value
				for i := range sortBatch {
					v := b.Min(b.Add(at, i), b.Sub(b.Div(room, k.vec), 1))
					loaded = append(loaded, elements(b, ids.Load(kernel.U32.Vec(k.vec), v))...)
				}
				for i := range loaded {
					slot := b.Add(b.Mul(at, k.vec), i)
					list, exists = append(list, slot), append(exists, b.Lt(slot, total))
				}
				body(list, loaded, exists)
			})
		}
		below := b.Var(kernel.U32, 0)
		each(func(_, ids, exists []kernel.Value) {
			for i, id := range ids {
				below.Set(b.Add(below.Get(), b.Select(b.And(exists[i], b.Lt(id, expert)), b.U32(1), 0)))
			}
		})
		first := b.SubgroupAdd(below.Get())
		b.If(b.SubgroupElect(), func() { offsets.Store(expert, first) })
		if order == nil {
			return
		}
		next := b.Var(kernel.U32, first)
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
	})
}
