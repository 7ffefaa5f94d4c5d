package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// dependsOn reports whether b must stay behind a: it reads
// something that a makes or writes, or writes something that a reads or writes.
func dependsOn(b, a *ir.Group) bool {
	for _, op := range a.Ops {
		if op.Result != nil && slices.Contains(b.Inputs(), op.Result) {
			return true
		}
	}
	aw, bw := a.Writes(), b.Writes()
	return intersects(aw, b.Inputs()) || intersects(bw, a.Inputs()) || intersects(aw, bw)
}

func intersects(a, b []*ir.Value) bool {
	for _, v := range a {
		if slices.Contains(b, v) {
			return true
		}
	}
	return false
}

// mergeUp moves the ops of group j behind those of group i < j, if nothing
// between needs them apart.
func mergeUp(f *ir.Func, i, j int) bool {
	for k := i + 1; k < j; k++ {
		if dependsOn(f.Groups[j], f.Groups[k]) {
			return false
		}
	}
	f.Groups[i].Ops = append(f.Groups[i].Ops, f.Groups[j].Ops...)
	f.Groups = slices.Delete(f.Groups, j, j+1)
	return true
}

// mergeDown moves the ops of group i in front of those of group j > i, if
// nothing between needs them apart.
func mergeDown(f *ir.Func, i, j int) bool {
	for k := i + 1; k < j; k++ {
		if dependsOn(f.Groups[k], f.Groups[i]) {
			return false
		}
	}
	f.Groups[j].Ops = append(slices.Clone(f.Groups[i].Ops), f.Groups[j].Ops...)
	f.Groups = slices.Delete(f.Groups, i, i+1)
	return true
}

// pending returns the ops that read one of vs. A search for readers can stop when it
// has seen them all, usually long before the end of the function.
func pending(uses map[*ir.Value][]*ir.Op, vs ...*ir.Value) map[*ir.Op]bool {
	ops := map[*ir.Op]bool{}
	for _, v := range vs {
		for _, op := range uses[v] {
			ops[op] = true
		}
	}
	return ops
}

// saw takes the ops of g off the pending ones and reports whether one was there.
func saw(pending map[*ir.Op]bool, g *ir.Group) bool {
	n := len(pending)
	for _, op := range g.Ops {
		delete(pending, op)
	}
	return len(pending) < n
}

// results returns what the ops of g make.
func results(g *ir.Group) []*ir.Value {
	var vs []*ir.Value
	for _, op := range g.Ops {
		if op.Result != nil {
			vs = append(vs, op.Result)
		}
	}
	return vs
}

// is reports whether every op of g has the fusion class.
func is(g *ir.Group, c ir.Fusion) bool {
	for _, op := range g.Ops {
		if op.Kind.Fusion != c {
			return false
		}
	}
	return true
}

// fuseProjections joins linear ops that read the same input. At many rows float32
// weights stay apart from others: kernels may round the others to f16, but a weight
// in float32, such as a router, needs its precision. On devices where projections
// stay apart, it joins only gate and up of a GLU.
func fuseProjections(f *ir.Func, d Device) error {
	uses := f.Uses()
	join := func(a, b *ir.Group) bool {
		if d.Apart {
			return len(a.Ops) == 1 && len(b.Ops) == 1 && ofOneGLU(uses, a.Ops[0], b.Ops[0])
		}
		return alike(f, d, a, b)
	}
	for i := 0; i < len(f.Groups); i++ {
		if !is(f.Groups[i], ir.MatMul) {
			continue
		}
		x := f.Groups[i].Ops[0].Args[0]
		left := pending(uses, x)
		saw(left, f.Groups[i])
		for j := i + 1; j < len(f.Groups) && len(left) > 0; j++ {
			if g := f.Groups[j]; saw(left, g) && is(g, ir.MatMul) && g.Ops[0].Args[0] == x && join(f.Groups[i], g) && mergeUp(f, i, j) {
				j--
			}
		}
	}
	return nil
}

// ofOneGLU reports whether two projections with weights of one type are gate and up of a GLU, in either order,
// and only the GLU reads them.
func ofOneGLU(uses map[*ir.Value][]*ir.Op, a, b *ir.Op) bool {
	glu := only(uses, a.Result, "glu")
	return glu != nil && only(uses, b.Result, "glu") == glu && oneType(a, b)
}

// oneType reports whether the weights of projections have the same type.
func oneType(projections ...*ir.Op) bool {
	for _, p := range projections {
		if p.Args[1].Type.DType != projections[0].Args[1].Type.DType {
			return false
		}
	}
	return true
}

