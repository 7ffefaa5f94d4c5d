package sample

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// weighted is a token of the definition: everything is sorted, nothing selected.
type weighted struct {
	id    int32
	logit float64
}

// define applies the stages as their definitions read and returns the probability of each token that is
// left. draws are the random numbers that stages use.
func define(logits []float32, p Params, history []int32, piece func(int32) string, draw func() float64) map[int32]float64 {
	var all []weighted
	for i, l := range logits {
		all = append(all, weighted{int32(i), float64(float32(float64(l) + p.Bias[int32(i)]))})
	}
	all = slices.DeleteFunc(all, func(w weighted) bool { return math.IsInf(w.logit, -1) })
	order := p.Samplers
	if order == nil {
		order = Order()
	}
	for _, name := range order {
		slices.SortStableFunc(all, func(a, b weighted) int {
			return cmp.Or(-cmp.Compare(a.logit, b.logit), cmp.Compare(a.id, b.id))
		})
		switch probs := softmax(all); name {
		case "penalties":
			window := history
			if p.LastN >= 0 {
				window = history[max(0, len(history)-p.LastN):]
			}
			counts := map[int32]int{}
			for _, id := range window {
				counts[id]++
			}
			for i := range all {
				w := &all[i]
				n := counts[w.id]
				if n == 0 {
					continue
				}
				if w.logit > 0 {
					w.logit /= p.Repeat
				} else {
					w.logit *= p.Repeat
				}
				w.logit = float64(float32(w.logit - p.Presence - p.Frequency*float64(n)))
			}
		case "dry":
			for i := range all {
				if n := repetition(history, all[i].id, p, piece); n >= max(1, p.AllowedLength) && p.Multiplier > 0 {
					all[i].logit = float64(float32(all[i].logit - p.Multiplier*math.Pow(p.Base, float64(n-p.AllowedLength))))
				}
			}
		case "top_n_sigma":
			if p.TopNSigma > 0 {
				mean, variance := 0.0, 0.0
				for _, w := range all {
					mean += w.logit / float64(len(all))
				}
				for _, w := range all {
					variance += (w.logit - mean) * (w.logit - mean) / float64(len(all))
				}
				least := all[0].logit - p.TopNSigma*math.Sqrt(variance)
				all = slices.DeleteFunc(all, func(w weighted) bool { return w.logit < least })
			}
		case "top_k":
			if p.TopK > 0 {
				all = all[:min(len(all), p.TopK)]
			}
		case "typ_p":
			if p.Typical < 1 {
				entropy := 0.0
				for _, q := range probs {
					entropy -= q * math.Log(q)
				}
				index := make([]int, len(all))
				for i := range index {
					index[i] = i
				}
				slices.SortStableFunc(index, func(a, b int) int {
					return cmp.Compare(math.Abs(-math.Log(probs[a])-entropy), math.Abs(-math.Log(probs[b])-entropy))
				})
				var kept []weighted
				sum := 0.0
				for _, i := range index {
					kept = append(kept, all[i])
					if sum += probs[i]; sum > p.Typical {
						break
					}
				}
				all = kept
			}
		case "top_p":
			sum := 0.0
			for i, q := range probs {
				if sum += q; sum >= p.TopP && p.TopP < 1 {
					all = all[:i+1]
					break
				}
			}
		case "min_p":
			all = all[:len(all)-countLast(probs, func(q float64) bool { return q < p.MinP*probs[0] })]
		case "xtc":
			if p.XTCProbability > 0 && p.XTCThreshold <= 0.5 && draw() < p.XTCProbability {
				if n := len(all) - countLast(probs, func(q float64) bool { return q < p.XTCThreshold }); n >= 2 {
					all = all[n-1:]
				}
			}
		case "temperature":
			if p.Temp == 0 {
				all = all[:1]
			}
			for i := range all {
				all[i].logit /= max(p.Temp, 1e-9)
			}
		}
	}
	probs := map[int32]float64{}
	for i, q := range softmax(all) {
		probs[all[i].id] = q
	}
	return probs
}

func softmax(all []weighted) []float64 {
	top, sum := math.Inf(-1), 0.0
	for _, w := range all {
		top = max(top, w.logit)
	}
	probs := make([]float64, len(all))
	for i, w := range all {
		probs[i] = math.Exp(w.logit - top)
		sum += probs[i]
	}
	for i := range probs {
		probs[i] /= sum
	}
	return probs
}

func countLast(probs []float64, drop func(float64) bool) int {
	n := 0
	for n < len(probs) && drop(probs[len(probs)-1-n]) {
		n++
	}
	return n
}

// repetition is how long a repetition id would continue: the longest end of the history, without a
// breaker in it, that stands before an id in the history.
func repetition(history []int32, id int32, p Params, piece func(int32) string) int {
	past := history
	if p.Window >= 0 {
		past = history[max(0, len(history)-p.Window):]
	}
	if len(past) <= p.AllowedLength {
		return 0
	}
	for _, b := range p.Breakers {
		if strings.Contains(piece(id), b) {
			return 0
		}
	}
	longest := 0
	for i, x := range past {
		if x != id {
			continue
		}
		for n := 1; n <= i && slices.Equal(past[i-n:i], past[len(past)-n:]); n++ {
			broken := false
			for _, b := range p.Breakers {
				// A breaker ends in one of the last n tokens.
				var before, all strings.Builder
				for _, t := range past[:len(past)-n] {
					before.WriteString(piece(t))
				}
				for _, t := range past {
					all.WriteString(piece(t))
				}
				at := strings.LastIndex(all.String(), b)
				broken = broken || at >= 0 && at+len(b) > before.Len()
			}
			if broken {
				break
			}
			longest = max(longest, n)
		}
	}
	return longest
}

