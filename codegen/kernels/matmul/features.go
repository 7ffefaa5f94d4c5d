package matmul

import "slices"

// Features are what a linear group may have. A family's row of the kernel table says which its kernels can do; it is
// offered no other groups.
type Features uint32

const (
	Exact     Features = 1 << iota // each row has the bits that it has alone; else Prompt
	Prompt                         // of a step in which it need not
	LastRow                        // takes only row n-1 of x
	HalfX                          // x is f16; else f32
	Tiles                          // x lies in tiles of f16
	Packed                         // x in 12-bit fixed point lies as products of four subgroups read it
	OfParts                        // products are those of parts of x
	Parts                          // products of parts are added up
	Norm                           // x is normed, by whole rows
	NormRuns                       // x is normed, by runs of a row
	NormGated                      // heads of x are normed and gated, of one row
	Fixed12                        // x in 12-bit fixed point, for some projections
	Fixed8                         // x in 8-bit fixed point, for some projections
	Bfloat16                       // x in bf16, for some projections
	Workspace                      // has room for the sums of split-K products
	Several                        // more than one projection
	Bias
	GLU      // the activation of a product, times another
	GateRows // the activation of a product, times rows of another value
	Epilogue // an op of the table of epilogues
	Residual // rows are added to the result
	HalfY    // results are rounded to f16
	TileY    // and laid out in tiles
	Conv     // a gated convolution is behind the projection
	Experts  // matrices that each row chose
	Shared   // beside those, matrices for all rows
	TopK     // the group chooses them
	Sorted   // rows are sorted by expert
	Slotwise // x has a row for each choice
	HeadCut  // of which each has a part of a head
	OwnX     // the shared expert's projection reads another x
)

// Rows are steps of all classes. Brought is what families may want a group to get.
const (
	Rows    = Exact | Prompt
	Brought = HalfX | Tiles | Packed | OfParts | Fixed12 | Fixed8 | Bfloat16 | Workspace
)

// featuresOf finds each feature in a group.
var featuresOf = []struct {
	feature Features
	in      func(g *linearGroup) bool
}{
	{Exact, func(g *linearGroup) bool { return g.exact }},
	{Prompt, func(g *linearGroup) bool { return !g.exact }},
	{LastRow, func(g *linearGroup) bool { return g.last }},
	{HalfX, func(g *linearGroup) bool { return g.half }},
	{Tiles, func(g *linearGroup) bool { return g.tiled != nil }},
	{Packed, func(g *linearGroup) bool { return g.packed != nil }},
	{OfParts, func(g *linearGroup) bool { return g.each > 0 }},
	{Parts, func(g *linearGroup) bool { return g.parts > 0 }},
	{Norm, func(g *linearGroup) bool { return g.gain != nil && g.runs == 0 }},
	{NormRuns, func(g *linearGroup) bool { return g.runs > 0 }},
	{NormGated, func(g *linearGroup) bool { return g.gated != nil }},
	{Fixed12, func(g *linearGroup) bool { return g.bits == 12 }},
	{Fixed8, func(g *linearGroup) bool { return g.bits == 8 }},
	{Bfloat16, func(g *linearGroup) bool { return g.bits == bf16Bits }},
	{Workspace, func(g *linearGroup) bool { return g.workspace != nil }},
	{Several, func(g *linearGroup) bool { return len(g.projects) > 1 }},
	{Bias, some(func(p *projection) bool {
		return slices.ContainsFunc(p.matrices, func(w *weights) bool { return w.bias != nil })
	})},
	{GLU, some(func(p *projection) bool { return p.ring == nil && len(p.matrices) > 1 })},
	{GateRows, some(func(p *projection) bool { return p.strip != nil })},
	{Epilogue, some(func(p *projection) bool { return p.after != nil })},
	{Residual, some(func(p *projection) bool { return len(p.residuals) > 0 })},
	{HalfY, some(func(p *projection) bool { return p.half })},
	{TileY, some(func(p *projection) bool { return p.tile != nil })},
	{Conv, some(func(p *projection) bool { return p.ring != nil })},
	{Experts, some(func(p *projection) bool { return p.slots > 0 })},
	{Shared, func(g *linearGroup) bool {
		return g.routing != nil && some(func(p *projection) bool { return p.slots == 0 })(g)
	}},
	{TopK, func(g *linearGroup) bool { return g.routing != nil && g.routing.top != nil }},
	{Sorted, func(g *linearGroup) bool { return g.routing != nil && g.routing.order != nil }},
	{Slotwise, func(g *linearGroup) bool { return g.routing != nil && g.routing.perSlot }},
	{OwnX, some(func(p *projection) bool { return p.own != nil })},
	{HeadCut, func(g *linearGroup) bool { return g.routing != nil && g.routing.cut != nil }},
}

// some finds what one of the projections has.
func some(is func(p *projection) bool) func(g *linearGroup) bool {
	return func(g *linearGroup) bool { return slices.ContainsFunc(g.projects, is) }
}

// Features returns what the group has.
func (g *linearGroup) Features() (has Features) {
	for _, f := range featuresOf {
		if f.in(g) {
			has |= f.feature
		}
	}
	return has
}

// Has reports whether the group has all of needs, and nothing but takes.
func (g *linearGroup) Has(needs, takes Features) bool {
	has := g.Features()
	return needs&^has == 0 && has&^takes == 0
}
