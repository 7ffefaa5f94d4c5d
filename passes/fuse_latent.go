package passes

import "github.com/zincc-dev/zincc/ir"

// fuseLatent joins what latent attention caches, a vector that is normed and a part that is rotated, with the cuts of the row that both are of,
// where a kernel computes that.
func fuseLatent(p *ir.Program, d Device) error {
	if d.Apart {
		return nil
	}
	return each(func(f *ir.Func) error {
		uses := f.Uses()
		// maker is the op of that name that makes v for one reader alone.
		maker := func(v *ir.Value, name string) *ir.Op {
			if op := v.Def; op != nil && op.Kind.Name == name && len(uses[v]) == 1 {
				return op
			}
			return nil
		}
		for _, write := range f.Ops() {
			if write.Kind.Name != "kvwrite" {
				continue
			}
			join := maker(write.Args[0], "head_join")
			if join == nil {
				continue
			}
			norm, rope := maker(join.Args[0], "rmsnorm"), maker(join.Args[1], "rope")
			if norm == nil || rope == nil {
				continue
			}
			cut, slice := maker(norm.Args[0], "head_cut"), maker(rope.Args[0], "head_slice")
			if cut != nil && slice != nil {
				d.joinIfComputed(p, f, write, []*ir.Op{cut, norm, slice, rope, join, write})
			}
		}
		return nil
	})(p)
}