// left returns the probability of each token that the chain leaves.
func left(s *Sampler, logits []float32) map[int32]float64 {
	defer s.rest(s.work())
	s.rng.Seed(s.p.Seed, s.chosen)
	s.set.reset(logits)
	s.narrow(nil)
	s.set.grow(len(logits))
	probs := map[int32]float64{}
	total := 0.0
	for _, c := range s.set.head {
		w := math.Exp(float64(c.logit()-s.set.top()) * s.set.scale)
		probs[c.id()], total = w, total+w
	}
	for id := range probs {
		probs[id] /= total
	}
	s.set.restore()
	return probs
}

func words(id int32) string {
	return []string{"a", "b", "c\n", "\n", "d*", "*", "e", "fg", "h", "i"}[id%10]
}

func drawLogits(t *rapid.T, most int) []float32 {
	n := rapid.IntRange(1, most).Draw(t, "vocabulary")
	r := rapid.Uint64().Draw(t, "logits")
	unit := rapid.SampledFrom([]float32{100, 100, 3000}).Draw(t, "unit") // with the last one they are nearly flat
	logits := make([]float32, n)
	for i := range logits {
		r = r*6364136223846793005 + 1442695040888963407
		logits[i] = float32(int32(r>>33)%2000) / unit // ties are likely
		if i%7 == 3 {
			logits[i] -= 25
		}
	}
	return logits
}

// TestStages compares what the chain leaves with what its stages are defined as, in the usual order and
// in others.
func TestStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := drawLogits(t, 4000)
		some := func(name string, off float64, values ...float64) float64 {
			return rapid.SampledFrom(append(values, off, off)).Draw(t, name)
		}
		p := Params{
			Temp: some("temp", 1, 0, 0.3, 2.5), TopK: int(some("top-k", 0, 1, 5, 40, 3000)), TopP: some("top-p", 1, 0, 0.2, 0.95),
			MinP: some("min-p", 0, 0.02, 0.3), Typical: some("typical", 1, 0.3, 0.9), TopNSigma: some("sigma", 0, 0.5, 1.5),
			XTCProbability: some("xtc", 0, 0.5, 1), XTCThreshold: some("xtc threshold", 0.1, 0.001, 0.01, 0.6),
			Repeat: some("repeat", 1, 1.3, 0.8), Presence: some("presence", 0, 0.5, -1), Frequency: some("frequency", 0, 0.2, -0.3),
			LastN: int(some("last", 64, -1, 0, 3)),
			DRY: DRY{Multiplier: some("dry", 0, 0.8), Base: 1.75, AllowedLength: int(some("allowed", 2, 0, 1, 3)),
				Window: int(some("window", -1, 0, 5, 20)), Breakers: rapid.SampledFrom([][]string{nil, {"\n"}, {"c\n", "*"}, {"b*", "\nd"}}).Draw(t, "breakers")},
			Seed: rapid.Uint64().Draw(t, "seed"),
		}
		if rapid.Bool().Draw(t, "biased") && len(logits) > 20 {
			p.Bias = map[int32]float64{3: 20, 7: math.Inf(-1), 9: -2.5}
		}
		if rapid.Bool().Draw(t, "reordered") {
			p.Samplers = rapid.Permutation(Order()).Draw(t, "order")[:rapid.IntRange(1, len(stages)).Draw(t, "stages")]
		}
		s := New(p, words)
		var history []int32
		for range rapid.IntRange(0, 40).Draw(t, "history") {
			history = append(history, int32(rapid.IntRange(0, min(5, len(logits)-1)).Draw(t, "token")))
		}
		// Some are a prompt, and some are accepted, with choices between them or without.
		prompt := rapid.IntRange(0, len(history)).Draw(t, "prompt")
		s.Read(history[:prompt])
		for _, id := range history[prompt:] {
			if rapid.Bool().Draw(t, "chooses") {
				s.Choose(logits, nil)
			}
			s.Accept(id)
		}
		before := slices.Clone(logits)
		got := left(s, logits)
		if !slices.Equal(before, logits) {
			t.Fatal("the logits have changed")
		}
		s.rng.Seed(p.Seed, s.chosen)
		want := define(logits, p, history, words, s.uniform)
		compare(t, got, want)
		id, err := s.Choose(logits, nil)
		if _, ok := want[id]; err != nil || !ok {
			t.Fatalf("chooses %d, %v, which is not left", id, err)
		}
	})
}

// compare allows for a token at a limit, where sums that are rounded otherwise decide.
func compare(t *rapid.T, got, want map[int32]float64) {
	off := 0.0
	for id, q := range want {
		off += math.Abs(q - got[id])
	}
	for id, q := range got {
		if _, ok := want[id]; !ok {
			off += q
		}
	}
	if off > 1e-4 {
		t.Fatalf("%d tokens are left, want %d; probabilities differ by %g in all\n%v\n%v", len(got), len(want), off,
			slices.Sorted(maps.Keys(got))[:min(20, len(got))], slices.Sorted(maps.Keys(want))[:min(20, len(want))])
	}
}
