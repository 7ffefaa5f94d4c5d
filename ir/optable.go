package ir

import (
	"fmt"
	"slices"
	"strings"
)

// OpKind is one row of the op table: everything that the compiler knows about an op.
type OpKind struct {
	Name   string
	Doc    string   // reference semantics, one row r of the step unless said otherwise
	Params []string // operand names
	// Optional is the number of trailing operands that may be missing.
	Optional int
	Attrs    []AttrSpec
	Writes   []int  // operands that the op writes in place
	Keeps    []Kept // operands that are caches or states
	Fusion   Fusion
	Slots    SlotUse
	// RowWise says that each row of the result depends only on the same row of the
	// operands.
	RowWise bool
	Flops   Flops
	Error   Error
	// Infer returns the result type that follows from operands and attributes, or an error that
	// says what does not fit. An op whose Infer returns a zero Type has no result.
	Infer func(op *Op) (Type, error)
}

// AttrSpec declares an attribute: its name and the kind of its value.
type AttrSpec struct {
	Name     string
	Kind     AttrKind
	Optional bool // may be missing: what the op does without it is in its Doc
}

func intAttr(name string) AttrSpec    { return AttrSpec{Name: name, Kind: IntAttr} }
func floatAttr(name string) AttrSpec  { return AttrSpec{Name: name, Kind: FloatAttr} }
func stringAttr(name string) AttrSpec { return AttrSpec{Name: name, Kind: StringAttr} }

// AttrKind is the kind of an attribute's value.
type AttrKind uint8

// The kinds of attribute values.
const (
	IntAttr AttrKind = iota
	FloatAttr
	StringAttr
)

func (k AttrKind) accepts(v any) bool {
	switch v.(type) {
	case int64:
		return k == IntAttr
	case float64:
		return k == FloatAttr
	case string:
		return k == StringAttr
	}
	return false
}

// Fusion says how an op can take part in a dispatch group.
type Fusion uint8

// The parts.
const (
	Alone       Fusion = iota // a dispatch of its own
	MatMul                    // the body: rows of weights times a row of activations
	RowNorm                   // scales a whole row; can move into its consumer
	Elementwise               // can move into the producer of its operands
	PerHead                   // reads one head and writes one head
)

// OpKinds returns the op table in declaration order.
func OpKinds() []*OpKind { return opTable }