// alike reports whether the projections of a and b may share a kernel.
func alike(f *ir.Func, d Device, a, b *ir.Group) bool {
	precise := func(g *ir.Group) bool { return g.Ops[0].Args[1].Type.DType == ir.F32 }
	if precise(a) == precise(b) {
		return true
	}
	rows, work := rowsOf(f, a.Ops[0].Result), int64(0)
	for _, op := range slices.Concat(a.Ops, b.Ops) {
		if w := op.Args[1].Type; op.Kind.Name == "linear" && w.DType != ir.F32 {
			work += int64(rows) * int64(w.Shape[0]) * int64(w.Last())
		}
	}
	least := d.FloatsApart
	return f.Exact(a.Ops[0].Result) && !(least.Rows > 0 && rows >= least.Rows && work >= least.Work)
}

// fuseNorm moves a norm of whole rows into the dispatches that read it, if all of
// them can take it. Two readers get a copy each, since in an exact step a norm costs less
// than the barrier behind it. On matrix units the norm of many rows stays, since they multiply
// rows rounded to f16, which must be normalized before. A norm over runs of a row moves only into a
// projection of an exact step that can take it.
func fuseNorm(f *ir.Func, d Device) error {
	uses := f.Uses()
	b := ir.NewBuilder(f)
	for i := 0; i < len(f.Groups); i++ {
		g := f.Groups[i]
		if !is(g, ir.RowNorm) {
			continue
		}
		norm := g.Ops[0]
		if perHead(norm) {
			linear := only(uses, norm.Result, "linear")
			if linear == nil || !f.Exact(norm.Result) || !d.Kernels.NormsRuns(norm, linear, rowsOf(f, norm.Result)) {
				continue
			}
		}
		readers := normReaders(f, i, pending(uses, norm.Result))
		many := !f.Exact(norm.Result)
		if len(readers) == 0 || many && (d.Matrices || len(readers) > 1) {
			continue
		}
		for _, r := range readers {
			copied, err := b.Make(norm.Kind.Name, norm.Attrs, norm.Args...)
			if err != nil {
				return err
			}
			for _, op := range r.Ops {
				for k, a := range op.Args {
					if a == norm.Result {
						op.Args[k] = copied.Result
					}
				}
			}
			r.Ops = append([]*ir.Op{copied}, r.Ops...)
		}
		f.Groups = slices.Delete(f.Groups, i, i+1)
		i--
	}
	return nil
}

// fusePostNorm joins a norm of whole rows with the residual add if only the add reads it, and with a factor on the sum.
// If a second norm is the only reader of the sum, it joins that norm's group likewise, where a kernel computes that.
func fusePostNorm(p *ir.Program, d Device) error {
	return each(func(f *ir.Func) error {
		uses, taken := f.Uses(), map[*ir.Op]bool{}
		groups := map[*ir.Op][]*ir.Op{}                 // by their norm
		for _, norm := range slices.Backward(f.Ops()) { // of two norms of a sum the later one has what it needs
			if norm.Kind.Name != "rmsnorm" || perHead(norm) {
				continue
			}
			add := only(uses, norm.Result, "add")
			if add == nil || add.Args[0] == add.Args[1] || taken[add] {
				continue
			}
			taken[add] = true
			group := []*ir.Op{norm, add}
			if scale := only(uses, add.Result, "scale"); scale != nil {
				group = append(group, scale)
			}
			merge(f, group...)
			groups[norm] = group
			if again := only(uses, add.Result, "rmsnorm"); again != nil && groups[again] != nil && !slices.Contains(groups[again][1].Args, add.Result) {
				d.joinIfComputed(p, f, norm, append(group, groups[again]...))
			}
		}
		return nil
	})(p)
}

// normReaders returns the groups behind i that read a norm's result, or none if one
// of them cannot take the norm.
func normReaders(f *ir.Func, i int, left map[*ir.Op]bool) []*ir.Group {
	var readers []*ir.Group
	for _, g := range f.Groups[i+1:] {
		if len(left) == 0 {
			break
		}
		if !saw(left, g) {
			continue
		}
		if !is(g, ir.MatMul) && !isExpertUp(f, g) {
			return nil
		}
		readers = append(readers, g)
	}
	return readers
}

// perHead reports whether a norm works on heads rather than on whole rows.
func perHead(op *ir.Op) bool {
	return op.Kind.Fusion == ir.RowNorm && ir.Dim(op.Attrs.Int("group")) != op.Args[0].Type.Last()
}

