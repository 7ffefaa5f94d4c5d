package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// headParts are the ops that make a part of the heads of latent attention of what a projection made.
var headParts = []string{"head_cut", "head_slice", "rmsnorm", "rope"}

// fuseLatent joins the heads of latent attention, which are put together of two parts, with the ops that make these
// parts for them alone and with the write of the cache, where a kernel computes that.
func fuseLatent(p *ir.Program, d Device) error {
	if d.Apart {
		return nil
	}
	return each(func(f *ir.Func) error {
		uses := f.Uses()
		for _, join := range f.Ops() {
			if join.Kind.Name != "head_join" {
				continue
			}
			group := append(makersOf(uses, join), join)
			if write := only(uses, join.Result, "kvwrite"); write != nil {
				group = append(group, write)
			}
			d.joinIfComputed(p, f, join, group)
		}
		return nil
	})(p)
}

// makersOf returns the headParts that lead to op and nowhere else.
func makersOf(uses map[*ir.Value][]*ir.Op, op *ir.Op) (list []*ir.Op) {
	for _, v := range op.Args {
		if maker := v.Def; maker != nil && len(uses[v]) == 1 && slices.Contains(headParts, maker.Kind.Name) {
			list = append(append(list, makersOf(uses, maker)...), maker)
		}
	}
	return list
}
