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
// workgroup computes a few rows of the weights of the expert in one slot of one
// row, or of a shared expert. Grid axis 0 has the slots' tiles of every
// projection, axis 1 the rows. If the group chooses the experts, every workgroup
// does so for itself, as far as its slot, and one more, the first, writes ids.
type expertGemv struct {
	*expertGroup
	perSubgroup int // rows of the weights
	workgroup   int
	wave        int
	writesIDs   bool
}

func expertGemvCandidates(s *Site) []Candidate {
	g := matchExperts(s)
	if g == nil || g.order != nil || !g.allF32() {
		return nil
	}
	writesIDs := g.top != nil && slices.Contains(s.Outputs, g.ids)
	var list []Candidate
	for _, shape := range g.gemvShapes(s.Target) {
		k := expertGemv{g, shape.perSubgroup, shape.workgroup, s.Target.Wave, writesIDs}
		if c := k.candidate(); c.Grid[0] <= maxGrid {
			list = append(list, c)
		}
	}
	return list
}

// gemvShapes returns shapes as those of gemv, best guess first. No tile may reach
// into the next slot.
func (g *expertGroup) gemvShapes(t *target.Target) []expertShape {
	rows := 0 // of the weights, for one row of x
	for _, p := range g.projects {
		rows += max(1, p.slots) * p.width
	}
	const most, workgroup = 4, 128
	best := most
	for best > 1 && rows/(workgroup/t.Wave*best) < 2*t.Units {
		best /= 2
	}
	second := best / 2
	if best == 1 {
		second = 2
	}
	var list []expertShape
	for _, r := range []int{best, second} {
		for size := workgroup; size >= t.Wave; size /= 2 {
			if g.tiled(size / t.Wave * r) {
				list = append(list, expertShape{r, size})
				break
			}
		}
	}
	return list
}

type expertShape struct{ perSubgroup, workgroup int }

// tiled reports whether the experts' rows are whole tiles.
func (g *expertGroup) tiled(tile int) bool {
	return !slices.ContainsFunc(g.projects, func(p *projection) bool { return p.slots > 0 && p.width%tile != 0 })
}

func (k expertGemv) key() string {
	key := fmt.Sprintf("expert_gemv %s r=%d%s", k.linearGroup.key(), k.perSubgroup, k.extent.key())
	if k.perSlot {
		key += " slotwise"
	}
	if k.top != nil {
		key += fmt.Sprintf(" top of %d w=%d", k.top.Args[0].Type.Last(), k.wave)
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
		list = append(list, max(1, p.slots)*ceilDiv(p.width, k.tile()))
	}
	return list
}

func (k expertGemv) tile() int { return k.workgroup / k.wave * k.perSubgroup }

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
			Dims: []int{rows, width}, Tile: []int{1, k.tile()}, Axis: []int{1, 0}, First: []int{0, ids + end}})
		end += tiles
	}
	c.Grid = [3]int{ids + end, rows, 1}
	c.Consts = append(append(k.consts(firsts), k.extent.consts()...),
		ir.Const{Name: "slots", Value: uint32(k.slots)},
		ir.Const{Name: "wave", Value: uint32(k.wave)}, ir.Const{Name: "workgroup", Value: uint32(k.workgroup)})
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
		wave, workgroup := b.SpecU32("wave", 32), b.SpecU32("workgroup", 128)
		b.Workgroup(workgroup)
		subgroups := b.Div(workgroup, wave)
		row := b.WorkgroupID(1)

		var scores *scoreRow
		if k.top != nil {
			scores = loadScores(b, from, row, int(k.top.Args[0].Type.Last()), k.wave)
		}
		b.ReturnIf(b.Ge(row, rows))
		project := func(p *projectArgs, at kernel.Value) {
			result, column := row, row
			if p.spec.slots > 0 {
				tiles := b.Div(p.width, b.Mul(subgroups, k.perSubgroup))
				slot := b.Div(at, tiles)
				at = b.Mod(at, tiles)
				result = b.Add(b.Mul(row, slots), slot)
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
			n := b.Mul(b.Add(b.Mul(at, subgroups), b.SubgroupID()), k.perSubgroup)
			b.If(b.Lt(n, p.width), func() {
				t := &gemvTile{b: b, a: a, p: p, columns: []kernel.Value{b.Mul(column, b.Div(a.k, 4))}}
				k.products(t, wave, n, result)
			})
		}
		if ids == nil {
			a.each(b, b.WorkgroupID(0), project)
			return
		}
		b.IfElse(b.Lt(b.WorkgroupID(0), 1), func() {
			b.If(b.Lt(b.SubgroupID(), 1), func() {
				scores.each(slots, func(i, index kernel.Value) {
					b.If(b.SubgroupElect(), func() { ids.Store(b.Add(b.Mul(row, slots), i), index) })
				})
			})
		}, func() { a.each(b, b.Sub(b.WorkgroupID(0), 1), project) })
	})
}

// products computes perSubgroup elements of a result from element n on, in one
// subgroup.
func (k expertGemv) products(t *gemvTile, wave, n, result kernel.Value) {
	b, p := t.b, t.p
	sum := func() *kernel.Var { return b.Var(kernel.F32, 0.0) }
	t.squares = []*kernel.Var{sum()}
	for j := range p.matrices {
		var rows []kernel.Value
		var sums [][]*kernel.Var
		for r := range k.perSubgroup {
			rows = append(rows, p.row(b, j, b.Min(b.Add(n, r), b.Sub(p.width, 1))))
			sums = append(sums, []*kernel.Var{sum()})
		}
		t.rows, t.sums = append(t.rows, rows), append(t.sums, sums)
	}
	lane := b.SubgroupLane()
	for i, pass := range p.spec.passes() {
		b.For(lane, b.Div(t.a.k, p.matrices[pass[0]].format.unit), wave, func(u kernel.Value) {
			t.unit(u, t.load(u, pass), pass, i == 0)
		})
	}
	var rstd *kernel.Value
	if k.gain != nil {
		r := t.a.rstd(b, b.SubgroupAdd(t.squares[0].Get()))
		rstd = &r
	}
	own := make([]kernel.Value, len(t.sums)) // lane r stores element r
	for m := range own {
		for r, sums := range t.sums[m] {
			v := b.SubgroupAdd(sums[0].Get())
			if r > 0 {
				v = b.Select(b.Eq(lane, r), v, own[m])
			}
			own[m] = v
		}
	}
	at := b.Add(n, lane)
	b.If(b.And(b.Lt(lane, k.perSubgroup), b.Lt(at, p.width)), func() { p.store(b, own, rstd, result, at) })
}