// LookupOp returns the row of the op table, or nil.
func LookupOp(name string) *OpKind {
	for _, k := range opTable {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// The attributes of attention, shared by its whole and its split form.
var attentionAttrs = []AttrSpec{intAttr("head_dim"), intAttr("heads"), intAttr("kv_heads"), floatAttr("scale"), {"window", IntAttr, true}}

var opTable = slices.Concat(denseOps, fixedOps, partOps, candidateOps, tileOps, moeOps, hybridOps, headOps, ssdOps)

// denseOps are the ops of transformers with dense layers.
var denseOps = []*OpKind{
	{
		Name:   "embed",
		Doc:    "y[r] = scale * table[ids[r]]",
		Params: []string{"ids", "table"},
		Attrs:  []AttrSpec{floatAttr("scale")},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			ids, table := op.Args[0].Type, op.Args[1].Type
			if len(ids.Shape) != 1 || ids.DType != I32 || len(table.Shape) != 2 {
				return Type{}, fmt.Errorf("want ids i32[rows] and table [vocab, width], have %s and %s", ids, table)
			}
			return MakeType(F32, ids.Shape[0], table.Shape[1]), nil
		},
	},
	{
		Name:     "rmsnorm",
		Doc:      "each run of group elements x: y = x / sqrt(mean(x^2) + eps) * weight; a missing weight counts as 1; weight has group elements, or as many as a row",
		Params:   []string{"x", "weight"},
		Optional: 1,
		Attrs:    []AttrSpec{floatAttr("eps"), intAttr("group")},
		Fusion:   RowNorm,
		RowWise:  true,
		Flops:    noFlops,
		Error:    attrTerms("group"),
		Infer: func(op *Op) (Type, error) {
			x, group := op.Args[0].Type, Dim(op.Attrs.Int("group"))
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if group <= 0 || x.Last()%group != 0 {
				return Type{}, fmt.Errorf("group %d does not fit rows of %s", group, x)
			}
			if len(op.Args) == 2 && !isVector(op.Args[1].Type, group) && !isVector(op.Args[1].Type, x.Last()) {
				return Type{}, fmt.Errorf("weight %s does not fit groups of %d", op.Args[1].Type, group)
			}
			return x, nil
		},
	},
	{
		Name:   "workspace",
		Doc:    "memory in which workgroups of a dispatch leave sums for each other: `width` elements for every row of x, of undefined content",
		Params: []string{"x"},
		Attrs:  []AttrSpec{intAttr("width")},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			x, width := op.Args[0].Type, op.Attrs.Int("width")
			if err := areProjected(x); err != nil {
				return Type{}, err
			}
			if width <= 0 || width > 1<<24 {
				return Type{}, fmt.Errorf("width %d out of range", width)
			}
			return MakeType(F32, x.Shape[0], Dim(width)), nil
		},
	},
	{
		Name:     "linear",
		Doc:      "y[r][n] = sum over k of weight[n][k] * x[r][k], plus bias[n]; if x is f16 or the result of op bfloat16, a kernel may round weight the same way",
		Params:   []string{"x", "weight", "bias"},
		Optional: 1,
		Fusion:   MatMul,
		RowWise:  true,
		Flops:    productFlops,
		Error:    rowTerms,
		Infer: func(op *Op) (Type, error) {
			x, w := op.Args[0].Type, op.Args[1].Type
			if err := areProjected(x); err != nil {
				return Type{}, err
			}
			if len(w.Shape) != 2 || w.Shape[1] != x.Last() {
				return Type{}, fmt.Errorf("weight %s does not fit x %s", w, x)
			}
			if len(op.Args) == 3 {
				if b := op.Args[2].Type; b.DType != F32 || len(b.Shape) != 1 || b.Shape[0] != w.Shape[0] {
					return Type{}, fmt.Errorf("bias %s does not fit weight %s", b, w)
				}
			}
			return MakeType(F32, x.Shape[0], w.Shape[0]), nil
		},
	},
	{
		Name:    "half",
		Doc:     "y = x clamped to [-65504, 65504] and rounded to f16",
		Params:  []string{"x"},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			return MakeType(F16, x.Shape...), isRows(x)
		},
	},
	{
		Name:    "bfloat16",
		Doc:     "y = x rounded to bf16, ties away from 0",
		Params:  []string{"x"},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   bfloatRounding,
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if x.DType != F32 {
				return Type{}, fmt.Errorf("x is %s, want f32", x)
			}
			return x, nil
		},
	},
	{
		Name:    "add",
		Doc:     "y = a + b",
		Params:  []string{"a", "b"},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer:   sameRows,
	},
	{
		Name:    "mul",
		Doc:     "y = a * b",
		Params:  []string{"a", "b"},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer:   sameRows,
	},
	{
		Name:     "scale",
		Doc:      "y = factor * x, times by[0] if there is by",
		Params:   []string{"x", "by"},
		Optional: 1,
		Attrs:    []AttrSpec{floatAttr("factor")},
		Fusion:   Elementwise,
		RowWise:  true,
		Flops:    noFlops,
		Error:    exact,
		Infer: func(op *Op) (Type, error) {
			if len(op.Args) == 2 && !isVector(op.Args[1].Type, 1) {
				return Type{}, fmt.Errorf("by is %s, want f32[1]", op.Args[1].Type)
			}
			return op.Args[0].Type, isRows(op.Args[0].Type)
		},
	},
	{
		Name:    "softcap",
		Doc:     "y = cap * tanh(scale * x / cap)",
		Params:  []string{"x"},
		Attrs:   []AttrSpec{floatAttr("scale"), floatAttr("cap")},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			if !(op.Attrs.Float("cap") > 0) {
				return Type{}, fmt.Errorf("cap %g is not positive", op.Attrs.Float("cap"))
			}
			return op.Args[0].Type, isRows(op.Args[0].Type)
		},
	},
	{
		Name: "glu",
		Doc: "y = act(gate) * up; act is silu(x) = x / (1 + exp(-x)) or gelu, the tanh form; for act swiglu_oai, " +
			"y = g / (1 + exp(-1.702 g)) * (u + 1) with g = min(gate, 7) and u = up clamped to [-7, 7]",
		Params:  []string{"gate", "up"},
		Attrs:   []AttrSpec{stringAttr("act")},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   exact,
		Infer: func(op *Op) (Type, error) {
			if a := op.Attrs.Str("act"); !slices.Contains([]string{"silu", "gelu", "swiglu_oai"}, a) {
				return Type{}, fmt.Errorf("unknown activation %q", a)
			}
			return sameRows(op)
		},
	},
	{
		Name: "rope",
		Doc: "rotates pairs of each head: (a, b) -> (a cos - b sin, a sin + b cos), cos and sin from table[pos[r]]; " +
			"pair i is (2i, 2i+1) for kind norm, (i, i+n_rot/2) for kind neox; dims from n_rot on pass through",
		Params: []string{"x", "pos", "table"},
		Attrs:  []AttrSpec{stringAttr("kind"), intAttr("head_dim"), intAttr("n_rot")},
		Fusion: PerHead,
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			x, pos, table := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			hd, rot := Dim(op.Attrs.Int("head_dim")), Dim(op.Attrs.Int("n_rot"))
			if k := op.Attrs.Str("kind"); k != "norm" && k != "neox" {
				return Type{}, fmt.Errorf("unknown kind %q", k)
			}
			if hd <= 0 || x.Last()%hd != 0 || rot <= 0 || rot > hd || rot%2 != 0 {
				return Type{}, fmt.Errorf("head_dim %d and n_rot %d do not fit x %s", hd, rot, x)
			}
			if !pos.Equal(MakeType(I32, x.Shape[0])) || !table.Equal(MakeType(F32, L, rot)) {
				return Type{}, fmt.Errorf("pos %s or table %s does not fit x %s", pos, table, x)
			}
			return x, nil
		},
	},
	{
		Name: "hadamard",
		Doc: "Hadamard transform of each run of group elements, a power of two: y[i] = sum over j of (-1)^(number of bits set in both i and j) * x[j] / sqrt(group); " +
			"the inner product of two transformed rows is that of the rows, and an outlier spreads over its run",
		Params:  []string{"x"},
		Attrs:   []AttrSpec{intAttr("group")},
		Fusion:  PerHead,
		RowWise: true,
		Flops:   noFlops,
		Error:   attrTerms("group"),
		Infer: func(op *Op) (Type, error) {
			if g := Dim(op.Attrs.Int("group")); g <= 0 || g&(g-1) != 0 || op.Args[0].Type.Last()%g != 0 {
				return Type{}, fmt.Errorf("group %d does not fit %s", g, op.Args[0].Type)
			}
			return oneRows(op)
		},
	},
	{
		Name: "kvwrite",
		Doc: "cache[slot[r]][pos[r] mod P] = x[r], rounded to the cache's dtype; P is the positions of the cache; of a cache in pages of P positions, cache[pages[slot[r]][pos[r] / P]][pos[r] mod P]. f16: to nearest, ties to even. q8_0: each block of 32 elements, " +
			"in float32: d = max|x| * (1/127), and the block stores d rounded to the nearest f16; a code has the sign of x and the magnitude " +
			"floor(|x|*i + 1/2), where i = 0 if that f16 is 0; otherwise i starts as the float32 with the bits 0x7ef311c7 - bits(d), and i = i + i*(1 - d*i) runs four times. " +
			"q4_0: likewise with d = max|x| * (1/8), and s = -1 if some x equals max|x|, else 1; the stored f16 has the sign of s; a code is min(15, floor(x*s*i + 17/2)) - 8",
		Params:   []string{"x", "pos", "slot", "cache", "pages"},
		Optional: 1,
		Slots:    RowSlot,
		Writes:   []int{3},
		Keeps:    []Kept{{Arg: 3, Class: KV}},
		Fusion:   PerHead,
		Flops:    noFlops,
		Error:    exact,
		Infer: func(op *Op) (Type, error) {
			x, c := op.Args[0].Type, op.Args[3].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if len(c.Shape) != 3 || c.Shape[1] == T || c.Last() != x.Last() {
				return Type{}, fmt.Errorf("cache %s does not fit x %s", c, x)
			}
			if err := isCached(c); err != nil {
				return Type{}, err
			}
			if err := op.inPages(op.Args[3]); err != nil {
				return Type{}, err
			}
			return Type{}, areRowIndices(x.Shape[0], op.Args[1], op.Args[2])
		},
	},
	{
		Name: "attention",
		Doc: "head h of row r: softmax of scale * q . k[slot[r]][p] over p <= pos[r] (with a window also p > pos[r] - window), times v[slot[r]][p]; " +
			"sinks add exp(sinks[h]) to the sum that the softmax divides by; " +
			"head h reads KV head h / (heads / kv_heads); position p of a cache of P positions is at p mod P, of one in pages of P positions in page pages[slot[r]][p / P]; if q is f16, a kernel may round the weights of the softmax and the elements of q8_0 to f16",
		Params:   []string{"q", "k", "v", "pos", "slot", "sinks", "pages"}, // pages follow slot where there are no sinks
		Optional: 2,
		Slots:    RowSlot,
		Attrs:    attentionAttrs,
		Keeps:    attended,
		Flops:    attentionFlops,
		Error:    attentionTerms,
		Infer: func(op *Op) (Type, error) {
			if sinks := op.Sinks(); sinks != nil && !isVector(sinks.Type, Dim(op.Attrs.Int("heads"))) {
				return Type{}, fmt.Errorf("sinks %s are not one for each head", sinks.Type)
			}
			return MakeType(F32, op.Args[0].Type.Shape...), checkAttention(op)
		},
	},
	{
		Name: "attention_split",
		Doc: "attention over `splits` ranges of p. For each `rows` rows: n = their largest pos + 1, b = the first p that one of them sees, rounded down to a multiple of block, " +
			"and step = (n-b)/splits, rounded up to a multiple of block, or least if that is more. Split s covers the positions of [b+s*step, b+(s+1)*step) that row r sees. Result per head and split: head_dim sums of exp(score-m)*v, then m = max score (-1e30 if the range is empty), then sum of exp(score-m)",
		Params:   []string{"q", "k", "v", "pos", "slot", "pages"},
		Optional: 1,
		Slots:    RowSlot,
		Attrs:    append(slices.Clip(attentionAttrs), intAttr("splits"), intAttr("block"), intAttr("rows"), AttrSpec{Name: "least", Kind: IntAttr, Optional: true}),
		Keeps:    attended,
		Flops:    attentionFlops,
		Error:    attentionTerms,
		Infer: func(op *Op) (Type, error) {
			if err := checkAttention(op); err != nil {
				return Type{}, err
			}
			s := op.Attrs.Int("splits")
			if s <= 0 || s > 1024 || op.Attrs.Int("block") <= 0 || op.Attrs.Int("rows") <= 0 {
				return Type{}, fmt.Errorf("splits %d, block %d or rows %d out of range", s, op.Attrs.Int("block"), op.Attrs.Int("rows"))
			}
			if least := op.Attrs.Int("least"); least%op.Attrs.Int("block") != 0 || least < 0 {
				return Type{}, fmt.Errorf("least %d is no multiple of block %d", least, op.Attrs.Int("block"))
			}
			return MakeType(F32, op.Args[0].Type.Shape[0], Dim(op.Attrs.Int("heads")*s*(op.Attrs.Int("head_dim")+2))), nil
		},
	},
	{
		Name:     "attention_merge",
		Doc:      "combines the splits of each head: sum of exp(m_s-M)*o_s over sum of exp(m_s-M)*l_s, M = max m_s, s ascending; sinks add exp(sinks[h]-M) to the second sum",
		Params:   []string{"partial", "sinks"},
		Optional: 1,
		Attrs:    []AttrSpec{intAttr("head_dim"), intAttr("heads"), intAttr("splits")},
		Flops:    noFlops,
		Error:    attrTerms("splits"),
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			hd, h, s := op.Attrs.Int("head_dim"), op.Attrs.Int("heads"), op.Attrs.Int("splits")
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if hd <= 0 || h <= 0 || s <= 0 || hd > 1<<16 || h > 1<<16 || s > 1024 || x.Last() != Dim(h*s*(hd+2)) {
				return Type{}, fmt.Errorf("partial %s does not hold %d heads of %d in %d splits", x, h, hd, s)
			}
			if len(op.Args) == 2 && !isVector(op.Args[1].Type, Dim(h)) {
				return Type{}, fmt.Errorf("sinks %s are not one for each head", op.Args[1].Type)
			}
			return MakeType(F32, x.Shape[0], Dim(h*hd)), nil
		},
	},
	{
		Name:   "last_row",
		Doc:    "y[0] = x[n-1], n the rows of this step",
		Params: []string{"x", "n"},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			if len(x.Shape) == 0 || x.Shape[0] != T {
				return Type{}, fmt.Errorf("x %s has no rows", x)
			}
			return Type{x.DType, append([]Dim{1}, x.Shape[1:]...)}, nil
		},
	},
	{
		Name:   "take_rows",
		Doc:    "y[i] = x[rows[i]], for i < count",
		Params: []string{"x", "rows"},
		Attrs:  []AttrSpec{intAttr("count")},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			x, rows, n := op.Args[0].Type, op.Args[1].Type, op.Attrs.Int("count")
			if len(x.Shape) == 0 || x.Shape[0] != T {
				return Type{}, fmt.Errorf("x %s has no rows", x)
			}
			if rows.DType != I32 || len(rows.Shape) != 1 || n < 1 || rows.Shape[0] < Dim(n) {
				return Type{}, fmt.Errorf("%d rows of %s", n, rows)
			}
			return Type{x.DType, append([]Dim{Dim(n)}, x.Shape[1:]...)}, nil
		},
	},
	{
		Name:   "argmax",
		Doc:    "y[r] = the smallest index of the largest x[r], or 0 if none is above -Inf. " + choiceDoc,
		Params: []string{"x", "masked", "mask", "candidates"}, Optional: 3,
		Flops: noFlops,
		Error: exact,
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			if err := isChosen(op); err != nil {
				return Type{}, err
			}
			return MakeType(I32, x.Shape[0]), nil
		},
	},
	{
		Name: "argmax_split",
		Doc: "argmax over `splits` ranges of x: split s covers [s*step, min(width, (s+1)*step)), where step = width/splits, rounded up to a multiple of 4. " +
			"Result per split: the largest number and its smallest index, or -Inf and 0 if no number is above -Inf. " + choiceDoc,
		Params: []string{"x", "masked", "mask", "candidates"}, Optional: 3,
		Attrs: []AttrSpec{intAttr("splits")},
		Flops: noFlops,
		Error: exact,
		Infer: func(op *Op) (Type, error) {
			x, s := op.Args[0].Type, op.Attrs.Int("splits")
			if err := isChosen(op); err != nil {
				return Type{}, err
			}
			// An index is exact in f32.
			if s <= 0 || s > 1024 || x.Last() > 1<<24 {
				return Type{}, fmt.Errorf("splits %d or x %s out of range", s, x)
			}
			return MakeType(F32, x.Shape[0], Dim(2*s)), nil
		},
	},
	{
		Name:   "argmax_merge",
		Doc:    "combines the splits of each row: the smallest index of the largest number",
		Params: []string{"partial"},
		Attrs:  []AttrSpec{intAttr("splits")},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			x, s := op.Args[0].Type, op.Attrs.Int("splits")
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if s <= 0 || s > 1024 || x.Last() != Dim(2*s) {
				return Type{}, fmt.Errorf("partial %s does not hold %d splits", x, s)
			}
			return MakeType(I32, x.Shape[0]), nil
		},
	},
	{
		Name: "advance",
		Doc: "closes the token loop. If next has T rows, m = n and source = r; if it has one row, m = 1 and source = n-1: " +
			"token[r] = next[r], pos[r] = pos[source]+1, slot[r] = slot[source], out[(count+r) mod len(out)] = next[r], count += m, n = m",
		Params: []string{"next", "token", "pos", "slot", "n", "out", "count"},
		Writes: []int{1, 2, 3, 4, 5, 6},
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			next := op.Args[0].Type
			if next.DType != I32 || len(next.Shape) != 1 || (next.Shape[0] != T && next.Shape[0] != 1) {
				return Type{}, fmt.Errorf("next %s is not i32[T] or i32[1]", next)
			}
			return Type{}, nil
		},
	},
}

