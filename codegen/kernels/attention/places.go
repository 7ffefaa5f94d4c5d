package attention

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// kept is how caches keep the positions of sequences, the same way for keys and values.
type kept struct {
	slots int       // sequences, of caches without pages
	ring  int       // positions of a sequence, if they are rings; else 0, for all of the context
	page  int       // positions of a page; 0: those of a sequence lie side by side
	table *ir.Value // which pages sequences have; nil without pages
}

// keptOf is how op keeps positions in a cache, one of its operands.
func keptOf(op *ir.Op, cache *ir.Value) kept {
	if table := op.Table(); table != nil {
		return kept{page: int(cache.Type.Shape[1]), table: table}
	}
	return kept{slots: int(cache.Type.Shape[0]), ring: max(0, int(cache.Type.Shape[1]))}
}

// unlike reports whether caches keep positions in other places than others do; the number of slots does not count.
func (k kept) unlike(other kept) bool {
	k.slots = other.slots
	return k != other
}

// key tells kernels of rings and of pages from others.
func (k kept) key() string {
	switch {
	case k.table != nil:
		return fmt.Sprint(" pages=", k.page)
	case k.ring > 0:
		return " ring"
	}
	return ""
}

// inPages reports whether tiles of so many positions have no positions of two pages.
func (k kept) inPages(positions int) bool { return k.page > 0 && k.page%positions == 0 }

// declareRows declares what places take besides the positions of a sequence.
func (k kept) declareRows(s *site.Signature, c *places) {
	switch {
	case k.table != nil:
		c.table = s.Read("pages", k.table)
		c.page = s.U32("page", k.page, 128, "positions of a page")
		c.each = s.U32("each", int(k.table.Type.Last()), 32, "pages of a sequence")
	case k.ring > 0:
		c.ring = s.U32("ring", k.ring, 1536, "positions of a sequence in the caches, which are rings")
	}
}

// declareScales declares what they take besides where caches have scales.
func (k kept) declareScales(s *site.Signature, c *places) {
	if k.table == nil {
		c.slots = s.U32("slots", k.slots, 1, "sequences in the caches")
	}
}

// places says where the positions of sequences lie in caches, which have the same places for keys and values. Who
// reads and who writes them asks nobody else. A row of a cache is what it holds of a position. A part of a cache has
// rows side by side: those of a sequence, or of a page.
type places struct {
	ctx   kernel.Value   // positions of a sequence
	ring  kernel.Value   // how many of them have a row, if the caches are rings; else void
	slots kernel.Value   // sequences in the caches, of those with scales
	table *kernel.Buffer // the pages of sequences; nil without pages
	page  kernel.Value   // rows of a page
	each  kernel.Value   // pages of a sequence
}

// rows is how many a part has.
func (c *places) rows() kernel.Value {
	switch {
	case c.table != nil:
		return c.page
	case c.ring != (kernel.Value{}):
		return c.ring
	}
	return c.ctx
}

// part returns which has position p of a sequence.
func (c *places) part(b *kernel.Builder, sequence, p kernel.Value) kernel.Value {
	if c.table == nil {
		return sequence
	}
	return c.table.Load(kernel.U32, b.Add(b.Mul(sequence, c.each), b.Div(p, c.page)))
}

// first returns the first row of a part.
func (c *places) first(b *kernel.Builder, part kernel.Value) kernel.Value {
	return b.Mul(part, c.rows())
}

// within returns which row of its part position p is in.
func (c *places) within(b *kernel.Builder, p kernel.Value) kernel.Value {
	switch {
	case c.table != nil:
		return b.Mod(p, c.page)
	case c.ring != (kernel.Value{}):
		return b.Mod(p, c.ring)
	}
	return p
}

// place returns the row in which position p is, of the part that has it.
func (c *places) place(b *kernel.Builder, part, p kernel.Value) kernel.Value {
	return b.Add(c.first(b, part), c.within(b, p))
}

// scaleBits is the size of a scale.
const scaleBits = 16

// behind returns where in a page code i, counted in units of so many bits from the first page's first row on, is: the
// scales of the pages before lie in between.
func (c *places) behind(b *kernel.Builder, part, heads, headDim, i kernel.Value, unit int) kernel.Value {
	if c.table == nil {
		return i
	}
	scales := b.Mul(c.page, b.Div(b.Mul(heads, headDim), scaled))
	return b.Add(i, b.Mul(part, b.Div(scales, unit/scaleBits)))
}

// scales returns the index of the first scale of a head of a part; that of a position is as far behind it as its
// row is behind the part's first. The scales lie behind all codes, or behind those of the page.
func (c *places) scales(b *kernel.Builder, f *scaledFormat, heads, part, head, headDim kernel.Value) kernel.Value {
	if c.table != nil {
		width := b.Mul(heads, headDim)
		codes := b.Mul(c.page, b.Div(width, scaleBits/f.bits)) // of a page, in units of scales
		whole := b.Add(codes, b.Mul(c.page, b.Div(width, scaled)))
		return b.Add(b.Mul(part, whole), codes, b.Mul(b.Mul(head, b.Div(headDim, scaled)), c.page))
	}
	codes := b.Mul(b.Mul(c.slots, c.rows()), b.Mul(heads, b.Div(headDim, scaleBits/f.bits))) // in units of scales
	return b.Add(codes, b.Mul(b.Mul(b.Add(b.Mul(part, heads), head), b.Div(headDim, scaled)), c.rows()))
}
