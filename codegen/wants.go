package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// applyWants asks families what must change around each group so that their kernels can take
// it, and changes it: it rounds inputs of projections and attention to the type that kernels multiply, has dispatches
// of their own round what many workgroups read and add up what they make of its parts, and gives split-K products a
// workspace.
//
// A value is rounded to f16 once for all its readers, in the group of the norm or the projections that
// make it, if it has no other reader. Otherwise a norm is computed a second time, since that needs no
// step of its own, and other values are rounded in a group of their own. For fixed point, each group that
// reads x rounds it itself, unless a family wants it packed. Tiles are written by the group that makes the rows,
// if a family can.
func applyWants(p *ir.Program, t *target.Target) error {
	if t.IsHost() {
		return nil
	}
	return parallel(len(p.Funcs), func(i int) error {
		f := p.Funcs[i]
		r := wanted{f: f, b: ir.NewBuilder(f), halves: map[*ir.Value]*ir.Op{}, tiles: map[tiling]*ir.Op{}, rounds: map[*ir.Group]bool{}, sums: map[*ir.Group]bool{}}
		for _, apply := range []func(g *ir.Group, w kernels.Rewrite) error{r.fix, r.pack, r.half, r.tile, r.workspace} {
			uses := f.Uses()
			for _, g := range slices.Clone(f.Groups) {
				r.rounds[g] = r.rounds[g] || slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "attention_merge" })
				for _, w := range strategy.Wants(&kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t}) {
					if err := apply(g, w); err != nil {
						return err
					}
				}
			}
			r.place()
			r.join(p, t)
			clear(r.halves)
			clear(r.tiles)
			clear(r.sums)
		}
		return nil
	})
}

// wanted is the work of applyWants on one function.
type wanted struct {
	f      *ir.Func
	b      *ir.Builder
	halves map[*ir.Value]*ir.Op // by what they round
	tiles  map[tiling]*ir.Op    // by what they put into tiles
	sums   map[*ir.Group]bool   // groups that add up parts
	rounds map[*ir.Group]bool   // groups that can round their own result, as all with a rotation can
}

// tiling is what is put into tiles, and in which orders.
type tiling struct {
	x     *ir.Value
	lanes string
}

// tile makes the readers of g read x from tiles, which a group of its own makes at first.
func (r *wanted) tile(g *ir.Group, w kernels.Rewrite) error {
	if w.Lanes == "" {
		return nil
	}
	attrs := ir.Attrs{{Name: "rows", Value: int64(r.f.Rows)}, {Name: "lanes", Value: w.Lanes}}
	of := tiling{w.Readers[0].Args[0], w.Lanes}
	if r.tiles[of] == nil {
		op, err := r.b.Make("tile", attrs, of.x)
		if err != nil {
			return err
		}
		r.tiles[of] = op
		i := slices.IndexFunc(r.f.Groups, func(g *ir.Group) bool { return slices.Contains(g.Ops, of.x.Def) })
		r.f.Groups = slices.Insert(r.f.Groups, i+1, &ir.Group{Name: r.f.Groups[i].Name + ".tile", Ops: []*ir.Op{op}})
	}
	x, err := r.b.Make("untile", attrs, r.tiles[of].Result)
	if err != nil {
		return err
	}
	for _, op := range w.Readers {
		op.Args[0] = x.Result
	}
	g.Ops = slices.Insert(g.Ops, 0, x)
	return nil
}

// join has groups write tiles of what they make, and those that add up parts pack it, where a family offers kernels for
// that.
func (r *wanted) join(p *ir.Program, t *target.Target) {
	if len(r.tiles) == 0 && len(r.sums) == 0 {
		return
	}
	lays := func(g *ir.Group, next []*ir.Op) bool {
		tiles := len(next) == 1 && next[0].Kind.Name == "tile"
		return (tiles || r.sums[g] && next[0].Kind.Name == "pack12") && slices.Contains(g.Ops, next[0].Args[0].Def)
	}
	uses := r.f.Uses()
	for i := 0; i+1 < len(r.f.Groups); i++ {
		g, next := r.f.Groups[i], r.f.Groups[i+1].Ops
		if !lays(g, next) {
			continue
		}
		both := &ir.Group{Name: g.Name, Ops: slices.Concat(g.Ops, next)}
		if len(strategy.Candidates(&kernels.Site{Program: p, Func: r.f, Group: both, Outputs: both.Outputs(uses), Target: t})) > 0 {
			r.f.Groups = slices.Replace(r.f.Groups, i, i+2, both)
		}
	}
}

