package passes

import "github.com/zincc-dev/zincc/ir"

// fuseSSD joins a state space model of an exact step with the convolution that makes its x and the write of its ring,
// with the gate on its result, and with the slices that these read. It leaves many rows alone, where a convolution
// works on all rows at once. On devices where projections stay apart, a dispatch costs less than the work that each
// head would repeat. Groups that no kernel computes stay as they were.
func fuseSSD(p *ir.Program, d Device) error {
	if d.Apart {
		return nil
	}
	return each(func(f *ir.Func) error {
		uses := f.Uses()
		for _, op := range f.Ops() {
			if op.Kind.Name != "ssd" || !f.Exact(op.Result) {
				continue
			}
			d.joinIfComputed(p, f, op, aroundSSD(uses, op))
		}
		return nil
	})(p)
}

// aroundSSD returns the ops that one dispatch may compute with op, nil if no convolution makes its x.
func aroundSSD(uses map[*ir.Value][]*ir.Op, op *ir.Op) []*ir.Op {
	conv := op.Args[0].Def
	if conv == nil || conv.Kind.Name != "conv1d" || only(uses, conv.Result, "ssd") == nil {
		return nil
	}
	group := []*ir.Op{conv, op}
	for _, write := range uses[conv.Args[2]] {
		if write.Kind.Name == "conv_write" {
			group = append(group, write)
		}
	}
	if glu := only(uses, op.Result, "glu"); glu != nil && glu.Args[1] == op.Result {
		group = append(group, glu)
	}
	return withSlices(uses, group)
}
