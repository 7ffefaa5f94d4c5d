package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Rows in fixed point, and their layout for matrix products of f16: see Packed.

const (
	// PackBlock is the elements of a row that share a scale in 12-bit fixed point, SquaresEach those of a sum of
	// squares.
	PackBlock, SquaresEach = 256, 128
	// PackRun is the elements of a run of a block.
	PackRun = 32
	// A block has PackCodes vectors of codes, of four words, vectors of totals up to PackScales, and one of scales.
	PackCodes, PackScales = 32, 36
	// PackWords is the words of a block.
	PackWords = 4 * (PackScales + 1)

	mostPackedWidth = 1 << 24
)

// PackLanes is a layout of blocks.
type PackLanes struct {
	Apart  bool // which elements lie together: see Elements
	Odd    bool // codes of runs of odd number are n/16
	Totals int  // of a block: 8 of runs, 16 of halves of runs, or none
}

// packTotals are the totals of a block by letter of attribute lanes.
var packTotals = map[byte]int{'-': 0, 'w': PackBlock / PackRun, 'h': 2 * PackBlock / PackRun}

// Pack12Lanes parses attribute lanes of op pack12: words such as "n-w ao-".
func Pack12Lanes(lanes string) (list []PackLanes, err error) {
	const most, letters = 4, 3
	if len(lanes) >= most*(letters+1) {
		return nil, fmt.Errorf("lanes of %d letters: want %d words at most", len(lanes), most)
	}
	for _, word := range strings.Split(lanes, " ") {
		if len(word) != letters || !strings.Contains("na", word[:1]) || !strings.Contains("o-", word[1:2]) {
			return nil, fmt.Errorf("lanes %q: want words such as n-w", lanes)
		}
		totals, ok := packTotals[word[2]]
		l := PackLanes{Apart: word[0] == 'a', Odd: word[1] == 'o', Totals: totals}
		if !ok || slices.Contains(list, l) {
			return nil, fmt.Errorf("lanes %q: want words such as n-w, each once", lanes)
		}
		list = append(list, l)
	}
	return list, nil
}

// Elements returns the elements of a block whose codes are in word q of vector v, the low one first.
func (l PackLanes) Elements(v, q int) [2]int {
	run, i, h := v/4, v/2%2, v%2
	first := 8*q + 4*i
	if l.Apart {
		first = 16*i + 4*((q&1)<<1|q>>1)
	}
	first += run*PackRun + h
	return [2]int{first, first + 2}
}

// Packed is the shape of a result of op pack12: by layout, tile of columns and block, for each vector the words of all
// columns. A column is a row of the step.
type Packed struct {
	Lanes                 []PackLanes
	Rows, Columns, Blocks int  // the most rows of a step, rows of a tile, blocks of a row
	Whole                 bool // there are as many rows in every step
}

// Height is the rows that are packed.
func (p Packed) Height() Dim {
	if p.Whole {
		return Dim(p.Rows)
	}
	return T
}

// PackedOf returns what op pack12 makes or op unpack12 takes, or an error if there is no such thing.
func PackedOf(op *Op) (p Packed, err error) {
	p.Rows, p.Columns = op.Attrs.Int("rows"), op.Attrs.Int("columns")
	if p.Lanes, err = Pack12Lanes(op.Attrs.Str("lanes")); err != nil {
		return Packed{}, err
	}
	if !slices.Contains([]int{16, 32, 64}, p.Columns) || p.Rows <= 0 || p.Rows > 1<<20 || p.Rows%p.Columns != 0 {
		return Packed{}, fmt.Errorf("%d rows are no tiles of %d columns: want 16, 32 or 64", p.Rows, p.Columns)
	}
	x := op.Args[0].Type
	if op.Kind.Name == "pack12" {
		p.Blocks, p.Whole = int(x.Last()/PackBlock), len(x.Shape) > 0 && x.Shape[0] == Dim(p.Rows)
		return p, areBlocks(x, Dim(p.Rows))
	}
	tiles := Dim(len(p.Lanes) * p.Rows / p.Columns)
	if x.DType != I32 || len(x.Shape) != 2 || x.Last() != Dim(PackWords*p.Columns) || x.Shape[0] <= 0 ||
		x.Shape[0]%tiles != 0 || x.Shape[0]/tiles > mostPackedWidth/PackBlock {
		return Packed{}, fmt.Errorf("%s has no %d tiles of %d columns", x, tiles, p.Columns)
	}
	p.Blocks, p.Whole = int(x.Shape[0]/tiles), op.Attrs.Int("whole") != 0
	return p, nil
}

// areBlocks checks rows of a step, or so many, of whole blocks.
func areBlocks(x Type, rows Dim) error {
	if isRows(x) != nil || x.Shape[0] != T && x.Shape[0] != rows || x.Last()%PackBlock != 0 || x.Last() > mostPackedWidth {
		return fmt.Errorf("x is %s, want f32[T or %d, k] of %d k at most, in blocks of %d", x, rows, mostPackedWidth, PackBlock)
	}
	return nil
}

// Type is that of the result of pack12.
func (p Packed) Type() Type {
	return MakeType(I32, Dim(len(p.Lanes)*p.Rows/p.Columns*p.Blocks), Dim(PackWords*p.Columns))
}

// Vector returns the index of the first of the four words of vector v of a block of a row, in layout l.
func (p Packed) Vector(l, row, block, v int) int {
	return p.first(l, row, block) + 4*(v*p.Columns+row%p.Columns)
}

// Scales has the indices of a block's scale, which each of four neighbours has.
func (p Packed) Scales(l, row, block int) (list [4]int) {
	for i := range list {
		list[i] = p.Vector(l, row&^3+i, block, PackScales) + row%4
	}
	return list
}

