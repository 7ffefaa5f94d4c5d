package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

const (
	// fewestCandidates is from how many sequences on candidates are worth a dispatch: logits of fewer are soon copied.
	fewestCandidates = 8
	// leastVocab is from how many logits on a row of candidates is much less than a row of logits.
	leastVocab = 7 * ir.CandidateRow
)

// addCandidates adds a dispatch behind the logits of each exact step of many rows, and of each step of a prompt, beside
// whose choice it takes no time, unless the host reads logits where they are. Exact steps of few rows stay as fast as
// they are.
func addCandidates(p *ir.Program, t *target.Target) error {
	if t.IsHost() || t.FewKernels || p.Slots < fewestCandidates {
		return nil
	}
	for _, f := range p.Funcs {
		if !choosesToken(f) || f.IsDecode() && f.Rows < fewestCandidates {
			continue
		}
		at, logits := logitsOf(f)
		if logits == nil || logits.Type.Last() < leastVocab {
			continue
		}
		op, err := ir.NewBuilder(f).Make("candidates", nil, logits)
		if err != nil {
			return err
		}
		op.Result.Class = ir.IO
		for _, choice := range f.Ops() {
			if choice.Kind.Name == "argmax" && choice.Args[0] == logits && len(choice.Args) == 3 {
				choice.Args = append(slices.Clone(choice.Args), op.Result)
			}
		}
		f.Groups = slices.Insert(f.Groups, at+1, &ir.Group{Name: "candidates", Ops: []*ir.Op{op}})
	}
	return nil
}

// logitsOf returns the logits of a function, and the group that computes them.
func logitsOf(f *ir.Func) (at int, logits *ir.Value) {
	for i, g := range f.Groups {
		for _, op := range g.Ops {
			if r := op.Result; r != nil && r.Class == ir.IO && r.Type.DType == ir.F32 {
				at, logits = i, r
			}
		}
	}
	return at, logits
}

func choosesToken(f *ir.Func) bool {
	return slices.ContainsFunc(f.Ops(), func(op *ir.Op) bool { return op.Kind.Name == "argmax" })
}

// decidesBy reports whether an op chooses from logits by their candidates. It reads the logits of rows with a mask.
func decidesBy(op *ir.Op, logits *ir.Value) bool {
	return (op.Kind.Name == "argmax" || op.Kind.Name == "argmax_split") && len(op.Args) == 4 && op.Args[0] == logits
}
