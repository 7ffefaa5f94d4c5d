package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// fuseSSD joins a state space model of few rows with the convolution that makes its x and what writes the ring of that,
// with the gate on its result, and with the slices that these read. At many rows a convolution works on all rows at once, and
// where projections stay apart a dispatch costs less than what each head would compute again.
func fuseSSD(f *ir.Func, apart bool) error {
	if apart {
		return nil
	}
	uses := f.Uses()
	for _, op := range f.Ops() {
		if op.Kind.Name != "ssd" || rowsOf(f, op.Result) > ir.DecodeRows {
			continue
		}
		conv := op.Args[0].Def
		if conv == nil || conv.Kind.Name != "conv1d" || only(uses, conv.Result, "ssd") == nil || !slices.Equal(conv.Args[3:5], op.Args[6:8]) {
			continue
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
		for _, reader := range slices.Clone(group) {
			for _, v := range reader.Args {
				if cut := v.Def; cut != nil && cut.Kind.Name == "slice" && within(uses[v], group) && !slices.Contains(group, cut) {
					group = append(group, cut)
				}
			}
		}
		merge(f, group...)
	}
	return nil
}
