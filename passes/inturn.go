package passes

import "github.com/zincc-dev/zincc/ir"

// turnWork is the least work of the larger one of two projections that take turns, in products of all rows: 4 rows of
// the 27B have 3.4e8 and gain 1.3 %, 8 of the 35B, which were not measured, 2.0e8.
const turnWork = 1 << 28

// inTurn gives two projections that share a stage of few rows a stage each, the one with float32 weights first, if the
// other one has weights of a few bits (see apartRows). Side by side they begin when all before has ended, and what
// follows begins when both have. In turn each begins while the one before it runs, and the smaller one has the units
// while weights come for the larger one (docs/lab/hybrids.md).
func inTurn(f *ir.Func) {
	added := 0
	for i := 0; i < len(f.Groups); {
		n := 1
		for i+n < len(f.Groups) && f.Groups[i+n].Stage == f.Groups[i].Stage {
			n++
		}
		step := f.Groups[i : i+n]
		for _, g := range step {
			g.Stage += added
		}
		if n == 2 {
			small, large := step[0], step[1]
			if _, precise := projected(f, large); precise {
				small, large = large, small
			}
			_, precise := projected(f, small)
			if work, other := projected(f, large); precise && !other && work >= turnWork {
				step[0], step[1] = small, large
				large.Stage++
				added++
			}
		}
		i += n
	}
}

// projected returns the products of a group's linear ops, and whether it has some, all with float32 weights.
func projected(f *ir.Func, g *ir.Group) (products int64, precise bool) {
	precise = true
	for _, op := range g.Ops {
		if op.Kind.Name == "linear" {
			w := op.Args[1].Type
			precise = precise && w.DType == ir.F32
			products += int64(rowsOf(f, op.Result)) * int64(w.Shape[0]) * int64(w.Last())
		}
	}
	return products, precise && products > 0
}