func (p Packed) first(l, row, block int) int {
	return ((l*p.Rows/p.Columns+row/p.Columns)*p.Blocks + block) * PackWords * p.Columns
}

// Row returns the row of the step that word i is of.
func (p Packed) Row(i int) int {
	tile, word := i/(PackWords*p.Columns)/p.Blocks%(p.Rows/p.Columns), i%(PackWords*p.Columns)
	column := word / 4 % p.Columns
	if word/4/p.Columns == PackScales {
		column = column&^3 + word%4
	}
	return tile*p.Columns + column
}

var packAttrs = []AttrSpec{intAttr("rows"), intAttr("columns"), stringAttr("lanes")}

var fixedOps = []*OpKind{
	fixedPoint("fixed12", 12, "y = x in 12-bit fixed point: each element becomes the nearest multiple of s = (largest magnitude of its run) / 2047, or 0 if that magnitude is below 1e-30; a run has 256 elements, or 32 if the row length is no multiple of 256; attribute row gives the row length where a row of x holds several rows in sequence"),
	fixedPoint("fixed8", 8, "y = x in 8-bit fixed point: each element becomes the nearest multiple of s = (largest magnitude of its run of 32 elements) / 127, or 0 if that magnitude is below 1e-30"),
	{
		Name:    "squares",
		Doc:     "y[r][i] = sum of x[r][j]^2 over the 128 j from 128*i on",
		Params:  []string{"x"},
		RowWise: true,
		Flops:   noFlops,
		Error:   func(*Op, StepSize) (int, float64) { return SquaresEach, 0 },
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			if err := areBlocks(x, max(1, x.Shape[0])); err != nil {
				return Type{}, err
			}
			return MakeType(F32, x.Shape[0], x.Last()/SquaresEach), nil
		},
	},
	{
		Name: "pack12",
		Doc: "x, times gain if there is one, in 12-bit fixed point and in one or more layouts. In float32, for each block of 256 elements of a row: m = largest magnitude of x*gain; i = 2047/m, or 0 if m is 1e-30 or less; " +
			"n = x*gain*i, this product exact, rounded to nearest, ties to even; the scale is m times the float32 nearest to 1/2047. y has, for each word of `lanes`, each tile of `columns` of `rows` rows and each block, one row: 37 vectors v, of each of columns c of the tile, of 4 words q, " +
			"word (v*columns + c)*4 + q. Of the last vector that is the bits of the scale of column q of the four that c is of. Otherwise a word is two f16, the low one first. Vector 4*run + 2*i + h has n of elements h and h+2 of those from run*32 + 8*q + 4*i on, if the first letter of the word of lanes is n (near); from run*32 + 16*i + 4*p on, p = q with its two bits exchanged, if it is a (apart). " +
			"With the second letter o, and not -, codes of odd runs are n/16. Vector 32 + 2*i + h has totals, sums of n, as digits: upper = total/64 to nearest, ties to even, if i is 0, and lower = total - 64*upper if i is 1. With the third letter w, word q for h = 0 has those of runs 2q and 2q+1; " +
			"with h, it has those of halves of runs 8h + 2q and 8h + 2q + 1; all else, with - all, is 0. Columns behind the step's last row have zeros everywhere",
		Params:   []string{"x", "gain"},
		Optional: 1,
		Attrs:    packAttrs,
		Flops:    noFlops,
		Error:    exact,
		Infer: func(op *Op) (Type, error) {
			p, err := PackedOf(op)
			if err != nil {
				return Type{}, err
			}
			if x := op.Args[0].Type; len(op.Args) == 2 && !isVector(op.Args[1].Type, x.Last()) {
				return Type{}, fmt.Errorf("gain %s does not fit x %s", op.Args[1].Type, x)
			}
			return p.Type(), nil
		},
	},
	{
		Name:   "unpack12",
		Doc:    "from the result of pack12, its first layout: y = n * scale. whole is 1 if x has as many rows as `rows` says, and not those of the step",
		Params: []string{"packed"},
		Attrs:  append(slices.Clip(packAttrs), AttrSpec{"whole", IntAttr, true}),
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			p, err := PackedOf(op)
			if err != nil {
				return Type{}, err
			}
			if whole := op.Attrs.get("whole"); whole != nil && whole != int64(1) {
				return Type{}, fmt.Errorf("whole is %v, want 1 or none", whole)
			}
			return MakeType(F32, p.Height(), Dim(p.Blocks*PackBlock)), nil
		},
	},
}

// fixedPoint returns an op that rounds x to multiples of a scale that all elements of a run share.
func fixedPoint(name string, bits int, doc string) *OpKind {
	return &OpKind{
		Name:    name,
		Doc:     doc,
		Params:  []string{"x"},
		Attrs:   []AttrSpec{{Name: "row", Kind: IntAttr, Optional: true}},
		Fusion:  Elementwise,
		RowWise: true,
		Flops:   noFlops,
		Error:   fixedRounding(bits),
		Infer: func(op *Op) (Type, error) {
			x := op.Args[0].Type
			if err := isRows(x); err != nil {
				return Type{}, err
			}
			if x.DType != F32 || x.Last()%32 != 0 {
				return Type{}, fmt.Errorf("x is %s, want rows of a multiple of 32 f32", x)
			}
			if row := Dim(op.Attrs.Int("row")); row != 0 && (row < 32 || row%32 != 0 || x.Last()%row != 0) {
				return Type{}, fmt.Errorf("x is %s, want rows of %d, a multiple of 32", x, row)
			}
			return x, nil
		},
	}
}
