package ir

const (
	// ringUnit is what the positions of a ring are a multiple of.
	ringUnit = 256
	// ringBack is how far a sequence can go back at least, in shares of the context, and ringBackMost the most of that:
	// templates leave the reasoning of an answer out when the next turn comes.
	ringBack, ringBackMost = 8, 2048
)

// Windows returns for each KV cache the largest number of positions that a row sees in it, 0 where rows see all.
func (p *Program) Windows() map[*Value]int {
	windows := map[*Value]int{}
	for _, f := range p.Funcs {
		for _, op := range f.Ops() {
			if !readsCaches(op) {
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
	return windows
}

// readsCaches reports whether an op attends to the KV caches that its second and third operands are.
func readsCaches(op *Op) bool {
	return op.Kind.Name == "attention" || op.Kind.Name == "attention_split"
}

// MaxRows is the largest number of rows of a step, over all entries.
func (p *Program) MaxRows() int {
	rows := 0
	for _, f := range p.Funcs {
		rows = max(rows, f.Rows)
	}
	return rows
}

// RingPositions returns the positions of a cache in a context of ctx, if its readers see a window (0: all positions):
// the window plus the rows of a step, or plus some positions to go back, whichever is more. It never falls as ctx
// grows. With fewer than ctx positions, the cache is a ring.
//
// While a step runs, each of its rows sees a window that ends at its own position, so no row may overwrite what the
// first row sees.
func RingPositions(window, rows, ctx int) int {
	if window == 0 {
		return ctx
	}
	n := window + max(rows-1, min(ctx/ringBack, ringBackMost))
	return min(ctx, (n+ringUnit-1)/ringUnit*ringUnit)
}
