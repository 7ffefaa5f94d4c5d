package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// choosers are the ops whose results are ids of experts.
var choosers = []string{"topk", "head_ids"}

// sortExperts gives the experts of many rows lists of the rows that chose each of
// them, so that a kernel reads the weights of an expert once for all its rows.
func sortExperts(f *ir.Func) error {
	uses := f.Uses()
	b := ir.NewBuilder(f)
	for _, top := range f.Ops() {
		if !slices.Contains(choosers, top.Kind.Name) || f.Exact(top.Result) {
			continue
		}
		var experts []*ir.Op
		for _, u := range uses[top.Result] {
			if u.Kind.Name == "expert_linear" {
				experts = append(experts, u)
			}
		}
		if len(experts) == 0 {
			continue
		}
		order, err := b.Make("expert_order", nil, top.Result)
		if err != nil {
			return err
		}
		n := int64(experts[0].Args[1].Type.Shape[0])
		offsets, err := b.Make("expert_offsets", ir.Attrs{{Name: "experts", Value: n}}, top.Result)
		if err != nil {
			return err
		}
		for _, op := range experts {
			op.Args = append(op.Args, order.Result, offsets.Result)
		}
		at := slices.IndexFunc(f.Groups, func(g *ir.Group) bool { return g.Ops[0] == top })
		f.Groups = slices.Insert(f.Groups, at+1, &ir.Group{Ops: []*ir.Op{order, offsets}})
	}
	return nil
}