const choiceDoc = "Of a row with masked[r] > 0 the x[r][i] alone count whose bit is set: bit i mod 32 of mask[masked[r]-1][i/32]. " +
	"candidates are those of x, by which other rows can be decided, at once in the first split"

// isChosen checks logits, which may have a mask and, with that, candidates.
func isChosen(op *Op) error {
	x := op.Args[0].Type
	if err := isRows(x); err != nil || len(op.Args) == 1 {
		return err
	}
	if len(op.Args) == 2 {
		return fmt.Errorf("masked and mask come together")
	}
	masked, mask := op.Args[1].Type, op.Args[2].Type
	if want := MakeType(I32, x.Shape[0]); !masked.Equal(want) {
		return fmt.Errorf("masked %s is not %s", masked, want)
	}
	if mask.DType != I32 || len(mask.Shape) != 2 || mask.Shape[0] <= 0 || mask.Last() != Dim(MaskWords(int(x.Last()))) {
		return fmt.Errorf("mask %s is not i32[n, %d]", mask, MaskWords(int(x.Last())))
	}
	if len(op.Args) == 4 {
		if c, want := op.Args[3].Type, MakeType(I32, x.Shape[0], CandidateRow); !c.Equal(want) {
			return fmt.Errorf("candidates %s are not %s", c, want)
		}
	}
	return nil
}

