package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// deltaParts are the ops that a delta rule's dispatch can take in.
var deltaParts = []string{"slice", "l2norm", "decay", "sigmoid", "conv1d"}

// fuseDelta joins a delta rule with the ops between the projections and the rule whose results only
// it needs, and with the gated norm of its result. At many rows convolution
// and norm stay dispatches of their own: they work on all rows at once, while the
// rule takes one row after the other, and without the norm a head can be split into parts.
func fuseDelta(f *ir.Func) error {
	uses := f.Uses()
	for _, rule := range f.Ops() {
		if rule.Kind.Name != "deltanet" {
			continue
		}
		few := f.Exact(rule.Result)
		group := []*ir.Op{rule}
		if norm := only(uses, rule.Result, "gated_rmsnorm"); norm != nil && few {
			group = append(group, norm)
		}
		for i := 0; i < len(group); i++ {
			for _, a := range group[i].Args {
				if p := a.Def; p != nil && takes(p, few) && !slices.Contains(group, p) && within(uses[a], group) {
					group = append(group, p)
					i = -1 // an op may have become free of readers outside
					break
				}
			}
		}
		for _, conv := range group {
			if conv.Kind.Name != "conv1d" {
				continue
			}
			for _, u := range uses[conv.Args[0]] {
				if u.Kind.Name == "conv_write" {
					group = append(group, u)
				}
			}
		}
		merge(f, group...)
	}
	return nil
}

func takes(op *ir.Op, few bool) bool {
	return slices.Contains(deltaParts, op.Kind.Name) && (few || op.Kind.Name != "conv1d")
}

func within(readers, group []*ir.Op) bool {
	for _, r := range readers {
		if !slices.Contains(group, r) {
			return false
		}
	}
	return true
}

// sliced are the ops that can read slices of rows in place.
var sliced = []string{"mul", "glu", "conv1d", "conv_write", "ssd"}

// fuseSlices joins each op of sliced (a product of two rows, a GLU, a convolution or the write of its ring, a state
// space model) with the slices that only it reads, and in exact steps matrices of heads with the parts of these that
// only they read, where a kernel computes that.
func fuseSlices(p *ir.Program, d Device) error {
	return each(func(f *ir.Func) error {
		uses := f.Uses()
		for _, op := range f.Ops() {
			if op.Kind.Name == "head_cut" && !d.Apart && f.Exact(op.Result) {
				if reader := only(uses, op.Result, "expert_linear"); reader != nil {
					d.joinIfComputed(p, f, op, []*ir.Op{op, reader})
				}
				continue
			}
			if !slices.Contains(sliced, op.Kind.Name) {
				continue
			}
			group := []*ir.Op{op}
			for _, v := range op.Args {
				if cut := v.Def; cut != nil && cut.Kind.Name == "slice" && only(uses, v, op.Kind.Name) == op {
					group = append(group, cut)
				}
			}
			if len(group) > 1 {
				merge(f, group...)
			}
		}
		return nil
	})(p)
}

// fuseGate joins attention with the gate on its result and the slice of the
// gate.
func fuseGate(f *ir.Func) error {
	uses := f.Uses()
	for _, op := range f.Ops() {
		if op.Kind.Name != "attention" {
			continue
		}
		gate := only(uses, op.Result, "gate")
		if gate == nil || gate.Args[0] != op.Result {
			continue
		}
		group := []*ir.Op{op, gate}
		if s := gate.Args[1].Def; s != nil && s.Kind.Name == "head_slice" && only(uses, s.Result, "gate") != nil {
			group = append(group, s)
		}
		merge(f, group...)
	}
	return nil
}
