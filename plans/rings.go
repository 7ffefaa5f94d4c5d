package plans

import "github.com/zincc-dev/zincc/ir"

// Rings says how far a sequence can go back if some of its caches are rings, as in layers with a window. Without rings,
// it can go back to any position.
type Rings struct {
	positions int // of the shortest ring; 0: none
	window    int // the longest one
}

// RingsOf returns the rings of a program.
func RingsOf(p *ir.Program) Rings {
	var r Rings
	for _, f := range p.Funcs {
		for _, op := range f.Ops() {
			if op.Kind.Name != "attention" && op.Kind.Name != "attention_split" || op.Args[1].Type.Shape[1] == ir.L {
				continue
			}
			if n := int(op.Args[1].Type.Shape[1]); r.positions == 0 || n < r.positions {
				r.positions = n
			}
			r.window = max(r.window, op.Attrs.Int("window"))
		}
	}
	return r
}

// Written returns the first position that the rings hold after all positions before end have been written; low is the
// first position that they held before.
func (r Rings) Written(low, end int) int {
	if r.positions == 0 {
		return 0
	}
	return max(low, end-r.positions)
}

// Hold reports whether the rings hold every position that a row at pos sees, if low is the first position that they
// hold.
func (r Rings) Hold(low, pos int) bool { return max(0, pos+1-r.window) >= low || pos == 0 }