func isRows(x Type) error {
	if x.DType != F32 || len(x.Shape) != 2 || x.Last() <= 0 {
		return fmt.Errorf("%s is not f32[rows, width]", x)
	}
	return nil
}

// isVector reports whether t is f32[n].
func isVector(t Type, n Dim) bool { return t.DType == F32 && len(t.Shape) == 1 && t.Shape[0] == n }

// areProjected checks x of a projection or q of attention: f32[rows, width], or f16.
func areProjected(x Type) error {
	if isRows(MakeType(F32, x.Shape...)) != nil || x.DType != F32 && x.DType != F16 {
		return fmt.Errorf("%s is neither f32[rows, width] nor f16[rows, width]", x)
	}
	return nil
}

func sameRows(op *Op) (Type, error) {
	a, b := op.Args[0].Type, op.Args[1].Type
	if err := isRows(a); err != nil {
		return Type{}, err
	}
	if !a.Equal(b) {
		return Type{}, fmt.Errorf("operands differ: %s and %s", a, b)
	}
	return a, nil
}

func areRowIndices(rows Dim, vs ...*Value) error {
	for _, v := range vs {
		if !v.Type.Equal(MakeType(I32, rows)) {
			return fmt.Errorf("%s is not i32[%s]", v.Type, rows)
		}
	}
	return nil
}

