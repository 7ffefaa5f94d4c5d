package ir

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Op candidates leaves of a row of logits what a host needs to choose by: the likeliest tokens, and the sum of the
// weights of all. Parts of the row are looked at apart: part p has the tokens of every CandidateParts-th run of
// CandidateRun tokens, from run p on. So tokens that are likely together, such as those of small ids, are in many
// parts.
const (
	CandidateParts = 32
	CandidateRun   = 128
	// CandidateKeep is how many tokens of a part are kept, the likeliest.
	CandidateKeep = 8
	// CandidateWords is what a part has: the bits of the logit and the id of each of these, in the order of
	// candidateKey; -Inf and 0 where there are fewer tokens above -Inf. Behind them the sums over all tokens of the
	// part of the upper and of the lower 16 bits of their CandidateWeight.
	CandidateWords = 2*CandidateKeep + 2
	// CandidateRow is what a row has.
	CandidateRow = CandidateParts * CandidateWords
	// mostCandidates bounds a row, so that no sum overflows.
	mostCandidates = 1 << 20
)

var candidateOps = []*OpKind{{
	Name: "candidates",
	Doc: fmt.Sprintf("for each of %d parts of a row, which have every %dth run of %d tokens: the %d largest logits as bits with their ids, NaN before all, "+
		"+0 before -0, equal ones by id; the sums of the upper and lower 16 bits of 2^31 exp(logit - the part's largest), as `ir.CandidateWeight` computes it",
		CandidateParts, CandidateParts, CandidateRun, CandidateKeep),
	Params: []string{"x"},
	Flops:  noFlops,
	Error:  exact,
	Infer: func(op *Op) (Type, error) {
		x := op.Args[0].Type
		if err := isRows(x); err != nil {
			return Type{}, err
		}
		if x.Last() > mostCandidates {
			return Type{}, fmt.Errorf("%s is wider than %d", x, mostCandidates)
		}
		return MakeType(I32, x.Shape[0], CandidateRow), nil
	},
}}

// candidateKey orders logits by their bits: NaN is 0, then they descend.
func candidateKey(bits uint32) uint32 {
	if x := math.Float32frombits(bits); x != x {
		return 0
	}
	return candidateBits(bits)
}

// candidateBits has the bits of a key, those of a NaN for 0. It is its own inverse.
func candidateBits(key uint32) uint32 {
	if key>>31 == 0 {
		return key ^ math.MaxInt32
	}
	return key
}

// CandidateExp2 has the coefficients of a polynomial that is 2^-x for x from 0 to 1, to 4 in 10^7.
var CandidateExp2 = [...]float32{1, -0.6931431889533997, 0.24017949402332306, -0.055299606174230576, 0.009210875257849693, -0.0009475536644458771}

// CandidateBits is the smallest power of 1/2 that CandidateWeight tells from 0.
const CandidateBits = 31

// CandidateWeight is 2^31 times the exponential of x, a logit less the largest of its part: to 1 in 10^5 and 1 more or
// less. It is 0 for NaN. All devices compute the same products and sums of f32, so that they have the same bits.
func CandidateWeight(x float32) uint32 {
	if x != x {
		return 0
	}
	y := min(float32(float32(-x)*float32(math.Log2E)), CandidateBits+2)
	n := uint32(y)
	f := y - float32(n)
	p := CandidateExp2[len(CandidateExp2)-1]
	for i := len(CandidateExp2) - 2; i >= 0; i-- {
		p = float32(p*f) + CandidateExp2[i]
	}
	if n > CandidateBits {
		return 0
	}
	return uint32(p*(1<<24)) << 7 >> n
}

// Candidates sets the CandidateRow words of a row of logits, as op candidates defines them.
func Candidates(x []float32, to []int32) {
	for part := range CandidateParts {
		candidatesOf(x, part, to[part*CandidateWords:][:CandidateWords])
	}
}

// candidatesOf sets the words of a part.
func candidatesOf(x []float32, part int, to []int32) {
	type token struct{ key, id uint32 }
	var all []token
	for first := part * CandidateRun; first < len(x); first += CandidateParts * CandidateRun {
		for i := first; i < min(len(x), first+CandidateRun); i++ {
			all = append(all, token{candidateKey(math.Float32bits(x[i])), uint32(i)})
		}
	}
	slices.SortFunc(all, func(a, b token) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id)) })
	least := math.Float32bits(float32(math.Inf(-1))) // and its key
	top := float32(math.Inf(-1))
	for i := range CandidateKeep {
		bits, id := least, uint32(0)
		if i < len(all) && all[i].key < least {
			bits, id = candidateBits(all[i].key), all[i].id
		}
		if i == 0 {
			top = math.Float32frombits(bits)
		}
		to[2*i], to[2*i+1] = int32(bits), int32(id)
	}
	var upper, lower uint32
	for _, t := range all {
		w := CandidateWeight(x[t.id] - top)
		upper, lower = upper+w>>16, lower+w&(1<<16-1)
	}
	to[2*CandidateKeep], to[2*CandidateKeep+1] = int32(upper), int32(lower)
}
