package sample

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
)

// drawTiedLogits are of 1 to some thousand tokens, with ties, of which some stand out, in any of several ways.
func drawTiedLogits(t *rapid.T) []float32 {
	n := rapid.SampledFrom([]int{1, 40, 300, 4096, 9000, 30000}).Draw(t, "vocabulary")
	seed := rapid.Uint64().Draw(t, "logits")
	random := func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed >> 33 % uint64(n))
	}
	unit := rapid.SampledFrom([]float32{1, 30, 300, 30000}).Draw(t, "unit")
	logits := make([]float32, n)
	for i := range logits {
		logits[i] = -float32(random(2000)) / unit
	}
	for range rapid.SampledFrom([]int{0, 3, 30, 300}).Draw(t, "likely") {
		logits[random(n)] = float32(random(1000)) / 100
	}
	if rapid.Bool().Draw(t, "side by side") { // all in one part
		for i := range min(n, 20) {
			logits[i] = 12
		}
	}
	special := []float32{float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN()), 0, float32(math.Copysign(0, -1))}
	if rapid.IntRange(0, 3).Draw(t, "specials") == 0 {
		for range rapid.IntRange(1, 30).Draw(t, "of them") {
			logits[random(n)] = special[random(len(special))]
		}
	}
	if rapid.IntRange(0, 20).Draw(t, "nothing") == 0 {
		for i := range logits {
			logits[i] = special[0]
		}
	}
	return logits
}

// drawManyParams are parameters of which many change something.
func drawManyParams(t *rapid.T) Params {
	some := func(name string, off float64, values ...float64) float64 {
		return rapid.SampledFrom(append(values, off, off, off)).Draw(t, name)
	}
	p := Params{
		Temp: some("temp", 1, 0, 0.3, 0.8, 2.5), TopK: int(some("top-k", 0, 1, 5, 40, 70, 3000)), TopP: some("top-p", 1, 0, 0.2, 0.95),
		MinP: some("min-p", 0, 0.02, 0.3), Typical: some("typical", 1, 0.3, 0.9), TopNSigma: some("sigma", 0, 0.5, 1.5),
		XTCProbability: some("xtc", 0, 0.5, 1), XTCThreshold: some("xtc threshold", 0.1, 0.001, 0.01, 0.6),
		Repeat: some("repeat", 1, 1.3, 0.8), Presence: some("presence", 0, 0.5, -1), Frequency: some("frequency", 0, 0.2, -0.3),
		LastN: int(some("last", 64, -1, 0, 3)),
		DRY:   DRY{Multiplier: some("dry", 0, 0.8), Base: 1.75, AllowedLength: int(some("allowed", 2, 0, 1, 3)), Window: -1},
		Seed:  rapid.Uint64().Draw(t, "seed"),
	}
	if rapid.IntRange(0, 3).Draw(t, "biased") == 0 {
		p.Bias = map[int32]float64{3: rapid.SampledFrom([]float64{20, -2, 0}).Draw(t, "bias"), 7: math.Inf(-1), 9: -2.5, 100000: 3}
	}
	if rapid.IntRange(0, 3).Draw(t, "reordered") == 0 {
		p.Samplers = rapid.Permutation(Order()).Draw(t, "order")[:rapid.IntRange(1, len(stages)).Draw(t, "stages")]
	}
	return p
}

// TestCandidates: what is chosen by candidates, where these decide, is what all logits choose, or the same error: of
// all parameters, with penalties, biases, forbidden tokens and formats, again and again.
func TestCandidates(t *testing.T) {
	decided, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawManyParams(t)
		byAll, byCandidates := New(p, words), New(p, words)
		var gate Allowed
		row := make([]int32, ir.CandidateRow)
		for range rapid.IntRange(1, 3).Draw(t, "choices") {
			logits := drawTiedLogits(t)
			n := len(logits)
			if rapid.IntRange(0, 3).Draw(t, "formatted") == 0 {
				a := &some{words: make([]uint64, (n+63)/64)}
				share := rapid.SampledFrom([]int{1, 50, 900}).Draw(t, "allowed")
				seed := rapid.Uint64().Draw(t, "which")
				for id := range n {
					if seed = seed*6364136223846793005 + 1442695040888963407; int(seed>>33%1000) < share {
						a.words[id>>6] |= 1 << (id & 63)
					}
				}
				gate = a
			}
			byAll.Allowed, byCandidates.Allowed = gate, gate
			var forbidden []int32
			for range rapid.IntRange(0, 2).Draw(t, "forbidden") {
				forbidden = append(forbidden, int32(rapid.IntRange(0, n-1).Draw(t, "token")))
			}
			ir.Candidates(logits, row)
			want, wantErr := byAll.Choose(logits, forbidden)
			have, ok, err := byCandidates.ChooseAmong(row, n, forbidden)
			if all++; ok {
				decided++
			} else {
				have, err = byCandidates.Choose(logits, forbidden)
			}
			if have != want || err != wantErr {
				t.Fatalf("%d, %v by candidates (%t), want %d, %v", have, err, ok, want, wantErr)
			}
			if ok, err := CheckAmong(row, n); !ok || err != Check(logits) {
				t.Fatalf("%t, %v, want %v", ok, err, Check(logits))
			}
			if wantErr == nil {
				byAll.Accept(want)
				byCandidates.Accept(want)
			}
			gate = nil
		}
	})
	t.Logf("%d of %d choices were decided", decided, all)
	if 10*decided < all {
		t.Errorf("%d of %d choices were decided", decided, all)
	}
}

