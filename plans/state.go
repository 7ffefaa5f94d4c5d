package plans

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// Span is a part of a region.
type Span struct {
	Region string
	Offset int64
	Bytes  int64
}

// Recurrent reports whether sequences of a program have recurrent state.
func Recurrent(p *ir.Program) bool {
	return slices.ContainsFunc(p.Globals, func(g *ir.Value) bool { return g.Class == ir.State })
}

// StateSpans lists what a checkpoint of a sequence slot at a position must hold:
// all recurrent state of the slot, and of the rings of a convolution over K
// positions the last K-1 rows. The KV cache is not part of it: its rows stay
// until their places are overwritten, which in a ring later positions do (see Rings).
func StateSpans(p *ir.Program, slot, pos int) []Span {
	var spans []Span
	reach := ringReach(p)
	for _, g := range p.Globals {
		if g.Class != ir.State {
			continue
		}
		elements := int64(1)
		for _, d := range g.Type.Shape[1:] {
			elements *= int64(d)
		}
		bytes := g.Type.DType.Bytes(elements)
		base := int64(slot) * bytes
		back, ring := reach[g]
		if !ring {
			spans = append(spans, Span{g.Name, base, bytes})
			continue
		}
		rows := int64(g.Type.Shape[1])
		for q := max(0, pos-back); q < pos; q++ {
			spans = append(spans, Span{g.Name, base + int64(q)%rows*(bytes/rows), bytes / rows})
		}
	}
	return spans
}

// ringReach maps the ring of every convolution to how many rows back it reads.
func ringReach(p *ir.Program) map[*ir.Value]int {
	reach := map[*ir.Value]int{}
	for _, f := range p.Funcs {
		for _, op := range f.Ops() {
			if op.Kind.Name == "conv1d" {
				reach[op.Args[2]] = int(op.Args[1].Type.Shape[1]) - 1
			}
		}
	}
	return reach
}
