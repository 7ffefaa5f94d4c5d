package oracle

import (
	"cmp"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

func candidates(c *call) error {
	x, y, k := c.arg(0), asInts(c.result()), width(c.op.Args[0])
	for r := range c.rows(0) {
		for part := range ir.CandidateParts {
			candidatesOf(x[r*k:][:k], part, y[(r*ir.CandidateParts+part)*ir.CandidateWords:][:ir.CandidateWords])
		}
	}
	return nil
}

// candidatesOf sets the words of a part of a row.
func candidatesOf(x []float32, part int, to []int32) {
	type token struct{ key, id uint32 }
	var all []token
	for first := part * ir.CandidateRun; first < len(x); first += ir.CandidateParts * ir.CandidateRun {
		for i := first; i < min(len(x), first+ir.CandidateRun); i++ {
			all = append(all, token{ir.CandidateKey(math.Float32bits(x[i])), uint32(i)})
		}
	}
	slices.SortFunc(all, func(a, b token) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id)) })
	least := math.Float32bits(float32(math.Inf(-1)))
	top := float32(math.Inf(-1))
	for i := range ir.CandidateKeep {
		bits, id := least, uint32(0)
		if i < len(all) && all[i].key < least {
			bits, id = ir.CandidateKey(all[i].key), all[i].id
			if all[i].key == 0 {
				bits = math.MaxInt32 // NaN
			}
		}
		if i == 0 {
			top = math.Float32frombits(bits)
		}
		to[2*i], to[2*i+1] = int32(bits), int32(id)
	}
	var upper, lower uint32
	for _, t := range all {
		w := ir.CandidateWeight(x[t.id] - top)
		upper, lower = upper+w>>16, lower+w&(1<<16-1)
	}
	to[2*ir.CandidateKeep], to[2*ir.CandidateKeep+1] = int32(upper), int32(lower)
}
