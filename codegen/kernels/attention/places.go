package attention

import "github.com/zincc-dev/zincc/codegen/kernel"

// places says where the positions of sequences lie in caches, which have the same places for keys and values. Who reads
// and who writes them asks nobody else. A row of a cache is what it holds of a position.
type places struct {
	ctx   kernel.Value // positions of a sequence
	ring  kernel.Value // how many of them have a row, if the caches are rings; else void
	slots kernel.Value // sequences in the caches, of those with scales
}

// rows is how many a sequence has.
func (c *places) rows() kernel.Value {
	if c.ring == (kernel.Value{}) {
		return c.ctx
	}
	return c.ring
}

// first returns the first row of a sequence.
func (c *places) first(b *kernel.Builder, sequence kernel.Value) kernel.Value {
	return b.Mul(sequence, c.rows())
}

// within returns which row of its sequence position p is in.
func (c *places) within(b *kernel.Builder, p kernel.Value) kernel.Value {
	if c.ring == (kernel.Value{}) {
		return p
	}
	return b.Mod(p, c.ring)
}

// place returns the row in which position p of a sequence is.
func (c *places) place(b *kernel.Builder, sequence, p kernel.Value) kernel.Value {
	return b.Add(c.first(b, sequence), c.within(b, p))
}

// scales returns the index of the first scale of a head of a sequence; that of a position is as far behind it as its
// row is behind the sequence's first.
func (c *places) scales(b *kernel.Builder, f *scaledFormat, heads, sequence, head, headDim kernel.Value) kernel.Value {
	codes := b.Mul(b.Mul(c.slots, c.rows()), b.Mul(heads, b.Div(headDim, 16/f.bits))) // in units of scales
	return b.Add(codes, b.Mul(b.Mul(b.Add(b.Mul(sequence, heads), head), b.Div(headDim, scaled)), c.rows()))
}
