package passes

import "github.com/zincc-dev/zincc/ir"

const (
	// ringUnit is what the positions of a ring are a multiple of.
	ringUnit = 256
	// ringBack is how far a sequence can go back at least, in shares of the context, and ringBackMost the most of that:
	// templates leave the reasoning of an answer out when the next turn comes.
	ringBack, ringBackMost = 8, 2048
)

// makeRings gives caches that only rows with a window read room for that and for the rows of a step or for going back, whichever is more,
// where the context is longer. While a step runs, each of its rows sees a window that ends at its own position, so that
// no row may overwrite what the first one sees.
func makeRings(p *ir.Program) error {
	windows := map[*ir.Value]int{} // of caches; 0 where a row sees all positions
	rows := 0
	for _, f := range p.Funcs {
		rows = max(rows, f.Rows)
		for _, op := range f.Ops() {
			if op.Kind.Name != "attention" {
				continue
			}
			w := op.Attrs.Int("window")
			for _, c := range op.Args[1:3] {
				if before, known := windows[c]; known && (before == 0 || w == 0) {
					w = 0
				} else {
					w = max(w, before)
				}
				windows[c] = w
			}
		}
	}
	for c, w := range windows {
		n := w + max(rows-1, min(p.Ctx/ringBack, ringBackMost))
		n = (n + ringUnit - 1) / ringUnit * ringUnit
		if w > 0 && n < p.Ctx && c.Class == ir.KV {
			c.Type.Shape = append([]ir.Dim(nil), c.Type.Shape...)
			c.Type.Shape[1] = ir.Dim(n)
		}
	}
	return nil
}
