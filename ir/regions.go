package ir

// Keep says how a cache or state holds what a sequence leaves for later steps.
type Keep uint8

// The ways.
const (
	KeepPositions Keep = iota // a row for each position of the context
	KeepRing                  // rows for the newest positions: position p is in row p mod rows
	KeepState                 // one row: what all positions so far add up to
	KeepPages                 // a row for each position of the context, in pages that a block table names
	numKeeps
)

var keepNames = [numKeeps]string{"positions", "ring", "state", "pages"}

func (k Keep) String() string { return keepNames[k] }

// ParseKeep is the inverse of Keep.String.
func ParseKeep(text string) (Keep, bool) {
	for i, n := range keepNames {
		if n == text {
			return Keep(i), true
		}
	}
	return 0, false
}

// Region is what a cache or state holds of the sequences of a program.
type Region struct {
	Keep      Keep
	Sequences int
	Rows      int // of a sequence
	Window    int // newest positions that a row of a step sees there, its own among them; 0: all that are there
	Back      int // positions that a sequence can go back from any other and still find what it sees
	Page      int // positions of a page; 0: rows of a sequence lie side by side
	Pages     int // that there are, all sequences' and one that is nobody's
	Group     int // of pages: WholeGroup or WindowGroup
}

// Kept is an operand of an op that lasts from step to step, and what the op does there.
type Kept struct {
	Arg   int
	Class Class // KV or State
	Sum   bool  // it is one row of a sequence, whatever its shape: KeepState
	// Sees is Region.Window of the op's rows; nil if the op only writes.
	Sees func(op *Op) int
}

func seesWindow(op *Op) int { return op.Attrs.Int("window") }
func seesAll(*Op) int       { return 0 }

// attended are the caches of attention.
var attended = []Kept{{Arg: 1, Class: KV, Sees: seesWindow}, {Arg: 2, Class: KV, Sees: seesWindow}}

// recurrent is a state that an op reads and writes.
func recurrent(arg int) []Kept { return []Kept{{Arg: arg, Class: State, Sum: true, Sees: seesAll}} }

// Sees returns the window in which op reads the cache or state v; false if it does not read it.
func (op *Op) Sees(v *Value) (window int, reads bool) {
	for _, k := range op.Kind.Keeps {
		if op.Args[k.Arg] == v && k.Sees != nil {
			return k.Sees(op), true
		}
	}
	return 0, false
}

// Regions returns what the caches and states of p are, as the ops that use them have it. What no op uses is one row.
func (p *Program) Regions() map[*Value]Region {
	regions, read := map[*Value]Region{}, map[*Value]bool{}
	for _, g := range p.Globals {
		if g.Class == KV || g.Class == State {
			regions[g] = Region{Keep: KeepState, Sequences: int(g.Type.Shape[0]), Rows: 1}
		}
	}
	for _, f := range p.Funcs {
		for _, op := range f.Ops() {
			for _, k := range op.Kind.Keeps {
				v := op.Args[k.Arg]
				r, ok := regions[v]
				if !ok || k.Sum {
					continue
				}
				r.Keep, r.Rows = KeepRing, v.Type.Positions(p.Ctx)
				if v.Type.Shape[1] == L {
					r.Keep = KeepPositions
				}
				if v.Paged() {
					r.Page, r.Pages = int(v.Type.Shape[1]), int(v.Type.Shape[0])
					r.Keep, r.Sequences, r.Rows = KeepPages, p.Slots, PagesOf(p.Ctx, r.Page)*r.Page
					r.Group = max(0, GroupOf(op.Table()))
				}
				if k.Sees != nil {
					if w := k.Sees(op); w == 0 || read[v] && r.Window == 0 {
						r.Window = 0
					} else {
						r.Window = max(r.Window, w)
					}
					read[v] = true
				}
				regions[v] = r
			}
		}
	}
	for v, r := range regions {
		r.Back = r.back()
		regions[v] = r
	}
	return regions
}

// back is Back of the rest of r.
func (r Region) back() int {
	switch {
	case r.Keep == KeepPositions || r.Keep == KeepPages:
		return r.Rows
	case r.Keep == KeepState || r.Window == 0:
		return 0
	}
	return r.Rows - r.Window + 1
}

const (
	// ringUnit is what the positions of a ring are a multiple of.
	ringUnit = 256
	// ringBack is how far a sequence can go back at least, in shares of the context, and ringBackMost the most of that:
	// templates leave the reasoning of an answer out when the next turn comes.
	ringBack, ringBackMost = 8, 2048
)

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
