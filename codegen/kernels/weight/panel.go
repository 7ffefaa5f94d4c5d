package weight

import "github.com/zincc-dev/zincc/codegen/kernel"

// Panel says how to unpack an image of rows once for many columns of x, into lines with a word of each of 16 rows:
// codes, as bytes in the order of the elements, and the factors of runs of codes.
//
//	value = scale*(code - Bias) + least
type Panel struct {
	Run   int    // elements that share a scale: 32, or 16
	Bias  int    // of all codes
	Mask  uint32 // of the bits that words of codes may have
	Least bool   // runs, of 32 then, have a least value
	parts int    // of an image, of PanelPart elements each, which need not be neighbours
	take  func(b *kernel.Builder, m RowsImage, to PanelLines) (part func(at kernel.Value))
}

// PanelPart is the number of elements in a part of an image, which can be unpacked by itself.
const PanelPart = 64

// Unpack unpacks an image.
func (p *Panel) Unpack(b *kernel.Builder, m RowsImage, to PanelLines) {
	part := p.take(b, m, to)
	if p.parts == 1 {
		part(b.U32(0))
		return
	}
	b.For(0, p.parts, 1, part)
}

// PanelLines receives the lines of an image.
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
	return &Panel{Run: 32, Mask: mask, Least: true, parts: 4, take: func(b *kernel.Builder, m RowsImage, to PanelLines) func(pair kernel.Value) {
		header := b.UnpackHalf(m.Word(b.U32(0)))
		d, dmin := b.Elem(header, 0), b.Neg(b.Elem(header, 1))
		scales, mins := rowsScales(b, m)
		return func(pair kernel.Value) {
			for h, list := range codes(b, m, pair) {
				run := b.Add(b.Mul(pair, 2), h)
				to.Scale(run, b.Mul(d, number(b, ofRun(b, scales, pair, h))))
				to.Least(run, b.Mul(dmin, number(b, ofRun(b, mins, pair, h))))
				to.codes(b, b.Mul(run, 8), list)
			}
		}
	}}
}

var panelQ6K = &Panel{Run: 16, Bias: 32, Mask: 0x3f3f3f3f, parts: 4, take: func(b *kernel.Builder, m RowsImage, to PanelLines) func(part kernel.Value) {
	d := b.Bitcast(kernel.F32, m.Word(b.U32(0)))
	return func(part kernel.Value) {
		partQ6K(b, m, part, func(half, scale kernel.Value, codes []kernel.Value) {
			to.Scale(half, b.Mul(d, b.Convert(kernel.F32, scale)))
			to.codes(b, b.Mul(half, 4), codes)
		})
	}
}}

// panelPair is that of two blocks of 32 elements.
func panelPair(bias int, codes func(b *kernel.Builder, m RowsImage, run int) []kernel.Value, mask uint32) *Panel {
	return &Panel{Run: 32, Bias: bias, Mask: mask, parts: 1, take: func(b *kernel.Builder, m RowsImage, to PanelLines) func(kernel.Value) {
		scales := b.UnpackHalf(m.Word(b.U32(0)))
		return func(kernel.Value) {
			for run := range 2 {
				to.Scale(b.U32(uint32(run)), b.Elem(scales, run))
				to.codes(b, b.U32(uint32(8*run)), codes(b, m, run))
			}
		}
	}}
}

// UnpackPairs unpacks a part of an image into pairs of bf16; line receives a pair of each row. Pair n of an image has
// elements n%32 and n%32+32 of the 64 elements number n/32. Codes become the upper bits of the mantissa of a float
// between 1 and 2, which saves their conversion.
func (p *Panel) UnpackPairs(b *kernel.Builder, m RowsImage, part kernel.Value, line func(n, pair kernel.Value)) {
	at := 16 // where codes lie in the float
	if p.Mask>>24 > 127 {
		at = 15
	}
	one := float32(int(1) << (23 - at)) // of the codes is 1 of the float
	number := func(r *pairedRun, i int) kernel.Value {
		code, shift := r.codes[i/4], at-i%4*8
		switch {
		case shift > 0:
			code = b.Shl(code, shift)
		case shift < 0:
			code = b.Shr(code, -shift)
		}
		n := b.Bitcast(kernel.F32, b.Or(b.And(code, p.Mask>>24<<at), uint32(0x3f800000)))
		return b.FMA(n, b.Mul(r.scale, one), r.least)
	}
	var runs []*pairedRun // of which two in turn lie 32 elements apart
	last := func() *pairedRun { return runs[len(runs)-1] }
	p.take(b, m, PanelLines{
		Scale: func(at, scale kernel.Value) {
			runs = append(runs, &pairedRun{first: b.Mul(at, p.Run), scale: scale, least: b.Mul(scale, -one-float32(p.Bias))})
		},
		Least: func(_, least kernel.Value) { last().least = b.Add(last().least, least) },
		Code: func(_, codes kernel.Value) {
			if last().codes = append(last().codes, codes); len(last().codes) < p.Run/4 || len(runs) < 2 {
				return
			}
			first := b.Add(b.Mul(b.Shr(runs[0].first, 6), PanelPart/2), b.And(runs[0].first, PanelPart/2-1))
			for i := range p.Run {
				line(b.Add(first, i), PairBF16(b, number(runs[0], i), number(runs[1], i)))
			}
			runs = nil
		},
	})(part)
}

// pairedRun is a run of codes: value = scale*code + least, but for what floats have more than codes.
type pairedRun struct {
	first, scale, least kernel.Value
	codes               []kernel.Value
}

// PairBF16 rounds two numbers to bf16, as op bfloat16 does, and returns them in a word, the first in the lower half.
func PairBF16(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	half := func(v kernel.Value) kernel.Value { return b.Add(b.Bitcast(kernel.U32, v), 0x8000) }
	return b.Or(b.Shr(half(x), 16), b.And(half(y), uint32(0xffff0000)))
}