// CacheTypes are the dtypes that KV caches may have, the default first.
var CacheTypes = []DType{F16, F32, Q8_0, Q4_0}

// CacheTypeNames returns the names of CacheTypes as part of a sentence.
func CacheTypeNames() string {
	var names []string
	for _, t := range CacheTypes {
		names = append(names, t.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// isCached checks the dtype of a KV cache.
func isCached(c Type) error {
	if !slices.Contains(CacheTypes, c.DType) {
		return fmt.Errorf("cache %s is not of %s", c, CacheTypeNames())
	}
	return nil
}

func checkAttention(op *Op) error {
	q, k, v := op.Args[0].Type, op.Args[1].Type, op.Args[2].Type
	hd, h, kvh := op.Attrs.Int("head_dim"), op.Attrs.Int("heads"), op.Attrs.Int("kv_heads")
	if err := areProjected(q); err != nil {
		return err
	}
	if w := op.Attrs.Int("window"); w < 0 || w > MaxCtx {
		return fmt.Errorf("window %d out of range", w)
	}
	if hd <= 0 || h <= 0 || kvh <= 0 || hd > 1<<16 || h > 1<<16 || h%kvh != 0 || q.Last() != Dim(h*hd) {
		return fmt.Errorf("%d heads of %d over %d KV heads do not fit q %s", h, hd, kvh, q)
	}
	for _, c := range []Type{k, v} {
		if len(c.Shape) != 3 || c.Shape[1] != k.Shape[1] || c.Last() != Dim(kvh*hd) {
			return fmt.Errorf("cache %s does not hold %d heads of %d", c, kvh, hd)
		}
		if err := isCached(c); err != nil {
			return err
		}
		if hd%c.DType.Block() != 0 {
			return fmt.Errorf("cache %s: heads of %d are not whole blocks of %d", c, hd, c.DType.Block())
		}
	}
	if err := op.inPages(op.Args[1], op.Args[2]); err != nil {
		return err
	}
	if p := k.Shape[1]; op.Table() == nil && p != L && (p <= 0 || op.Attrs.Int("window") == 0) {
		return fmt.Errorf("cache %s is a ring, and rows see all positions", k)
	}
	return areRowIndices(q.Shape[0], op.Args[3], op.Args[4])
}

// checkRing checks that no row of a step overwrites what another one sees in a ring.
func checkRing(op *Op, rows int) error {
	for _, k := range op.Kind.Keeps {
		if k.Class != KV || k.Sees == nil || op.Args[k.Arg].Paged() {
			continue
		}
		p, window := op.Args[k.Arg].Type.Shape[1], k.Sees(op)
		if p != L && int(p) < window+rows-1 {
			return fmt.Errorf("%s: cache %s has no room for a window of %d positions and %d rows", op.Kind.Name, op.Args[k.Arg].Type, window, rows)
		}
	}
	return nil
}