// TestCandidatesDecide: with usual parameters and logits as models have them hardly a row is wanted.
func TestCandidatesDecide(t *testing.T) {
	logits := large()
	row := make([]int32, ir.CandidateRow)
	ir.Candidates(logits, row)
	for _, c := range []struct {
		name string
		set  func(p *Params)
	}{
		{"temperature", func(*Params) {}},
		{"colder", func(p *Params) { p.Temp = 0.7 }},
		{"top-k,top-p", func(p *Params) { p.Temp, p.TopK, p.TopP = 0.6, 20, 0.95 }},
		{"top-p", func(p *Params) { p.Temp, p.TopP = 0.7, 0.95 }},
		{"min-p", func(p *Params) { p.MinP = 0.05 }},
		{"penalties", func(p *Params) { p.TopK, p.Repeat, p.Presence = 40, 1.1, 0.5 }},
		{"dry", func(p *Params) { p.TopK, p.Multiplier = 40, 0.8 }},
	} {
		p := Neutral()
		c.set(&p)
		byAll, byCandidates := New(p, words), New(p, words)
		const choices = 300
		wanted := 0
		for range choices {
			want, err := byAll.Choose(logits, nil)
			if err != nil {
				t.Fatal(err)
			}
			have, ok, err := byCandidates.ChooseAmong(row, len(logits), nil)
			if !ok {
				wanted++
				have, err = byCandidates.Choose(logits, nil)
			}
			if have != want || err != nil {
				t.Fatalf("%s: %d, %v, want %d", c.name, have, err, want)
			}
			byAll.Accept(want)
			byCandidates.Accept(want)
		}
		t.Logf("%s: of %d choices %d wanted all logits", c.name, choices, wanted)
		if wanted > choices/50 {
			t.Errorf("%s: of %d choices %d wanted all logits", c.name, choices, wanted)
		}
	}
}

// TestCandidatesRefuse rows that no device makes: another length, ids that are of no token or of another part.
func TestCandidatesRefuse(t *testing.T) {
	logits := make([]float32, 5000)
	row := make([]int32, ir.CandidateRow)
	ir.Candidates(logits, row)
	var r candidateRow
	if !r.read(row, len(logits)) || r.read(row[1:], len(logits)) || r.read(row, 400) {
		t.Error("a row is not looked at")
	}
	for _, id := range []int32{-1, 5000, ir.CandidateRun, math.MaxInt32} {
		bad := slices.Clone(row)
		bad[1] = id
		if r.read(bad, len(logits)) {
			t.Errorf("id %d in the first part", id)
		}
	}
	// Behind the first ones of a part they are looked at as far as a choice takes it: it is the same, or there is none.
	for i := range logits {
		logits[i] = float32(i%61) / 8
	}
	ir.Candidates(logits, row)
	topK := Neutral()
	topK.TopK = 40
	penalized := Neutral()
	penalized.Repeat = 1.1
	refused := 0
	for _, p := range []Params{Neutral(), topK, penalized} {
		for at := 1; at < len(row); at += 2 {
			if at%ir.CandidateWords > 2*ir.CandidateKeep {
				continue // sums
			}
			bad := slices.Clone(row)
			bad[at] ^= ir.CandidateRun
			s, by := New(p, words), New(p, words)
			s.Accept(7)
			by.Accept(7)
			id, ok, err := s.ChooseAmong(bad, len(logits), nil)
			if want, _ := by.Choose(slices.Clone(logits), nil); err != nil || ok && id != want {
				t.Errorf("with a bad id at %d: %d, %v, want %d", at, id, err, want)
			}
			if !ok {
				refused++
			}
		}
	}
	if refused < 2*ir.CandidateParts*ir.CandidateKeep {
		t.Errorf("%d bad rows are refused", refused)
	}
}

// TestCandidatesNotNumbers: a NaN that a change meets stays one, and an infinite logit stays infinite.
func TestCandidatesNotNumbers(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		logits := make([]float32, 5000)
		logits[7] = bad
		row := make([]int32, ir.CandidateRow)
		ir.Candidates(logits, row)
		p := Neutral()
		p.Repeat = 1.1
		s, by := New(p, words), New(p, words)
		s.Accept(7)
		by.Accept(7)
		_, want := by.Choose(logits, nil)
		if id, ok, err := s.ChooseAmong(row, len(logits), nil); ok && err != want {
			t.Errorf("%g: %d, %v, want %v", bad, id, err, want)
		}
		if want != ErrNotNumbers && bad != bad {
			t.Errorf("by all logits: %v", want)
		}
	}
}
