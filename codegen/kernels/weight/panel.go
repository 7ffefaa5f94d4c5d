package weight

import "github.com/zincc-dev/zincc/codegen/kernel"

// Panel is how an image of rows is taken apart once for many columns of x, into lines of a word of each of 16 rows:
// codes, which are bytes in the order of the elements, and what runs of them are multiplied with.
//
//	value = scale*(code - Bias) + least
type Panel struct {
	Run    int    // elements that share a scale: 32, or 16
	Bias   int    // of all codes
	Mask   uint32 // of the bits that words of codes may have
	Least  bool   // runs, of 32 then, have a least value
	Unpack func(b *kernel.Builder, m RowsImage, to PanelLines)
}

// PanelLines takes the lines of an image.
type PanelLines struct {
	Code  func(word, codes kernel.Value)
	Scale func(run, scale kernel.Value) // f32
	Least func(run, least kernel.Value) // f32
}

// codes takes those from a word on.
func (to PanelLines) codes(b *kernel.Builder, word kernel.Value, codes []kernel.Value) {
	for i, c := range codes {
		to.Code(b.Add(word, i), c)
	}
}

// panelMins is that of q4_k and q5_k.
func panelMins(codes func(b *kernel.Builder, m RowsImage, pair kernel.Value) [2][]kernel.Value, mask uint32) *Panel {
	return &Panel{Run: 32, Mask: mask, Least: true, Unpack: func(b *kernel.Builder, m RowsImage, to PanelLines) {
		header := b.UnpackHalf(m.Word(b.U32(0)))
		d, dmin := b.Elem(header, 0), b.Neg(b.Elem(header, 1))
		scales, mins := rowsScales(b, m)
		b.For(0, 4, 1, func(pair kernel.Value) {
			for h, list := range codes(b, m, pair) {
				run := b.Add(b.Mul(pair, 2), h)
				to.Scale(run, b.Mul(d, number(b, ofRun(b, scales, pair, h))))
				to.Least(run, b.Mul(dmin, number(b, ofRun(b, mins, pair, h))))
				to.codes(b, b.Mul(run, 8), list)
			}
		})
	}}
}

var panelQ6K = &Panel{Run: 16, Bias: 32, Mask: 0x3f3f3f3f, Unpack: func(b *kernel.Builder, m RowsImage, to PanelLines) {
	d := b.Bitcast(kernel.F32, m.Word(b.U32(0)))
	halvesQ6K(b, m, func(half, scale kernel.Value, codes []kernel.Value) {
		to.Scale(half, b.Mul(d, b.Convert(kernel.F32, scale)))
		to.codes(b, b.Mul(half, 4), codes)
	})
}}

// panelPair is that of two blocks of 32 elements.
func panelPair(bias int, codes func(b *kernel.Builder, m RowsImage, run int) []kernel.Value, mask uint32) *Panel {
	return &Panel{Run: 32, Bias: bias, Mask: mask, Unpack: func(b *kernel.Builder, m RowsImage, to PanelLines) {
		scales := b.UnpackHalf(m.Word(b.U32(0)))
		for run := range 2 {
			to.Scale(b.U32(uint32(run)), b.Elem(scales, run))
			to.codes(b, b.U32(uint32(8*run)), codes(b, m, run))
		}
	}}
}
