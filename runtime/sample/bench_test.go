package sample

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// large are logits as a model with a vocabulary of 151,936 has them: most of them near 0, some
// tokens that may follow.
func large() []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 151936)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 2.5)
	}
	for i := range 30 {
		logits[i*997] = 20 + float32(r.NormFloat64()*2)
	}
	return logits
}

// manyBreakers are as many and as long ones as are taken; none of them is in what words says.
func manyBreakers() []string {
	all := make([]string, maxBreakers)
	for i := range all {
		all[i] = strings.Repeat("a", maxBreaker-1) + string(rune('A'+i%26))
	}
	return all
}

// BenchmarkChoose is a choice from 151,936 logits.
func BenchmarkChoose(b *testing.B) {
	logits := large()
	row := make([]int32, ir.CandidateRow)
	ir.Candidates(logits, row)
	b.Run("sorted", func(b *testing.B) { // what selecting spares
		var all []candidate
		for b.Loop() {
			all = all[:0]
			for i, l := range logits {
				all = append(all, pack(int32(i), l))
			}
			slices.Sort(all)
		}
	})
	for _, c := range []struct {
		name string
		set  func(p *Params)
	}{
		{"top-k,top-p", func(p *Params) { p.Temp, p.TopK, p.TopP = 0.6, 20, 0.95 }},
		{"min-p", func(p *Params) { p.MinP = 0.05 }},
		{"penalties", func(p *Params) { p.TopK, p.Repeat = 40, 1.1 }},
		{"temperature", func(*Params) {}},
		{"top-p", func(p *Params) { p.TopP = 0.95 }},
		{"flat,top-p", func(p *Params) { p.Temp, p.TopP = 20, 0.95; p.Samplers = []string{"temperature", "top_p"} }},
		{"flat,min-p", func(p *Params) { p.Temp, p.MinP = 20, 0.05; p.Samplers = []string{"temperature", "min_p"} }},
		{"typical", func(p *Params) { p.Typical = 0.9 }},
		{"flat,typical", func(p *Params) { p.Temp, p.Typical = 20, 0.9; p.Samplers = []string{"temperature", "typ_p"} }},
		{"top-n-sigma", func(p *Params) { p.TopNSigma = 1 }},
		{"dry", func(p *Params) { p.Multiplier = 0.8 }},
		{"dry,breakers", func(p *Params) { p.Multiplier, p.Breakers = 0.8, manyBreakers() }},
	} {
		p := Neutral()
		c.set(&p)
		s := New(p, words)
		for i := range 200 {
			s.Accept(int32(i * 7))
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Choose(logits, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+",candidates", func(b *testing.B) {
			decided := 0
			for b.Loop() {
				if _, ok, err := s.ChooseAmong(row, len(logits), nil); err != nil {
					b.Fatal(err)
				} else if ok {
					decided++
				}
			}
			b.ReportMetric(float64(decided)/float64(b.N), "decided")
		})
	}
}
