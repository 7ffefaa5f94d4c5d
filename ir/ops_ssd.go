package ir

import "fmt"

// ssdOps are the ops of Mamba2 layers (Dao, Gu 2024, arXiv 2405.21060) and of FFNs without a gate.
var ssdOps = []*OpKind{
	{
		Name: "ssd",
		Doc: "state space model with a scalar decay for each head, rows in order. A row of x has `heads` runs of head_dim, then `groups` runs B and `groups` runs C of state_dim; g = h / (heads/groups); " +
			"S = state[slot[r]][h] is state_dim x head_dim and counts as 0 if pos[r] = 0; t = softplus(dt[r][h] + bias[h]); S[n][p] = exp(t * rate[h]) * S[n][p] + t * x[r][h][p] * B[r][g][n]; " +
			"y[r][h][p] = sum over n of C[r][g][n] * S[n][p], plus skip[h] * x[r][h][p]; softplus as in decay",
		Params: []string{"x", "dt", "bias", "rate", "skip", "state", "pos", "slot"},
		Slots:  RowSlot,
		Attrs:  []AttrSpec{intAttr("heads"), intAttr("head_dim"), intAttr("groups"), intAttr("state_dim")},
		Writes: []int{5},
		Keeps:  recurrent(5),
		Flops: func(op *Op, s StepSize) (int64, int64) {
			a := op.Attrs
			return 5 * s.rows(op.Args[0].Type) * int64(a.Int("heads")) * int64(a.Int("head_dim")) * int64(a.Int("state_dim")), 0
		},
		Error: func(op *Op, s StepSize) (int, float64) { return op.Attrs.Int("state_dim") + exponentTerms*s.Rows, 0 },
		Infer: func(op *Op) (Type, error) {
			x, dt, s := op.Args[0].Type, op.Args[1].Type, op.Args[5].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			h, p, g, n := Dim(op.Attrs.Int("heads")), Dim(op.Attrs.Int("head_dim")), Dim(op.Attrs.Int("groups")), Dim(op.Attrs.Int("state_dim"))
			const most = 1 << 12
			if min(h, p, g, n) <= 0 || max(h, p, n) > most || h%g != 0 || x.Last() != h*p+2*g*n {
				return Type{}, fmt.Errorf("%d heads of %d with a state of %d in %d groups do not fit x %s", h, p, n, g, x)
			}
			if !dt.Equal(MakeType(F32, x.Shape[0], h)) {
				return Type{}, fmt.Errorf("dt %s does not fit %d heads of x %s", dt, h, x)
			}
			for _, v := range op.Args[2:5] {
				if !isVector(v.Type, h) {
					return Type{}, fmt.Errorf("%s does not have a number for each of %d heads", v.Type, h)
				}
			}
			if s.DType != F32 || len(s.Shape) != 4 || s.Shape[1] != h || s.Shape[2] != n || s.Shape[3] != p {
				return Type{}, fmt.Errorf("state %s does not hold %d heads of %d x %d", s, h, n, p)
			}
			return MakeType(F32, x.Shape[0], h*p), areRowIndices(x.Shape[0], op.Args[6], op.Args[7])
		},
	},
	{
		Name:    "relu2",
		Doc:     "y = max(x, 0)^2",
		Params:  []string{"x"},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer:   oneRows,
	},
}
