package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// Layout is one row of the table of layouts: the views that kernels have of weights of a type, as package
// layout lays it out. A nil view does not exist; Without says why.
type Layout struct {
	Name string // what layout.Format returns
	// Floats are the views as floats, which every layout has. FormatOf takes the first that fits the length of
	// rows.
	Floats   []*Format
	Bytes    *DotFormat      // codes as signed bytes, for an x in fixed point
	Copy     *CoopFormat     // f16 copied to shared memory, for cooperative matrices
	Fragment *FragmentFormat // f16 in the lanes that hold them of a matrix
	Fixed    *FixedFormat    // codes as f16 in these lanes, for an x in fixed point
	Table    int             // bytes of the table that codes point into, in shared memory
	Without  string
	// Permuting is the variant of the layout without a table, for targets that permute bytes; nil if there is none.
	Permuting *Layout
}

const (
	noCodes   = "bytes and fixed: its elements are no codes of bytes"
	unrounded = noCodes + "; copy and fragment: f32 weights, such as routers, are not rounded to f16"
)

// layouts is the table; init adds the rows of packed layouts.
var layouts = []*Layout{
	{
		Name: "f32",
		Floats: []*Format{
			{Name: "f32", cols: 4, Unit: 4, Run: 4, Fetch: fetchF32, Decode: decodeF32},
		},
		Without: unrounded,
	},
	{
		Name: "f16",
		Floats: []*Format{
			{Name: "f16", cols: 8, Unit: 8, Run: 8, Fetch: fetchWide16, Decode: decode16(halves)},
			{Name: "f16x4", cols: 4, Unit: 4, Run: 4, Fetch: fetchNarrow16, Decode: decode16(halves)},
		},
		Copy:     &CoopFormat{Items: 8, Run: 1, Span: 1, Open: coopF16},
		Fragment: &FragmentFormat{Sharing: "turn", Loads: 4, Open: fragmentWide(OctetOf)},
		Without:  noCodes,
	},
	{
		Name: "bf16",
		Floats: []*Format{
			{Name: "bf16", cols: 8, Unit: 8, Run: 8, Fetch: fetchWide16, Decode: decode16(brains)},
			{Name: "bf16x4", cols: 4, Unit: 4, Run: 4, Fetch: fetchNarrow16, Decode: decode16(brains)},
		},
		Copy:     &CoopFormat{Items: 8, Run: 1, Span: 1, Open: coopBF16},
		Fragment: &FragmentFormat{Sharing: "turn", Loads: 4, Open: fragmentWide(octetOfBrains)},
		Without:  noCodes,
	},
	{
		Name: "q4_k",
		Floats: []*Format{
			{Name: "q4_k", cols: 256, Unit: 32, Run: 8, Stride: 32, Scaled: true, offset: true, Fetch: fetchQ4K, Decode: decodeQ4K, DecodeOne: decodeOneQ4K},
		},
		Bytes:    &DotFormat{Super: true, Stride: 32, Offset: true, Words: []kernel.Type{lane.U32x4, lane.U32x4}, Fetch: fetchDotQ4K, Decode: decodeDotQ4K},
		Copy:     &CoopFormat{Items: 2, Run: 2, Stride: 4, Span: 4, Open: coopQ4K},
		Fragment: &FragmentFormat{Sharing: "pairs", Loads: 1, Ahead: [2]int{2, 0}, Open: fragmentQ4K},
		Fixed:    &FixedFormat{Super: true, Largest: 15, Offset: true, Exponents: [2]int{Subnormal, Subnormal + 4}, Spans: []int{9}, Open: fixedQ4K},
	},
	{
		Name: "q5_k",
		Floats: []*Format{
			{Name: "q5_k", cols: 256, Unit: 32, Run: 8, Stride: 32, Scaled: true, offset: true, Fetch: fetchQ5K, Decode: decodeQ5K, DecodeOne: decodeOneQ5K},
		},
		Bytes:    &DotFormat{Super: true, Stride: 32, Offset: true, Words: []kernel.Type{lane.U32x4, lane.U32x4, lane.U32x4}, Fetch: fetchDotQ5K, Decode: decodeDotQ5K},
		Copy:     &CoopFormat{Items: 2, Run: 2, Stride: 4, Span: 4, Open: coopQ5K},
		Fragment: &FragmentFormat{Sharing: "pairs", Loads: 1, Ahead: [2]int{3, 0}, Open: fragmentQ5K},
		Fixed:    &FixedFormat{Super: true, Largest: 31, Offset: true, Exponents: [2]int{Subnormal, Subnormal}, Spans: []int{11}, Open: fixedQ5K},
	},
	{
		Name: "q6_k",
		Floats: []*Format{
			{Name: "q6_k", cols: 256, Unit: 32, Run: 8, Stride: 32, Scaled: true, bias: 32 * fieldUnit, Fetch: fetchQ6K, Decode: decodeQ6K, DecodeOne: decodeOneQ6K},
		},
		Bytes:    &DotFormat{Super: true, Stride: 64, Offset: true, Bias: 32, Fine: true, Words: []kernel.Type{lane.U32x4, lane.U32x4, lane.U32x2, kernel.U32}, Fetch: fetchDotQ6K, Decode: decodeDotQ6K},
		Copy:     &CoopFormat{Items: 4, Run: 2, Span: 4, Open: coopQ6K},
		Fragment: &FragmentFormat{Sharing: "halves", Loads: 2, Ahead: [2]int{3, 1}, Open: fragmentQ6K},
		Fixed:    &FixedFormat{Super: true, Largest: 63, Apart: true, Fine: true, Offset: true, Bias: 32, Exponents: [2]int{Subnormal, Subnormal}, runs: []int{0, 2, 1, 3, 4, 6, 5, 7}, Spans: []int{8, 4, 1}, Rest: 1, Open: fixedQ6K},
	},
	{
		Name: "q4_0",
		Floats: []*Format{
			{Name: "q4_0", cols: 32, Unit: 8, Run: 4, Stride: 16, Scaled: true, Fetch: fetchQ4_0, Decode: decodeQ4_0},
		},
		Bytes:    &DotFormat{Stride: 16, Offset: true, Bias: 8, Halves: true, Words: []kernel.Type{lane.U32x4, kernel.U32}, Fetch: fetchDotQ4_0, Decode: decodeDotQ4_0},
		Copy:     &CoopFormat{Items: 2, Run: 4, Span: 1, Open: coopQ4_0},
		Fragment: &FragmentFormat{Sharing: "turn", Loads: 1, Open: fragmentQ4_0},
		Fixed:    &FixedFormat{Apart: true, Offset: true, Bias: 8, Exponents: [2]int{Subnormal, Subnormal}, Open: fixedQ4_0},
	},
	{
		Name: "q8_0",
		Floats: []*Format{
			{Name: "q8_0", cols: 32, Unit: 16, Run: 16, Scaled: true, Fetch: fetchQ8_0, Decode: decodeQ8_0},
		},
		Bytes:    &DotFormat{Stride: 32, bytes: true, Halves: true, Words: []kernel.Type{lane.U32x4, lane.U32x4, kernel.U32}, Fetch: fetchDotQ8_0, Decode: decodeDotQ8_0},
		Copy:     &CoopFormat{Items: 4, Run: 2, Span: 1, Open: coopQ8_0},
		Fragment: &FragmentFormat{Sharing: "turn", Loads: 2, Open: fragmentQ8_0},
		Fixed:    &FixedFormat{Open: fixedQ8_0},
	},
}

func init() {
	for _, p := range packedFormats {
		layouts = append(layouts, p.layouts())
	}
	for _, l := range layouts {
		for of := l; of != nil; of = of.Permuting {
			for _, f := range of.Floats {
				f.Layout = of
			}
		}
	}
}

// FormatOf returns how the target reads a weight of dtype d with rows of cols elements as floats, and
// with that its other views; nil if no kernel can.
func FormatOf(t *target.Target, d ir.DType, cols int) *Format {
	name := layout.Format(d)
	for _, l := range layouts {
		if l.Name != name {
			continue
		}
		if t.Permute && l.Permuting != nil {
			l = l.Permuting
		}
		for _, f := range l.Floats {
			if cols%f.cols == 0 {
				return f
			}
		}
	}
	return nil
}
