package ir

import "fmt"

// MaxHeadParts is the most parts of a head that op head_slice has.
const MaxHeadParts = 64

// hybridOps are the ops of gated attention and of gated DeltaNet layers (Yang,
// Kautz, Hatamizadeh 2024, arXiv 2412.06464). Ops with state take the rows of a
// slot in a step to follow each other, at positions that ascend by one.
var hybridOps = []*OpKind{
	{
		Name:    "slice",
		Doc:     "y[r] = x[r][first : first+width]",
		Params:  []string{"x"},
		Attrs:   []AttrSpec{intAttr("first"), intAttr("width")},
		Fusion:  PerHead,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			x, first, width := op.Args[0].Type, Dim(op.Attrs.Int("first")), Dim(op.Attrs.Int("width"))
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if first < 0 || width <= 0 || first > x.Last() || width > x.Last()-first {
				return Type{}, fmt.Errorf("%d elements from %d are not in %s", width, first, x)
			}
			return MakeType(F32, x.Shape[0], width), nil
		},
	},
	{
		Name:    "head_slice",
		Doc:     "one part of every head; x has `parts` runs of head_dim for each head: y[r][h*head_dim + i] = x[r][(h*parts + part)*head_dim + i]",
		Params:  []string{"x"},
		Attrs:   []AttrSpec{intAttr("head_dim"), intAttr("parts"), intAttr("part")},
		Fusion:  PerHead,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			hd, parts, part := Dim(op.Attrs.Int("head_dim")), Dim(op.Attrs.Int("parts")), Dim(op.Attrs.Int("part"))
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if hd <= 0 || hd > 1<<16 || parts <= 0 || parts > MaxHeadParts || part < 0 || part >= parts || x.Last()%(hd*parts) != 0 {
				return Type{}, fmt.Errorf("part %d of %d of heads of %d does not fit %s", part, parts, hd, x)
			}
			return MakeType(F32, x.Shape[0], x.Last()/parts), nil
		},
	},
	{
		Name:    "gate",
		Doc:     "y = sigmoid(g) * x",
		Params:  []string{"x", "g"},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer:   sameRows,
	},
	{
		Name:    "sigmoid",
		Doc:     "y = 1 / (1 + exp(-x))",
		Params:  []string{"x"},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer:   oneRows,
	},
	{
		Name:    "l2norm",
		Doc:     "each run of group elements x: y = x / sqrt(sum of x^2 + eps)",
		Params:  []string{"x"},
		Attrs:   []AttrSpec{floatAttr("eps"), intAttr("group")},
		Fusion:  PerHead,
		RowWise: true,
		Flops:   noFlops,
		Error:   attrTerms("group"),
		Infer: func(op *Op) (Type, error) {
			if g := Dim(op.Attrs.Int("group")); g <= 0 || op.Args[0].Type.Last()%g != 0 {
				return Type{}, fmt.Errorf("group %d does not fit %s", g, op.Args[0].Type)
			}
			return oneRows(op)
		},
	},
	{
		Name:    "gated_rmsnorm",
		Doc:     "each run of group elements x: y = x / sqrt(mean(x^2) + eps) * weight * silu(z)",
		Params:  []string{"x", "weight", "z"},
		Attrs:   []AttrSpec{floatAttr("eps"), intAttr("group")},
		Fusion:  PerHead,
		RowWise: true,
		Flops:   noFlops,
		Error:   attrTerms("group"),
		Infer: func(op *Op) (Type, error) {
			x, w, z, group := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type, Dim(op.Attrs.Int("group"))
			if group <= 0 || x.Last()%group != 0 || !w.Equal(MakeType(F32, group)) || !z.Equal(x) {
				return Type{}, fmt.Errorf("weight %s, z %s and group %d do not fit %s", w, z, group, x)
			}
			return oneRows(op)
		},
	},
	{
		Name:    "decay",
		Doc:     "log decay per head: y[r][h] = softplus(a[r][h] + dt[h]) * rate[h]; softplus(x) = x for x > 20, else ln(1 + exp(x))",
		Params:  []string{"a", "dt", "rate"},
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			heads := MakeType(F32, op.Args[0].Type.Last())
			if !op.Args[1].Type.Equal(heads) || !op.Args[2].Type.Equal(heads) {
				return Type{}, fmt.Errorf("dt %s and rate %s do not fit %s", op.Args[1].Type, op.Args[2].Type, op.Args[0].Type)
			}
			return oneRows(op)
		},
	},
	{
		Name: "conv1d",
		Doc: "causal depthwise convolution over positions, K = len(weight[c]): y[r][c] = silu(sum over j of weight[c][j] * m(K-1-j), plus bias[c]); act none leaves out silu. m(d) is x d positions " +
			"before row r in its slot: x[r-d][c] if that row belongs to this step (same slot, pos[r]-d), else ring[slot[r]][(pos[r]-d) mod H][c], 0 before position 0",
		Params:   []string{"x", "weight", "ring", "pos", "slot", "bias"},
		Optional: 1,
		Attrs:    []AttrSpec{{"act", StringAttr, true}},
		Slots:    RowSlot,
		Keeps:    []Kept{{Arg: 2, Class: State, Sees: func(op *Op) int { return int(op.Args[1].Type.Last()) }}},
		Flops:    productFlops,
		Error:    exact,
		Infer: func(op *Op) (Type, error) {
			x, w := op.Args[0].Type, op.Args[1].Type
			if act := op.Attrs.Str("act"); act != "" && act != "none" {
				return Type{}, fmt.Errorf("unknown activation %q", act)
			}
			if err := isRing(x, op.Args[2].Type, op.Args[3], op.Args[4]); err != nil {
				return Type{}, err
			}
			if w.DType != F32 || len(w.Shape) != 2 || w.Shape[0] != x.Last() || w.Shape[1] < 1 || w.Shape[1] > op.Args[2].Type.Shape[1] {
				return Type{}, fmt.Errorf("weight %s does not fit x %s and ring %s", w, x, op.Args[2].Type)
			}
			if len(op.Args) > 5 && !isVector(op.Args[5].Type, x.Last()) {
				return Type{}, fmt.Errorf("bias %s does not fit x %s", op.Args[5].Type, x)
			}
			return x, nil
		},
	},
	{
		Name:   "conv_write",
		Doc:    "ring[slot[r]][pos[r] mod H] = x[r], unless row r+H belongs to this step and slot, since it would overwrite row r",
		Params: []string{"x", "ring", "pos", "slot"},
		Slots:  RowSlot,
		Writes: []int{1},
		Keeps:  []Kept{{Arg: 1, Class: State}},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			return Type{}, isRing(op.Args[0].Type, op.Args[1].Type, op.Args[2], op.Args[3])
		},
	},
	{
		Name: "deltanet",
		Doc: "gated delta rule, rows in order; S = state[slot[r]][h] is d x d, S[j][i] with value dim j and key dim i, and counts as 0 if pos[r] = 0: " +
			"S *= exp(g[r][h]); u = S k; D = beta[r][h] * (v - u); S += D k^T; y[r][h] = scale * S q. " +
			"Value head h reads key head h mod k_heads (map mod) or h / (v_heads/k_heads) (map div) of q and k. " +
			"Behind the d rows of S a head of the state may have 2R more, a log of updates that S lacks, R of 2 to d: row d has in column j how many wait, up to R-1, or 0 if pos[r] = 0; " +
			"row d+1+i has D of update i, row d+R+i its k, and row d+2R-1 in column i its exp(g). The op first applies them, S *= exp(g) and S += D k^T, then none waits. " +
			"With attribute defer, which is R, a row does not change S and adds its own update to those that wait, if it is the only one of its slot in the step, neither pos[r] nor (pos[r]+1+slot[r]) mod R is 0, and fewer than R-1 wait",
		Params: []string{"q", "k", "v", "g", "beta", "state", "pos", "slot"},
		Slots:  RowSlot,
		Attrs:  []AttrSpec{intAttr("head_dim"), intAttr("k_heads"), intAttr("v_heads"), stringAttr("map"), floatAttr("scale"), {"defer", IntAttr, true}},
		Writes: []int{5},
		Keeps:  recurrent(5),
		Flops:  deltaFlops(7), // decay, its product with k, the update, its product with q
		Error:  deltaTerms,
		Infer: func(op *Op) (Type, error) {
			q, k, v, g, beta, s := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type, op.Args[3].Type, op.Args[4].Type, op.Args[5].Type
			if err := isRows(v); err != nil {
				return Type{}, err
			}
			rows := v.Shape[0]
			d, _, vh, err := areDeltaKeys(op, rows, q, k)
			if err != nil {
				return Type{}, err
			}
			heads := MakeType(F32, rows, vh)
			if v.Last() != vh*d || !g.Equal(heads) || !beta.Equal(heads) {
				return Type{}, fmt.Errorf("v %s, g %s and beta %s do not fit q %s", v, g, beta, q)
			}
			if err := isDeltaState(s, d, vh, rows, op.Args[6], op.Args[7]); err != nil {
				return Type{}, err
			}
			if r := op.Attrs.Int("defer"); r != 0 && r != DeltaLog(s) {
				return Type{}, fmt.Errorf("updates of %d rows are deferred, state %s has a log of %d", r, s, DeltaLog(s))
			}
			return v, nil
		},
	},
	{
		Name: "delta_chunk",
		Doc: "the part of the gated delta rule that needs neither v nor the state, chunk by chunk (Yang et al. 2024, arXiv 2406.06484). A chunk is 8 rows, the first at a multiple of 8; the last " +
			"chunk of a step, or where that has parts of a run, which pos tells, may have fewer. c[r] = sum of g[i][h] from the chunk's first row to r; n(x) = sqrt(sum of x^2 + eps); K = k/n(k), Q = q/n(q). With L[r][i] = beta[r][h] * " +
			"exp(c[r]-c[i]) * K[r].K[i] for i < r and B = inverse(1 + L) * diag(beta), y[r][h] is 20 numbers: for i < 8, E[r][i] = exp(c[last]-c[r]) / n(k[r]) * B[r][i]; for i < 8, " +
			"F[r][i] = scale * sum over j <= r of exp(c[r]-c[j]) * Q[r].K[j] * B[j][i], 0 for i > r; p[r] = exp(c[r]) / n(k[r]); w[r] = scale * exp(c[r]) / n(q[r]); f = exp(c[last]); 0",
		Params: []string{"q", "k", "g", "beta", "pos"}, Optional: 1,
		Slots: OneSlot,
		Attrs: []AttrSpec{intAttr("head_dim"), intAttr("k_heads"), intAttr("v_heads"), stringAttr("map"), floatAttr("scale"),
			floatAttr("eps")},
		Flops: chunkFlops,
		Error: chunkTerms,
		Infer: func(op *Op) (Type, error) {
			q, k, g, beta := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type, op.Args[3].Type
			if err := isRows(q); err != nil {
				return Type{}, err
			}
			rows := q.Shape[0]
			_, _, vh, err := areDeltaKeys(op, rows, q, k)
			if err != nil {
				return Type{}, err
			}
			if heads := MakeType(F32, rows, vh); !g.Equal(heads) || !beta.Equal(heads) {
				return Type{}, fmt.Errorf("g %s and beta %s do not fit %d heads", g, beta, vh)
			}
			if len(op.Args) > 4 && !op.Args[4].Type.Equal(MakeType(I32, rows)) {
				return Type{}, fmt.Errorf("pos %s does not fit q %s", op.Args[4].Type, q)
			}
			return MakeType(F32, rows, vh*DeltaChunkWidth), nil
		},
	},
	{
		Name: "deltanet_chunked",
		Doc: "deltanet for runs of one slot each, chunk by chunk; E, F, p, w and f are those of delta_chunk: D[i] = v[i][h] - p[i] * S k[i] " +
			"(S before the chunk); y[r][h] = w[r] * S q[r] + sum over i of F[r][i] * D[i]; then S = f * S + sum over r and i of E[r][i] * D[i] k[r]^T. Before the first chunk of a run it applies the updates that wait",
		Params: []string{"q", "k", "v", "chunk", "state", "pos", "slot"},
		Slots:  OneSlot,
		Attrs:  []AttrSpec{intAttr("head_dim"), intAttr("k_heads"), intAttr("v_heads"), stringAttr("map")},
		Writes: []int{4},
		Keeps:  recurrent(4),
		Flops:  deltaFlops(6), // products with k and with q, and the update; the matrices are small beside them
		Error:  chunkedTerms,
		Infer: func(op *Op) (Type, error) {
			q, k, v, c, s := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type, op.Args[3].Type, op.Args[4].Type
			if err := isRows(v); err != nil {
				return Type{}, err
			}
			rows := v.Shape[0]
			d, _, vh, err := areDeltaKeys(op, rows, q, k)
			if err != nil {
				return Type{}, err
			}
			if v.Last() != vh*d || !c.Equal(MakeType(F32, rows, vh*DeltaChunkWidth)) {
				return Type{}, fmt.Errorf("v %s and chunk %s do not fit q %s", v, c, q)
			}
			return v, isDeltaState(s, d, vh, rows, op.Args[5], op.Args[6])
		},
	},
}

