package kernels

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// expertGemv computes an expert group row by row, as gemv with one column: a
// workgroup computes a tile of the weights' rows, of the expert in one slot of one
// row or of a shared expert. Grid axis 0 has the slots' tiles of every projection,
// axis 1 the rows. If the group chooses the experts, every workgroup does so for
// itself, as far as its slot, and one more, the first, writes ids.
type expertGemv struct {
	*expertGroup
	gemv      gemv // of one column
	writesIDs bool
}

func expertGemvCandidates(s *Site) []Candidate {
	g := matchExperts(s)
	if g == nil || g.order != nil || g.fixed != nil || !g.allF32() {
		return nil
	}
	writesIDs := g.top != nil && slices.Contains(s.Outputs, g.ids)
	var list []Candidate
	for _, shape := range g.gemvShapes(s.Target) {
		k := expertGemv{g, shape, writesIDs}
		if c := k.candidate(); c.Grid[0] <= maxGrid {
			list = append(list, c)
		}
	}
	return list
}

// gemvShapes returns shapes as those of gemv, best guess first. No tile may reach
// into the next slot.
func (g *expertGroup) gemvShapes(t *target.Target) []gemv {
	column := *g.linearGroup
	column.rows = 1
	rows, matrices := 0, 1 // of the weights, for one row of x; of a projection
	for _, p := range g.projects {
		rows += max(1, p.slots) * p.width
		matrices = max(matrices, len(p.matrices))
	}
	k := gemv{linearGroup: &column, wave: t.Wave, columns: 1, most: residentElements}
	k.share(t)
	var list []gemv
	for i, n := range append([]int{k.subgroups}, k.otherSubgroups(t)...) {
		k.subgroups = n
		k.resident = k.fits(1)
		most := min(gemvRows, gemvParts/(matrices*k.subgroups))
		tile := min(most, ceilDiv(rows, t.Units*ceilDiv(gemvLanes, k.subgroups*t.Wave)))
		add := func(batch, tile int) {
			k.batch, k.tile = batch, batch
			for n := 2 * batch; n <= tile && g.tiled(n); n *= 2 {
				k.tile = n
			}
			same := func(o gemv) bool { return o.subgroups == k.subgroups && o.batch == k.batch && o.tile == k.tile }
			if g.tiled(k.tile) && !slices.ContainsFunc(list, same) {
				list = append(list, k)
			}
		}
		add(1, tile)
		if i == 0 {
			add(2, tile)
			add(4, tile)
			add(1, tile/2)
			add(1, min(most, 2*tile))
			add(2, min(most, 2*tile))
		}
	}
	return list
}

// tiled reports whether the experts' rows are whole tiles.
func (g *expertGroup) tiled(tile int) bool {
	return !slices.ContainsFunc(g.projects, func(p *projection) bool { return p.slots > 0 && p.width%tile != 0 })
}

func (k expertGemv) key() string {
	key := fmt.Sprintf("expert_%s%s", k.gemv.name(), k.extent.key())
	if k.perSlot {
		key += " slotwise"
	}
	if k.top != nil {
		key += fmt.Sprintf(" top of %d", k.top.Args[0].Type.Last())
	}
	if k.writesIDs {
		key += " ids"
	}
	return key
}

// slotTiles returns the workgroups of every projection for one row.
func (k expertGemv) slotTiles() []int {
	var list []int
	for _, p := range k.projects {
		list = append(list, max(1, p.slots)*ceilDiv(p.width, k.gemv.tile))
	}
	return list
}

// chooser returns the operand that the experts come from.
func (k expertGemv) chooser() Operand {
	if k.top != nil {
		return Operand{"scores", k.top.Args[0], kernel.Read}
	}
	return Operand{"ids", k.ids, kernel.Read}
}

func (k expertGemv) candidate() Candidate {
	c := Candidate{
		Kernel:   k.key(),
		Order:    "expert_" + k.gemv.order(),
		Shape:    k.gemv.shape(),
		Build:    k.build,
		Operands: append(append(k.operands(false), k.extent.operands()...), k.chooser()),
	}
	rows := k.extent.max
	var firsts []int
	ids, end := 0, 0
	if k.writesIDs {
		c.Operands = append(c.Operands, Operand{"ids", k.ids, kernel.Write})
		c.Cover = []plans.Cover{{Arg: "ids", Dims: []int{rows, k.slots}, Tile: []int{1, k.slots}, Axis: []int{1, 0}}}
		ids = 1
	}
	for i, tiles := range k.slotTiles() {
		firsts = append(firsts, end)
		width := max(1, k.projects[i].slots) * k.projects[i].width
		c.Cover = append(c.Cover, plans.Cover{Arg: fmt.Sprint("y", i),
			Dims: []int{rows, width}, Tile: []int{1, k.gemv.tile}, Axis: []int{1, 0}, First: []int{0, ids + end}})
		end += tiles
	}
	c.Grid = [3]int{ids + end, rows, 1}
	c.Consts = append(append(k.consts(firsts), k.extent.consts()...),
		ir.Const{Name: "slots", Value: uint32(k.slots)}, ir.Const{Name: "tile", Value: uint32(k.gemv.tile)})
	return c
}

func (k expertGemv) build() (*kernel.Func, error) {
	return kernel.Build("expert_gemv", func(b *kernel.Builder) {
		a, rows := k.declare(b, false), k.extent.bound(b)
		chooser := k.chooser()
		from := b.Arg(chooser.Name, chooser.Access)
		var ids *kernel.Buffer
		if k.writesIDs {
			ids = b.Arg("ids", kernel.Write)
		}
		slots := b.SpecU32("slots", 8)
		r := k.gemv.run(b, a)
		row := b.WorkgroupID(1)
		workgroup := b.WorkgroupID(0)

		var scores *scoreRow
		if k.top != nil {
			scores = loadScores(b, from, row, int(k.top.Args[0].Type.Last()), k.gemv.wave)
		}
		b.ReturnIf(b.Ge(row, rows))
		if ids != nil {
			b.If(b.And(b.Eq(workgroup, 0), b.Lt(b.SubgroupID(), 1)), func() {
				scores.each(slots, func(i, index kernel.Value) {
					b.If(b.SubgroupElect(), func() { ids.Store(b.Add(b.Mul(row, slots), i), index) })
				})
			})
			b.ReturnIf(b.Eq(workgroup, 0))
			workgroup = b.Sub(workgroup, 1)
		}
		// place finds the tile of a workgroup: r.from to r.end of a slot, whose result
		// is that row; both are the same for all who call it.
		place := func(p *projectArgs, at kernel.Value) (slot, result kernel.Value) {
			result = row
			if p.spec.slots > 0 {
				tiles := b.Div(p.width, r.tile)
				slot, at = b.Div(at, tiles), b.Mod(at, tiles)
				result = b.Add(b.Mul(row, slots), slot)
			}
			r.p, r.from = p, b.Mul(at, r.tile)
			r.end = b.Min(b.Add(r.from, r.tile), p.width)
			return slot, result
		}
		a.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
			slot, result := place(p, at)
			column := row
			if p.spec.slots > 0 {
				var expert kernel.Value
				if k.top != nil {
					expert = scores.slot(slot)
				} else {
					expert = from.Load(kernel.U32, result)
				}
				p.expert = &expert
				if k.perSlot {
					column = result
				}
			}
			r.starts = []kernel.Value{b.Mul(column, b.Div(a.k, 4))}
			if k.gemv.resident {
				r.keep()
			} else {
				r.stream()
			}
		})
		b.Barrier()
		a.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
			_, r.column = place(p, at)
			r.finish()
		})
	})
}
