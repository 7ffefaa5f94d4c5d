package sample

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestLikeliest holds that Likeliest chooses as the whole chain does with any parameters that are Greedy: of equal
// logits, of few and of many, some of which are not allowed or forbidden, and with the same error where nothing is left
// to choose from.
func TestLikeliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Neutral()
		p.TopK = rapid.SampledFrom([]int{0, 1, 2, 40, 5000}).Draw(t, "top_k")
		if p.Temp = rapid.SampledFrom([]float64{0, 0.3, 1, 5}).Draw(t, "temp"); p.TopK != 1 {
			p.Temp = 0
		}
		p.TopP = rapid.SampledFrom([]float64{1, 0.9, 0.01, 0}).Draw(t, "top_p")
		p.MinP = rapid.SampledFrom([]float64{0, 0.05, 1}).Draw(t, "min_p")
		p.TopNSigma = rapid.SampledFrom([]float64{0, 0.1, 2}).Draw(t, "top_n_sigma")
		if p.TopK == 1 {
			p.Typical = rapid.SampledFrom([]float64{1, 0, 0.5}).Draw(t, "typ_p")
			p.XTCProbability = rapid.SampledFrom([]float64{0, 1}).Draw(t, "xtc")
		}
		p.LastN = rapid.SampledFrom([]int{0, 8, -1}).Draw(t, "last_n") // of penalties that change nothing
		p.Seed = rapid.Uint64().Draw(t, "seed")
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		if !p.Greedy() {
			t.Fatalf("%+v is not greedy", p)
		}
		n := rapid.SampledFrom([]int{1, 2, 63, 300, 5000}).Draw(t, "size")
		values := rapid.SliceOfN(rapid.Float32Range(-30, 30), 1, 40).Draw(t, "values") // fewer than tokens: many are equal
		few := rapid.SampledFrom([]float32{0, 1e30, float32(math.Inf(-1)), float32(math.NaN()), float32(math.Inf(1))}).Draw(t, "one")
		seed := rapid.Uint64().Draw(t, "logits")
		random := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed >> 33 % uint64(n))
		}
		logits := make([]float32, n)
		for i := range logits {
			if logits[i] = values[random(len(values))]; random(40) == 0 {
				logits[i] = few
			}
		}
		var forbidden []int32
		for range rapid.IntRange(0, 3).Draw(t, "forbidden") {
			forbidden = append(forbidden, int32(random(n)))
		}
		var gate Allowed
		if share := rapid.SampledFrom([]int{0, 1, 50, 1000}).Draw(t, "allowed"); share > 0 {
			a := &some{words: make([]uint64, (n+63)/64)}
			for id := range n {
				if random(1000) < share {
					a.words[id>>6] |= 1 << (id & 63)
				}
			}
			gate = a
		}
		whole, fast := New(p, nil), New(Likeliest(), nil)
		whole.Allowed, fast.Allowed = gate, gate
		for range 3 {
			want, werr := whole.Choose(logits, forbidden)
			have, err := fast.Choose(logits, forbidden)
			if have != want || err != werr {
				t.Fatalf("%+v, %d logits, forbidden %d: %d and %v, the whole chain %d and %v", p, n, forbidden, have, err, want, werr)
			}
			if err == nil {
				if best, ok := likeliest(logits, forbidden, gate); !ok || best != have {
					t.Fatalf("%d, by definition %d", have, best)
				}
			}
			whole.Accept(want)
			fast.Accept(have)
		}
	})
}

// likeliest is the definition: the largest logit of those that may be chosen, -0 below 0, the first of equal ones.
func likeliest(logits []float32, forbidden []int32, gate Allowed) (best int32, ok bool) {
	banned := map[int32]bool{}
	for _, id := range forbidden {
		banned[id] = true
	}
	for i, l := range logits {
		id := int32(i)
		if banned[id] || gate != nil && !gate.Allows(id) || math.IsInf(float64(l), -1) {
			continue
		}
		if !ok || l > logits[best] || l == logits[best] && math.Signbit(float64(logits[best])) && !math.Signbit(float64(l)) {
			best, ok = id, true
		}
	}
	return best, ok
}