// fuseEpilogue moves elementwise ops into the matmul group that makes their operand: a GLU behind two projections, an
// add behind a lone projection, if only that op reads them. In exact steps it also moves what kernels take in behind a
// product, such as a factor, except on devices where projections stay apart.
func fuseEpilogue(f *ir.Func, d Device) error {
	uses := f.Uses()
	for i := 0; i < len(f.Groups); i++ {
		left := pending(uses, results(f.Groups[i])...)
		saw(left, f.Groups[i])
		for j := i + 1; j < len(f.Groups) && len(left) > 0; j++ {
			g := f.Groups[j]
			if !saw(left, g) || !is(g, ir.Elementwise) || !d.takesEpilogue(f, f.Groups[i], g.Ops[0], uses) {
				continue
			}
			if mergeUp(f, i, j) || mergeDown(f, i, j) {
				j = i
				left = pending(uses, results(f.Groups[i])...)
				saw(left, f.Groups[i])
			}
		}
	}
	return nil
}

// takesEpilogue reports whether g, with projections, takes in op behind them.
func (d Device) takesEpilogue(f *ir.Func, g *ir.Group, op *ir.Op, uses map[*ir.Value][]*ir.Op) bool {
	var made []*ir.Value // results of g that only op reads
	projections := 0
	for _, p := range g.Ops {
		if p.Kind.Fusion == ir.MatMul {
			projections++
		}
		if r := p.Result; r != nil && r.Class == ir.Arena && len(uses[r]) == 1 && uses[r][0] == op {
			made = append(made, r)
		}
	}
	last := g.Ops[len(g.Ops)-1]
	switch op.Kind.Name {
	case "glu":
		return projections == 2 && last.Kind.Fusion == ir.MatMul && len(made) == 2 && made[0] == op.Args[0] && made[1] == op.Args[1]
	case "add":
		return projections == 1 && (last.Kind.Fusion == ir.MatMul || d.Kernels.Finishes(last)) && len(made) == 1 && op.Args[0] != op.Args[1]
	}
	return projections == 1 && last.Kind.Fusion == ir.MatMul && len(made) == 1 && !d.Apart && f.Exact(op.Result) && d.Kernels.Finishes(op)
}

// ofOneHead reports whether a norm of whole rows is a norm of heads, with one head in a row.
func ofOneHead(norm *ir.Op, uses map[*ir.Value][]*ir.Op) bool {
	if norm.Kind.Name != "rmsnorm" {
		return false
	}
	rope := only(uses, norm.Result, "rope")
	return rope != nil && rope.Attrs.Int("head_dim") == norm.Attrs.Int("group") ||
		len(norm.Args) == 1 && only(uses, norm.Result, "kvwrite") != nil
}

// fuseHeads joins the ops that work on single heads of one layer.
func fuseHeads(f *ir.Func) error {
	uses := f.Uses()
	heads := func(g *ir.Group) bool {
		for _, op := range g.Ops {
			if op.Kind.Fusion != ir.PerHead && !perHead(op) && !ofOneHead(op, uses) {
				return false
			}
		}
		return true
	}
	for i := 0; i < len(f.Groups); i++ {
		if !heads(f.Groups[i]) {
			continue
		}
		for j := i + 1; j < len(f.Groups) && heads(f.Groups[j]); {
			if !sameHeads(f.Groups[i], f.Groups[j]) || !mergeUp(f, i, j) {
				break
			}
		}
	}
	return nil
}

// sameHeads reports whether the heads of two groups are as wide, as far as their ops say.
func sameHeads(a, b *ir.Group) bool {
	x, y := headWidth(a), headWidth(b)
	return x == 0 || y == 0 || x == y
}

// headWidth is the width of the heads that a group works on; 0 if none of its ops says it.
func headWidth(g *ir.Group) int {
	for _, op := range g.Ops {
		switch op.Kind.Name {
		case "head_slice", "rope":
			return op.Attrs.Int("head_dim")
		case "rmsnorm":
			return op.Attrs.Int("group")
		}
	}
	return 0
}

// fuseArgmax joins the choice of the next token with the advance of the step block, behind all readers of the step
// block.
func fuseArgmax(f *ir.Func) error {
	for j := 1; j < len(f.Groups); j++ {
		op := f.Groups[j].Ops[0]
		if op.Kind.Name != "advance" {
			continue
		}
		i := slices.IndexFunc(f.Groups[:j], func(g *ir.Group) bool { return g.Ops[0].Result == op.Args[0] })
		if i >= 0 && mergeDown(f, i, j) {
			j--
		}
	}
	return nil
}
