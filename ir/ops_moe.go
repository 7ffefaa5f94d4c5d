package ir

import "fmt"

// moeOps are the ops of mixture-of-experts layers. k slots a row hold the chosen
// experts in descending order of their scores: the rank order, in which all sums
// over experts run.
var moeOps = []*OpKind{
	{
		Name: "topk",
		Doc: "ids[r] = the indices of the k largest scores[r], or with gating of the k largest p + bias, p as in route; largest first, equal ones by ascending index. " +
			"With groups, only the experts of used_groups groups count: those whose two largest p + bias have the largest sums, of equal ones the first",
		Params:   []string{"scores", "bias"},
		Optional: 1,
		Attrs:    []AttrSpec{intAttr("k"), {"gating", StringAttr, true}, {"groups", IntAttr, true}, {"used_groups", IntAttr, true}},
		RowWise:  true,
		Flops:    noFlops,
		Error:    exact,
		Infer: func(op *Op) (Type, error) {
			x, k := op.Args[0].Type, Dim(op.Attrs.Int("k"))
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if k <= 0 || k > x.Last() {
				return Type{}, fmt.Errorf("k %d does not fit scores %s", k, x)
			}
			g := op.Attrs.Str("gating")
			if len(op.Args) == 2 && !isVector(op.Args[1].Type, x.Last()) {
				return Type{}, fmt.Errorf("bias %s does not fit scores %s", op.Args[1].Type, x)
			}
			grouped := op.Attrs.Int("groups") != 0 || op.Attrs.Int("used_groups") != 0
			if byWeight := len(op.Args) == 2 || grouped; byWeight != (g == "sigmoid" || g == "softmax") {
				return Type{}, fmt.Errorf("gating %q does not fit a choice with or without bias or groups", g)
			}
			groups, used := Dim(op.Attrs.Int("groups")), Dim(op.Attrs.Int("used_groups"))
			if grouped && (groups < 1 || groups > 64 || used < 1 || used > groups || x.Last()%groups != 0 || x.Last()/groups < 2 || k > x.Last()/groups*used) {
				return Type{}, fmt.Errorf("%d experts of %d of %d groups do not fit scores %s", k, used, groups, x)
			}
			return MakeType(I32, x.Shape[0], k), nil
		},
	},
	{
		Name: "route",
		Doc: "w[r][i] = p[ids[r][i]]; p is softmax(scores[r]) for gating softmax, sigmoid(scores[r]) for sigmoid, and softmax over the chosen " +
			"scores alone for topk_softmax; with norm, w /= max(sum of w[r], 6.103515625e-05); then w *= scale * scales[ids[r][i]]",
		Params:   []string{"scores", "ids", "scales"},
		Optional: 1,
		Attrs:    []AttrSpec{stringAttr("gating"), intAttr("norm"), floatAttr("scale")},
		RowWise:  true,
		Flops:    noFlops,
		Error:    exact,
		Infer: func(op *Op) (Type, error) {
			x, ids := op.Args[0].Type, op.Args[1].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if err := areSlots(ids, x.Shape[0]); err != nil {
				return Type{}, err
			}
			if len(op.Args) == 3 && !isVector(op.Args[2].Type, x.Last()) {
				return Type{}, fmt.Errorf("scales %s do not fit scores %s", op.Args[2].Type, x)
			}
			switch g := op.Attrs.Str("gating"); g {
			case "softmax", "sigmoid", "topk_softmax":
			default:
				return Type{}, fmt.Errorf("unknown gating %q", g)
			}
			return MakeType(F32, ids.Shape...), nil
		},
	},
	{
		Name: "expert_linear",
		Doc: "slot i of row r, e = ids[r][i]: y[r][i*rows + n] = sum over j of weight[e][first + n][j] * x[r][j], or x[r][i*width + j] " +
			"if x has a run of width for every slot; if x is f16 or the result of op bfloat16, a kernel may round weight the same way; order and offsets, both or none, " +
			"are expert_order and expert_offsets of ids and change no result",
		Params:   []string{"x", "weight", "ids", "order", "offsets"},
		Optional: 2,
		Attrs:    []AttrSpec{intAttr("first"), intAttr("rows")},
		RowWise:  true,
		Flops:    expertFlops,
		Error:    rowTerms,
		Infer: func(op *Op) (Type, error) {
			x, w, ids := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type
			if err := areProjected(x); err != nil {
				return Type{}, err
			}
			if err := areSlots(ids, x.Shape[0]); err != nil {
				return Type{}, err
			}
			k, first, rows := ids.Shape[1], Dim(op.Attrs.Int("first")), Dim(op.Attrs.Int("rows"))
			if len(w.Shape) != 3 || w.Shape[2] <= 0 || w.Shape[2] != x.Last() && w.Shape[2]*k != x.Last() {
				return Type{}, fmt.Errorf("weight %s does not fit x %s in %d slots", w, x, k)
			}
			if first < 0 || rows <= 0 || first > w.Shape[1] || rows > w.Shape[1]-first {
				return Type{}, fmt.Errorf("rows %d from %d are not in weight %s", rows, first, w)
			}
			if err := isSorted(op.Args[2:], w.Shape[0]); err != nil {
				return Type{}, err
			}
			return MakeType(F32, x.Shape[0], k*rows), nil
		},
	},
	{
		Name:    "expert_bias",
		Doc:     "slot i of row r, e = ids[r][i]: y[r][i*rows + n] = x[r][i*rows + n] + bias[e][n], rows the width of a slot",
		Params:  []string{"x", "bias", "ids"},
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			x, b, ids := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if err := areSlots(ids, x.Shape[0]); err != nil {
				return Type{}, err
			}
			if b.DType != F32 || len(b.Shape) != 2 || b.Shape[1] <= 0 || b.Shape[1]*ids.Shape[1] != x.Last() {
				return Type{}, fmt.Errorf("bias %s does not fit x %s in %d slots", b, x, ids.Shape[1])
			}
			return x, nil
		},
	},
	{
		Name:    "expert_scale",
		Doc:     "slot i of row r, e = ids[r][i]: y[r][i*rows + n] = scales[e] * x[r][i*rows + n], rows the width of a slot",
		Params:  []string{"x", "scales", "ids"},
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			x, s, ids := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if err := areSlots(ids, x.Shape[0]); err != nil {
				return Type{}, err
			}
			if s.DType != F32 || len(s.Shape) != 1 || x.Last()%ids.Shape[1] != 0 {
				return Type{}, fmt.Errorf("scales %s do not fit x %s in %d slots", s, x, ids.Shape[1])
			}
			return x, nil
		},
	},
	{
		Name: "expert_order",
		Doc: "all slots r*k + i of the step, sorted by ids[r][i], equal ones ascending: one list that fills the result row after row; " +
			"the rest of the result is undefined",
		Params: []string{"ids"},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			ids := op.Args[0].Type
			if len(ids.Shape) != 2 {
				return Type{}, fmt.Errorf("ids %s are not i32[rows, k]", ids)
			}
			return ids, areSlots(ids, ids.Shape[0])
		},
	},
	{
		Name:   "expert_offsets",
		Doc:    "y[e] = the number of slots of the step whose id is below e, for e from 0 to experts",
		Params: []string{"ids"},
		Attrs:  []AttrSpec{intAttr("experts")},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			ids, n := op.Args[0].Type, op.Attrs.Int("experts")
			if len(ids.Shape) != 2 || n <= 0 || n > 1<<16 {
				return Type{}, fmt.Errorf("ids %s are not i32[rows, k], or experts %d is out of range", ids, n)
			}
			return MakeType(I32, Dim(n)+1), areSlots(ids, ids.Shape[0])
		},
	},
	{
		Name:    "expert_sum",
		Doc:     "y[r][n] = sum over slots i, ascending, of weights[r][i] * x[r][i*width + n]",
		Params:  []string{"x", "weights"},
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			x, w := op.Args[0].Type, op.Args[1].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if err := isRows(w); err != nil {
				return Type{}, err
			}
			if w.Shape[0] != x.Shape[0] || x.Last()%w.Last() != 0 {
				return Type{}, fmt.Errorf("weights %s do not fit x %s", w, x)
			}
			return MakeType(F32, x.Shape[0], x.Last()/w.Last()), nil
		},
	},
	{
		Name:    "gate_rows",
		Doc:     "y[r] = sigmoid(gate[r][0]) * x[r]",
		Params:  []string{"x", "gate"},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			x, g := op.Args[0].Type, op.Args[1].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if !g.Equal(MakeType(F32, x.Shape[0], 1)) {
				return Type{}, fmt.Errorf("gate %s does not fit x %s", g, x)
			}
			return x, nil
		},
	},
}

// areSlots checks for i32[rows, k].
func areSlots(ids Type, rows Dim) error {
	if ids.DType != I32 || len(ids.Shape) != 2 || ids.Shape[0] != rows || ids.Shape[1] <= 0 || ids.Shape[1] > 1<<10 {
		return fmt.Errorf("ids %s are not i32[%s, k]", ids, rows)
	}
	return nil
}

// isSorted checks the operands ids, order and offsets of an op over experts, of
// which the last two may be missing.
func isSorted(args []*Value, experts Dim) error {
	switch len(args) {
	case 1:
		return nil
	case 2:
		return fmt.Errorf("order without offsets")
	}
	ids, order, offsets := args[0].Type, args[1].Type, args[2].Type
	if !order.Equal(ids) || !offsets.Equal(MakeType(I32, experts+1)) {
		return fmt.Errorf("order %s or offsets %s do not fit ids %s of %s experts", order, offsets, ids, experts)
	}
	return nil
}
