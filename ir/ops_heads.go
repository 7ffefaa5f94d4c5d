package ir

import "fmt"

// headOps are the ops that latent attention (DeepSeek-AI 2024, arXiv 2405.04434) has beside those of others: its
// heads are in parts of different widths, and each has a matrix of its own.
var headOps = []*OpKind{
	{
		Name:    "head_cut",
		Doc:     "a part of every head; x has a run of `stride` for each head: y[r][h*width + i] = x[r][h*stride + first + i]",
		Params:  []string{"x"},
		Attrs:   []AttrSpec{intAttr("stride"), intAttr("first"), intAttr("width")},
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			stride, first, width := Dim(op.Attrs.Int("stride")), Dim(op.Attrs.Int("first")), Dim(op.Attrs.Int("width"))
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if stride <= 0 || x.Last()%stride != 0 || first < 0 || width <= 0 || first > stride || width > stride-first {
				return Type{}, fmt.Errorf("%d elements from %d of each %d do not fit %s", width, first, stride, x)
			}
			return MakeType(F32, x.Shape[0], x.Last()/stride*width), nil
		},
	},
	{
		Name:    "head_join",
		Doc:     "for each head in turn, y[r] has the head's run of a[r], then its run of b[r]",
		Params:  []string{"a", "b"},
		Attrs:   []AttrSpec{intAttr("heads")},
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			a, b, heads := op.Args[0].Type, op.Args[1].Type, Dim(op.Attrs.Int("heads"))
			for _, t := range []Type{a, b} {
				if err := isRows(t); err != nil {
					return Type{}, err
				}
				if heads <= 0 || t.Last()%heads != 0 || t.Shape[0] != a.Shape[0] {
					return Type{}, fmt.Errorf("%d heads do not fit %s and %s", heads, a, b)
				}
			}
			return MakeType(F32, a.Shape[0], a.Last()+b.Last()), nil
		},
	},
	{
		Name:    "head_ids",
		Doc:     "y[r][i] = i, for i < heads; as ids of an expert_linear it chooses a matrix for every head",
		Params:  []string{"pos"},
		Attrs:   []AttrSpec{intAttr("heads")},
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			pos, heads := op.Args[0].Type, Dim(op.Attrs.Int("heads"))
			if len(pos.Shape) != 1 || pos.DType != I32 {
				return Type{}, fmt.Errorf("pos %s is not i32[rows]", pos)
			}
			ids := MakeType(I32, pos.Shape[0], heads)
			return ids, areSlots(ids, pos.Shape[0])
		},
	},
}
