package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// fuseStrip moves a GLU of what a lone projection makes and of other rows, or a slice of such, into the projection,
// where a kernel computes that.
func fuseStrip(p *ir.Program, d Device) error {
	if d.Apart {
		return nil
	}
	return each(func(f *ir.Func) error {
		uses := f.Uses()
		for _, op := range f.Ops() {
			if op.Kind.Name != "glu" || !f.Exact(op.Result) {
				continue
			}
			gate, up := op.Args[0], op.Args[1]
			if gate.Def == nil || gate.Def.Kind.Name != "linear" || only(uses, gate, "glu") != op || up.Def != nil && up.Def.Kind.Fusion == ir.MatMul {
				continue
			}
			glu, projection := groupOf(f, op), groupOf(f, gate.Def)
			if isStrip(glu, op) && projection.Ops[len(projection.Ops)-1] == gate.Def && len(projections(projection)) == 1 {
				d.joinIfComputed(p, f, op, append(slices.Clone(projection.Ops), glu.Ops...))
			}
		}
		return nil
	})(p)
}

// isStrip reports whether a group is a GLU and at most a slice that it reads.
func isStrip(g *ir.Group, glu *ir.Op) bool {
	return len(g.Ops) == 1 || len(g.Ops) == 2 && g.Ops[0].Kind.Name == "slice" && glu.Args[1] == g.Ops[0].Result
}

func projections(g *ir.Group) (list []*ir.Op) {
	for _, op := range g.Ops {
		if op.Kind.Fusion == ir.MatMul {
			list = append(list, op)
		}
	}
	return list
}
