package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// packed is how a layout of recipe packed is read: in runs of 32 elements, any octet (eight
// neighbours) of which can be read as signed bytes. All views are made of it: value = scale*byte + offset.
type packed struct {
	dtype  ir.DType
	fine   bool // halves of a run have scales of their own
	offset bool
	table  int       // bytes of shared memory
	values *[16]int8 // that codes of 4 bits choose from: see chosen
	codes  []source  // of what bytes are made
	scales []source  // of what terms are made
	// octet returns elements 8j to 8j+7 of a run as two words of bytes. j is a Go number or a Value.
	octet func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value
	// terms returns scale and offset of a run, or of its halves. sub is the run's number in 256 elements.
	terms func(b *kernel.Builder, w []kernel.Value, sub kernel.Value) []DotScale
}

// source is what a run reads of a plane.
type source struct {
	plane int
	bits  int // a power of two, of
	runs  int // so many runs, which share them
	// octets is how many octets a word has the codes of, where an octet needs no other; 0 where all
	// words of the run are needed.
	octets int
}

func (s source) typ() kernel.Type {
	if s.bits <= 32 {
		return kernel.U32
	}
	return kernel.U32.Vec(s.bits / 32)
}

// loader loads element i of a weight's buffer.
type loader func(t kernel.Type, i kernel.Value) kernel.Value

// packedRun is a run of a matrix in a kernel.
type packedRun struct {
	*packed
	b      *kernel.Builder
	m      Matrix
	number kernel.Value // in the matrix
	load   loader
}

// run returns run i of a row.
func (p *packed) run(b *kernel.Builder, m Matrix, row, i kernel.Value) packedRun {
	return packedRun{p, b, m, b.Add(b.Mul(row, b.Div(m.Cols, FixedRun)), i), func(t kernel.Type, i kernel.Value) kernel.Value { return m.Buf.Load(t, i) }}
}

// plane returns where a plane begins, in words.
func (r packedRun) plane(i int) kernel.Value {
	b := r.b
	recipe, _ := layout.For(r.dtype)
	blocks := b.Mul(r.m.Rows, b.Div(r.m.Cols, r.dtype.Block()))
	at := b.U32(0)
	for _, size := range recipe.PlaneBytes()[:i] {
		at = b.Add(at, b.Mul(b.Div(b.Add(b.Mul(blocks, size), 15), 16), 4))
	}
	return at
}

// read returns a load of what a run has of a source: of octet j alone, unless that is nil.
func (r packedRun) read(s source, j kernel.Operand) func() kernel.Value {
	b := r.b
	first := r.plane(s.plane)
	unit := b.Shr(r.number, site.Log2(s.runs))
	words := s.bits / 32
	switch {
	case words == 0:
		each := 32 / s.bits
		at, shift := b.Add(first, b.Shr(unit, site.Log2(each))), b.Mul(b.And(unit, each-1), s.bits)
		return func() kernel.Value { return b.Shr(r.load(kernel.U32, at), shift) }
	case j != nil && s.octets > 0 && words > 1:
		at := b.Add(first, b.Mul(unit, words), times(b, j, 1, s.octets))
		return func() kernel.Value { return r.load(kernel.U32, at) }
	}
	at := b.Add(b.Div(first, words), unit)
	return func() kernel.Value { return r.load(s.typ(), at) }
}

// reads returns loads of sources.
func (r packedRun) reads(list []source, j kernel.Operand) (loads []func() kernel.Value) {
	for _, s := range list {
		loads = append(loads, r.read(s, j))
	}
	return
}

func loaded(loads []func() kernel.Value) (words []kernel.Value) {
	for _, load := range loads {
		words = append(words, load())
	}
	return
}

// all loads what octets and terms of the run need.
func (r packedRun) all() []kernel.Value {
	return append(loaded(r.reads(r.codes, nil)), loaded(r.reads(r.scales, nil))...)
}

