package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// expertGemvRun is the kernel while it is built.
type expertGemvRun struct {
	expertGemv
	*gemvRun
	from   *kernel.Buffer // scores or ids
	begin  func()         // loads what waits for dispatches before, and leaves rows that are none
	scores *scoreRow      // nil if the group does not choose
	chosen *kernel.Array  // the expert of the workgroup's slot, if one subgroup chooses for all
	row    kernel.Value
	slots  kernel.Value
	parts  []kernel.Value // by projection: what a workgroup has of it, if it has no tiles of its own
}

func (k expertGemv) kernel(s *site.Signature) func(b *kernel.Builder) {
	firsts, workgroups := k.workgroups()
	a, extent := k.declare(s, false, firsts), k.extent.Declare(s)
	t := &expertGemvRun{expertGemv: k, parts: make([]kernel.Value, len(k.projects))}
	var bias, ids *kernel.Buffer
	if k.top == nil {
		t.from = s.Read("ids", k.ids)
	} else {
		t.from = s.Read("scores", k.top.Args[0])
		if len(k.top.Args) > 1 {
			bias = s.Read("choice", k.top.Args[1])
		}
	}
	if k.writesIDs {
		ids = s.Write("ids", k.ids)
	}
	t.slots = declareSlots(s, k.slots)
	var stride, first kernel.Value
	if k.cut != nil {
		stride = s.U32("x_stride", k.cut.Attrs.Int("stride"), 256, "elements of x from one slot's to the next one's")
		first = s.U32("x_first", k.cut.Attrs.Int("first"), 0, "the first of them that counts")
	}
	tile := k.gemv.declareTile(s)
	for i, p := range k.projects {
		if k.tiles(p) == 0 {
			t.parts[i] = s.U32(fmt.Sprint("part", i), k.part(p, workgroups), 2, "rows of a shared expert's weights of a workgroup")
		}
	}
	return func(b *kernel.Builder) {
		a.countRows(b)
		t.gemvRun = k.gemv.run(b, a, tile)
		t.row = b.WorkgroupID(1)
		workgroup := b.WorkgroupID(0)
		t.begin = func() { t.leave(extent, bias, ids) }
		if ids != nil {
			workgroup = b.Sub(workgroup, 1)
		}
		if k.gemv.teams > 0 {
			t.inTeams(workgroup)
			return
		}
		t.begin()
		a.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
			slot, result := t.place(p, at)
			column := t.row
			if p.spec.slots > 0 {
				t.choose(p, slot, result)
				if k.perSlot {
					column = result
				}
			}
			start := b.Mul(column, b.Div(a.k, 4))
			if k.cut != nil {
				start = b.Add(b.Mul(column, b.Div(stride, 4)), b.Div(first, 4))
			}
			t.starts = []kernel.Value{start}
			if k.gemv.resident {
				t.keep()
			} else {
				t.stream()
			}
		})
		b.Barrier()
		a.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
			_, t.column = t.place(p, at)
			t.finish()
		})
	}
}

// leave loads the scores, if the group chooses, writes the chosen experts to ids, if there is one, and leaves rows that
// are none.
func (t *expertGemvRun) leave(extent site.StepRows, bias, ids *kernel.Buffer) {
	b := t.b
	rows := extent.Load(b)
	if t.top != nil {
		t.scores = loadScores(b, t.from, t.row, int(t.top.Args[0].Type.Last()), t.expertGemv.gemv.wave)
		if byWeight(t.top) {
			t.scores = t.scores.weighed(t.top, bias)
		}
	}
	b.ReturnIf(b.Ge(t.row, rows))
	if ids != nil {
		b.If(b.And(b.Eq(b.WorkgroupID(0), 0), b.Lt(b.SubgroupID(), 1)), func() {
			t.scores.each(t.slots, func(i, index kernel.Value) {
				b.If(b.SubgroupElect(), func() { ids.Store(b.Add(b.Mul(t.row, t.slots), i), index) })
			})
		})
		b.ReturnIf(b.Eq(b.WorkgroupID(0), 0))
	}
}