// fix makes the readers of g round what they read.
func (r *wanted) fix(g *ir.Group, w kernels.Rewrite) error {
	if w.Round == "" || w.Round == "half" {
		return nil
	}
	x, of := w.Readers[0].Args[0], w.Readers[0].Args[1]
	var attrs ir.Attrs
	if row := of.Type.Last(); row != x.Type.Last() && w.Round != "bfloat16" {
		attrs = ir.Attrs{{Name: "row", Value: int64(row)}}
	}
	fixed, err := r.b.Make(w.Round, attrs, x)
	if err != nil {
		return err
	}
	for _, op := range w.Readers {
		op.Args[0] = fixed.Result
	}
	g.Ops = slices.Insert(g.Ops, slices.Index(g.Ops, w.Readers[0]), fixed)
	return nil
}

// pack makes three groups of g, see kernels.Parts. The one that packs stands behind a last one that makes what it
// packs.
func (r *wanted) pack(g *ir.Group, w kernels.Rewrite) error {
	if w.Pack == "" {
		return nil
	}
	packing, products, err := kernels.Parts(r.b, g, w)
	if err != nil {
		return err
	}
	at := slices.Index(r.f.Groups, g)
	r.f.Groups = slices.Insert(r.f.Groups, at, &ir.Group{Name: g.Name, Ops: products})
	g.Name += ".sum"
	r.sums[g] = true
	x, name := packing[0].Args[0].Def, r.f.Groups[at].Name+".pack"
	if i := slices.IndexFunc(r.f.Groups, func(of *ir.Group) bool { return r.sums[of] && slices.Contains(of.Ops, x) }); i >= 0 {
		at = i + 1
	}
	r.f.Groups = slices.Insert(r.f.Groups, at, &ir.Group{Name: name, Ops: packing})
	return nil
}

// half makes the readers of g read x rounded to f16.
func (r *wanted) half(g *ir.Group, w kernels.Rewrite) error {
	if w.Round != "half" {
		return nil
	}
	x := w.Readers[0].Args[0]
	if x.Type.DType == ir.F16 {
		return nil // another family wanted the same
	}
	half := r.halves[x]
	if half == nil {
		var err error
		if half, err = r.b.Make("half", nil, x); err != nil {
			return err
		}
		r.halves[x] = half
	}
	for _, op := range w.Readers {
		op.Args[0] = half.Result
	}
	r.rounds[g] = true
	return nil
}

// workspace gives the split-K products of g memory for the sums of their workgroups.
func (r *wanted) workspace(g *ir.Group, w kernels.Rewrite) error {
	if w.Workspace == 0 {
		return nil
	}
	x := g.Ops[0].Args[0]
	if g.Ops[0].Kind.Name == "untile" { // x has a row for each of the step then
		x = g.Ops[0].Result
	}
	op, err := r.b.Make("workspace", ir.Attrs{{Name: "width", Value: int64(w.Workspace)}}, x)
	if err == nil {
		g.Ops = append(g.Ops, op)
	}
	return err
}

// place puts the ops that round behind the ops that make their operands.
func (r *wanted) place() {
	uses := r.f.Uses()
	for i := 0; i < len(r.f.Groups); i++ {
		g := r.f.Groups[i]
		for _, op := range g.Ops {
			half := r.halves[op.Result]
			if op.Result == nil || half == nil {
				continue
			}
			norm := len(g.Ops) == 1 && op.Kind.Name == "rmsnorm"
			gated := len(g.Ops) == 1 && op.Kind.Name == "gated_rmsnorm"
			unread := len(uses[op.Result]) == 0 && op.Result.Class == ir.Arena
			if norm || unread && (op.Kind.Name == "rope" || op.Kind.Name == "head_join" && len(g.Ops) > 1 || op.Kind.Name == "hadamard" || (gated || r.rounds[g]) && op == g.Ops[len(g.Ops)-1]) {
				g.Ops = append(g.Ops, half)
				break
			}
			r.f.Groups = slices.Insert(r.f.Groups, i+1, &ir.Group{Name: g.Name + ".half", Ops: []*ir.Op{half}})
		}
	}
}
