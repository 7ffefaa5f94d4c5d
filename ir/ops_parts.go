package ir

import "fmt"

// Products of parts of rows, each by itself, and the dispatch behind that adds them: a workgroup need not wait for
// those that have the other parts of its rows.

const (
	// PartStep divides how many elements a part of a row has.
	PartStep = PackBlock

	mostPartsWidth = 1 << 28
)

// PartsOf returns how many parts of so many elements a row of k has.
func PartsOf(k, each int) int { return (k + each - 1) / each }

var partOps = []*OpKind{
	{
		Name:    "linear_parts",
		Doc:     "y[r][c*N + n] = sum over k of part c of weight[n][k] * x[r][k]; weight has N rows, and part c is the `each` k from c*each on, the last one those that are left; op add_parts makes of it what linear does; weight may be rounded as for linear",
		Params:  []string{"x", "weight"},
		Attrs:   []AttrSpec{intAttr("each")},
		Fusion:  MatMul,
		RowWise: true,
		Flops:   productFlops,
		Error: func(op *Op, s StepSize) (int, float64) {
			terms, rounding := rowTerms(op, s)
			return min(terms, op.Attrs.Int("each")), rounding
		},
		Infer: func(op *Op) (Type, error) {
			x, w, each := op.Args[0].Type, op.Args[1].Type, op.Attrs.Int("each")
			if err := areProjected(x); err != nil {
				return Type{}, err
			}
			if len(w.Shape) != 2 || w.Shape[0] <= 0 || w.Shape[1] != x.Last() || x.Last() > mostPackedWidth {
				return Type{}, fmt.Errorf("weight %s does not fit x %s", w, x)
			}
			if each <= 0 || each%PartStep != 0 || each > mostPackedWidth {
				return Type{}, fmt.Errorf("parts of %d: want a multiple of %d", each, PartStep)
			}
			parts := Dim(PartsOf(int(x.Last()), each))
			if w.Shape[0] > mostPartsWidth/parts {
				return Type{}, fmt.Errorf("%d parts of %d: want %d at most", parts, w.Shape[0], mostPartsWidth)
			}
			return MakeType(F32, x.Shape[0], parts*w.Shape[0]), nil
		},
	},
	{
		Name: "add_parts",
		Doc: "from the result of linear_parts, of `count` parts of N: y[r][n] = parts[r][n] + parts[r][N + n] + ..., from the first part on; with squares, op squares of what x was before its gain, times 1 / sqrt(mean + eps), the mean being the sum of squares[r] / k; plus bias[n]. " +
			"There is eps if there are squares, and without them bias takes their place",
		Params:   []string{"parts", "squares", "bias"},
		Optional: 2,
		Attrs:    []AttrSpec{intAttr("count"), {"eps", FloatAttr, true}},
		RowWise:  true,
		Flops:    noFlops,
		Error: func(op *Op, _ StepSize) (int, float64) {
			terms := op.Attrs.Int("count")
			if squares, _ := AddedTo(op); squares != nil {
				terms += int(squares.Type.Last())
			}
			return terms, 0
		},
		Infer: func(op *Op) (Type, error) {
			x, count := op.Args[0].Type, Dim(op.Attrs.Int("count"))
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if count <= 0 || x.Last()%count != 0 || x.Last() > mostPartsWidth {
				return Type{}, fmt.Errorf("%s is not of %d parts", x, count)
			}
			y := MakeType(F32, x.Shape[0], x.Last()/count)
			squares, bias := AddedTo(op)
			switch {
			case len(op.Args) == 3 && squares == nil, len(op.Args) == 1 && op.Attrs.get("eps") != nil:
				return Type{}, fmt.Errorf("squares and eps come together")
			case bias != nil && !isVector(bias.Type, y.Last()):
				return Type{}, fmt.Errorf("bias %s does not fit %s", bias.Type, y)
			case squares != nil:
				if s := squares.Type; isRows(s) != nil || s.Shape[0] != x.Shape[0] || s.Last() > mostPackedWidth/SquaresEach {
					return Type{}, fmt.Errorf("squares are %s, want f32[%s, k/%d]", s, x.Shape[0], SquaresEach)
				}
			}
			return y, nil
		},
	},
}

// AddedTo returns the squares and the bias of an op add_parts, nil where it has none.
func AddedTo(op *Op) (squares, bias *Value) {
	rest := op.Args[1:]
	if op.Attrs.get("eps") != nil && len(rest) > 0 {
		squares, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		bias = rest[0]
	}
	return squares, bias
}