// place finds the tile of a workgroup, from and end, of a slot, whose result is that row;
// both are the same for all who call it.
func (t *expertGemvRun) place(p *projectArgs, at kernel.Value) (slot, result kernel.Value) {
	b := t.b
	result = t.row
	if p.spec.slots > 0 {
		tiles := b.Div(p.width, t.gemvRun.tile)
		slot, at = b.Div(at, tiles), b.Mod(at, tiles)
		result = b.Add(b.Mul(t.row, t.slots), slot)
	}
	t.within(p, at, t.gemvRun.tile)
	return slot, result
}

// within makes the rows of the workgroup a tile of p, or none if p has fewer tiles.
func (t *expertGemvRun) within(p *projectArgs, at, tile kernel.Value) {
	t.p, t.gemvRun.from = p, t.b.Min(t.b.Mul(at, tile), p.width)
	t.end = t.b.Min(t.b.Add(t.gemvRun.from, tile), p.width)
}

// choose finds the expert of a slot.
func (t *expertGemvRun) choose(p *projectArgs, slot, result kernel.Value) {
	var expert kernel.Value
	switch {
	case t.chosen != nil:
		expert = t.chosen.Load(0)
	case t.scores != nil:
		expert = t.scores.slot(slot)
	default:
		expert = t.from.Load(kernel.U32, result)
	}
	p.expert = &expert
}

// sharedPart is what each workgroup has of a shared expert.
type sharedPart struct {
	*projectArgs
	tile  kernel.Value
	sums  *kernel.Array
	words *heldWords
}

// inTeams is the kernel with x in shared memory.
func (t *expertGemvRun) inTeams(workgroup kernel.Value) {
	b, r := t.b, t.gemvRun
	routed, parts := *r.a, []sharedPart(nil)
	routed.projects = nil
	for i, p := range r.a.projects {
		if p.spec.slots > 0 {
			routed.projects = append(routed.projects, p)
			continue
		}
		tile := t.parts[i]
		parts = append(parts, sharedPart{&p, tile, b.Shared(kernel.F32, b.Mul(tile, r.gemv.parts())), nil})
	}
	r.starts = []kernel.Value{b.Mul(t.row, b.Div(r.a.k, 4))}
	for i, p := range parts { // these wait for nothing
		t.within(p.projectArgs, workgroup, p.tile)
		if p.spec.fixed {
			parts[i].words = newWords(b, r.first(r.place()))
		}
	}
	t.begin()
	// The last subgroup chooses while others round x.
	if t.scores != nil {
		slot := b.Var(kernel.U32, 0)
		routed.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
			slot.Set(b.Div(at, b.Div(p.width, r.tile)))
		})
		t.chosen = b.Shared(kernel.U32, 1)
		b.If(b.Eq(b.SubgroupID(), r.lanes()/r.wave-1), func() {
			expert := t.scores.slot(slot.Get())
			b.If(b.SubgroupElect(), func() { t.chosen.Store(0, expert) })
		})
	}
	r.makeShared(0)
	b.Barrier()
	products := func(x *residentX, words *heldWords) {
		if !r.p.spec.fixed {
			r.loop()
			return
		}
		r.takeShared(x)
		r.products(x, words)
	}
	routed.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
		// Words of the experts are on their way while the shared ones are multiplied.
		slot, result := t.place(p, at)
		t.choose(p, slot, result)
		var x *residentX
		var words *heldWords
		if p.spec.fixed {
			x = r.place()
			words = newWords(b, r.first(x))
		}
		t.eachPart(workgroup, parts, func(p sharedPart) { products(r.place(), p.words) })
		t.place(p, at)
		products(x, words)
	})
	b.Barrier()
	t.eachPart(workgroup, parts, func(sharedPart) {
		r.column = t.row
		r.finish()
	})
	routed.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
		_, r.column = t.place(p, at)
		r.finish()
	})
}

// eachPart calls do with the run made that of each part of the workgroup.
func (t *expertGemvRun) eachPart(workgroup kernel.Value, parts []sharedPart, do func(p sharedPart)) {
	r := t.gemvRun
	tile, sums := r.tile, r.sums
	for _, p := range parts {
		t.within(p.projectArgs, workgroup, p.tile)
		r.tile, r.sums = p.tile, p.sums
		do(p)
	}
	r.tile, r.sums = tile, sums
}