// octetOf returns octet j from what all has loaded.
func (p *packed) octetOf(b *kernel.Builder, words []kernel.Value, j kernel.Operand) [2]kernel.Value {
	own := make([]kernel.Value, len(p.codes))
	for i, s := range p.codes {
		own[i] = words[i]
		if s.octets > 0 && s.bits > 32 {
			own[i] = b.Elem(words[i], times(b, j, 1, s.octets))
		}
	}
	return p.octet(b, own, j)
}

// termsOf returns the terms from what all has loaded.
func (p *packed) termsOf(b *kernel.Builder, words []kernel.Value, sub kernel.Value) []DotScale {
	return p.terms(b, words[len(p.codes):], sub)
}

// times returns j*n/d, for powers of two, of a Go number or a Value.
func times(b *kernel.Builder, j kernel.Operand, n, d int) kernel.Operand {
	if j, ok := j.(int); ok {
		return j / d * n
	}
	v := j.(kernel.Value)
	if d > 1 {
		v = b.Shr(v, site.Log2(d))
	}
	if n > 1 {
		v = b.Mul(v, n)
	}
	return v
}

// rest returns j modulo d, times n.
func rest(b *kernel.Builder, j kernel.Operand, d, n int) kernel.Operand {
	if j, ok := j.(int); ok {
		return j % d * n
	}
	return b.Mul(b.And(j.(kernel.Value), d-1), n)
}

// layouts returns the row of the table of layouts.
func (p *packed) layouts() *Layout {
	if p.values == nil {
		return p.layout()
	}
	table, permuting := *p, *p
	table.octet, permuting.octet = ofTable(p.values), chosen(p.values)
	table.table = nibbleTable
	l := table.layout()
	l.Permuting = permuting.layout()
	l.Permuting.Floats[0].Name += ".permuted"
	return l
}

func (p *packed) layout() *Layout {
	name := layout.Format(p.dtype)
	run := FixedRun
	if p.fine {
		run = FixedHalf
	}
	var types []kernel.Type
	for _, s := range append(append([]source{}, p.codes...), p.scales...) {
		types = append(types, s.typ())
	}
	return &Layout{
		Name:     name,
		Table:    p.table,
		Floats:   []*Format{{Name: name, cols: p.dtype.Block(), Unit: FixedRun, Run: run, Stride: run, Scaled: true, offset: p.offset, Fetch: p.fetch, Decode: p.decode}},
		Bytes:    &DotFormat{Stride: FixedHalf, Offset: p.offset, Fine: p.fine, Words: types, Fetch: p.fetchDot, Decode: p.decodeDot},
		Copy:     &CoopFormat{Items: 4, Run: 2, Span: 1, Open: p.coop},
		Fragment: &FragmentFormat{Sharing: "turn", Loads: 1, Open: p.fragment},
		Fixed:    &FixedFormat{Apart: p.fine, Fine: p.fine, Whole: true, Offset: p.offset, Open: p.fixed},
	}
}

func (p *packed) fetch(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	return p.run(b, m, row, u).all()
}

func (p *packed) decode(b *kernel.Builder, words []kernel.Value, u kernel.Value) (runs []Run) {
	var codes []kernel.Value
	for j := range 4 {
		octet := p.octetOf(b, words, j)
		codes = append(codes, octet[:]...)
	}
	terms := p.termsOf(b, words, b.And(u, 7))
	for h, s := range terms {
		own := codes[h*len(codes)/len(terms):]
		runs = append(runs, Run{Codes: func(i int) kernel.Value { return int8sToF32(b, own[i]) }, Scale: s.Scale, offset: s.Offset})
	}
	return
}

func (p *packed) fetchDot(b *kernel.Builder, m Matrix, row kernel.Value, u DotPlace) []kernel.Value {
	return p.run(b, m, row, u.Run).all()
}