// DeltaChunk is the rows of a chunk of the gated delta rule, DeltaChunkWidth the numbers per
// row in the result of delta_chunk.
const (
	DeltaChunk      = 8
	DeltaChunkWidth = 2*DeltaChunk + 4
)

// areDeltaKeys checks q and k of a delta rule, and its attributes.
func areDeltaKeys(op *Op, rows Dim, q, k Type) (d, kh, vh Dim, err error) {
	d, kh, vh = Dim(op.Attrs.Int("head_dim")), Dim(op.Attrs.Int("k_heads")), Dim(op.Attrs.Int("v_heads"))
	if d <= 0 || kh <= 0 || vh <= 0 || d > 1<<12 || vh > 1<<12 || vh%kh != 0 {
		return 0, 0, 0, fmt.Errorf("%d value heads over %d key heads of %d", vh, kh, d)
	}
	if m := op.Attrs.Str("map"); m != "mod" && m != "div" {
		return 0, 0, 0, fmt.Errorf("unknown map %q", m)
	}
	if keys := MakeType(F32, rows, kh*d); !q.Equal(keys) || !k.Equal(keys) {
		return 0, 0, 0, fmt.Errorf("q %s and k %s are not %s", q, k, keys)
	}
	return d, kh, vh, nil
}

// isDeltaState checks the state of a delta rule, and what rows it is of.
func isDeltaState(s Type, d, vh, rows Dim, pos, slot *Value) error {
	if s.DType != F32 || len(s.Shape) != 4 || s.Shape[1] != vh || s.Shape[3] != d {
		return fmt.Errorf("state %s does not hold %d heads of %d x %d", s, vh, d, d)
	}
	if log := s.Shape[2] - d; log != 0 && (log < 4 || log > 2*d || log%2 != 0) {
		return fmt.Errorf("state %s has a log of %d rows behind %d x %d", s, log, d, d)
	}
	return areRowIndices(rows, pos, slot)
}

// DeltaLog returns R of the log in the state of a delta rule, of which each head has 2R rows; 0 if it has none.
func DeltaLog(state Type) int { return int(state.Shape[2]-state.Shape[3]) / 2 }

func oneRows(op *Op) (Type, error) { return op.Args[0].Type, isRows(op.Args[0].Type) }

// isRing checks for a ring f32[slots, H, width] of past rows of x.
func isRing(x, ring Type, pos, slot *Value) error {
	if err := isRows(x); err != nil {
		return err
	}
	if ring.DType != F32 || len(ring.Shape) != 3 || ring.Shape[1] <= 0 || ring.Last() != x.Last() {
		return fmt.Errorf("ring %s does not fit x %s", ring, x)
	}
	return areRowIndices(x.Shape[0], pos, slot)
}