func (p *packed) decodeDot(b *kernel.Builder, words []kernel.Value, u kernel.Value) DotUnit {
	var unit DotUnit
	for j := range 4 {
		octet := p.octetOf(b, words, j)
		unit.Codes[j/2] = append(unit.Codes[j/2], octet[:]...)
	}
	unit.Scales = func() []DotScale { return p.termsOf(b, words, b.And(u, 7)) }
	return unit
}

// half returns the terms of the octet j.
func (p *packed) half(b *kernel.Builder, terms []DotScale, j kernel.Operand) (scale, offset kernel.Value) {
	s := terms[0]
	if p.fine {
		switch h := times(b, j, 1, 2).(type) {
		case int:
			s = terms[h]
		case kernel.Value:
			second := b.Ne(h, 0)
			s.Scale = b.Select(second, terms[1].Scale, s.Scale)
			if p.offset {
				s.Offset = b.Select(second, terms[1].Offset, s.Offset)
			}
		}
	}
	if !p.offset {
		s.Offset = b.F32(0)
	}
	return s.Scale, s.Offset
}

func (p *packed) coop(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem {
	b := d.Builder
	first := b.Shr(item, 1)
	return CoopItem{
		Load: func(iteration kernel.Value, _ int) []kernel.Value {
			i := b.Add(b.Mul(iteration, CoopDepth/FixedRun), first)
			return append(p.run(b, m, row, i).all(), b.And(i, 7))
		},
		Octets: func(_, words []kernel.Value, _ int) (list []kernel.Value) {
			terms := p.termsOf(b, words, words[len(words)-1])
			for o := range 2 {
				j := b.Add(b.Mul(b.And(item, 1), 2), o)
				octet := p.octetOf(b, words, j)
				scale, offset := p.half(b, terms, j)
				list = append(list, d.ints(octet[:], scale, offset)...)
			}
			return
		},
	}
}

func (p *packed) fragment(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem {
	b := d.Builder
	return FragmentItem{
		Load: func(block kernel.Value, iteration int) []kernel.Value {
			r := p.run(b, m, row, b.Add(b.Mul(block, FragmentBlock/FixedRun), laneID, 4*iteration))
			r.load = func(t kernel.Type, i kernel.Value) kernel.Value { return d.load(m.Buf, t, i) }
			return append(r.all(), b.Add(laneID, 4*iteration))
		},
		Octet: func(_, words []kernel.Value, o int) kernel.Value {
			octet := p.octetOf(b, words, o)
			scale, offset := p.half(b, p.termsOf(b, words, words[len(words)-1]), o)
			return d.ints(octet[:], scale, offset)[0]
		},
	}
}

func (p *packed) fixed(b *kernel.Builder, m Matrix, row, quad kernel.Value) FixedItem {
	return FixedItem{
		Load: func(block kernel.Value) (words []FixedWord) {
			first := b.Mul(block, FixedRuns)
			for slot := range FixedRuns {
				for _, load := range p.run(b, m, row, b.Add(first, slot)).reads(p.codes, quad) {
					words = append(words, FixedWord{Load: load, Last: slot})
				}
			}
			for i := range 2 {
				for _, load := range p.run(b, m, row, b.Add(first, b.Mul(quad, 2), i)).reads(p.scales, nil) {
					words = append(words, FixedWord{Load: load, Last: -1})
				}
			}
			return
		},
		Codes: func(words []kernel.Value, slot int) [4]kernel.Value {
			octet := p.octet(b, words[slot*len(p.codes):][:len(p.codes)], quad)
			if p.fine {
				return bytePairs(b, lane.Elements(b, exchange(b, b.Vec(octet[0], octet[1]), quad)))
			}
			return bytePairs(b, octet[:])
		},
		Terms: func(words []kernel.Value) (terms [2][]DotScale) {
			for i := range terms {
				own := words[FixedRuns*len(p.codes)+i*len(p.scales):]
				terms[i] = p.terms(b, own, b.Add(b.Mul(quad, 2), i))
			}
			return
		},
	}
}
