package plans

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/zincc-dev/zincc/internal/processor"
)

// Plans for processors run on processors of all speeds, so that their predictions are those of a reference: two cores,
// which read ReferenceBytes and compute ReferenceFLOPs a second. They choose and compare. What people are told is a
// Range.
const (
	ReferenceBytes = 40e9
	ReferenceFLOPs = 200e9
)

// slowBytes and fastBytes are what a core reads in a second, of the processors that were measured; cachedBytes is what
// one reads of a plan whose steps read so little, cached, that it stays in caches. docs/estimates.md has the
// measurements.
const (
	slowBytes, fastBytes = 4e9, 30e9
	cached, cachedBytes  = 64 << 20, 40e9
)

// coreFLOPs is the least and the most that a core computes in a second, by the best feature that it has of these.
var coreFLOPs = []struct {
	feature string
	of      Range
}{
	{processor.Tile, Range{100e9, 500e9}},
	{"avx512vnni", Range{100e9, 300e9}},
	{"", Range{50e9, 300e9}},
}

// untuned is the least and the most of the predicted time that kernels of GPUs were found to take at sites that nobody
// had tuned, over whole steps: docs/estimates.md. settled is how far a step may be from its prediction for a number to
// say it.
var untuned = Range{0.8, 1.35}

const settled = 1.15

// Range is the least and the most that a rate or a time may be; both are the same where it is predicted as a number.
type Range [2]float64

// Text writes both with the digits that they are good for.
func (s Range) Text(write func(float64) string) string {
	if s[0] == s[1] {
		return write(s[0])
	}
	return write(s[0]) + " to " + write(s[1])
}

// each applies f to both.
func (s Range) each(f func(float64) float64) Range { return Range{f(s[0]), f(s[1])} }

// String is the text of both in a table.
func (s Range) String() string {
	return s.Text(func(v float64) string {
		if v >= 1000 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 3, 64)
	})
}

// cell is what a table has of s: a number, or both, a list in JSON.
func (s Range) cell() any {
	if s[0] == s[1] {
		return s[0]
	}
	return s
}

// Seconds is how long a full step of an entry takes behind depth positions, as predicted; with so many cores, if the
// plan is for processors.
func (p *Plan) Seconds(e *Entry, depth, cores int) Range {
	if !p.OfReference() {
		return e.untunedSeconds(depth)
	}
	var flops Range
	for _, f := range slices.Backward(coreFLOPs) {
		if f.feature == "" || slices.Contains(p.Require.CPU.Features, f.feature) {
			flops = f.of
		}
	}
	most := fastBytes
	if read, _, _ := e.Work(depth); read < cached {
		most = cachedBytes
	}
	of := func(bytes, flops float64) (s float64) {
		n := float64(cores)
		for i := range e.Dispatches {
			t := e.Dispatches[i].Cost.At(depth).Predicted
			s += max(float64(t.Bytes)*ReferenceBytes/(n*bytes), float64(t.Operations)*ReferenceFLOPs/(n*flops)) + float64(t.Stage)
		}
		return s
	}
	return Range{of(most, flops[1]), of(slowBytes, flops[0])}
}

// untunedSeconds is how long a full step takes on a GPU: a range, if much of it is of sites that nobody tuned.
func (e *Entry) untunedSeconds(depth int) Range {
	all, guessed := 0.0, 0.0
	for i := range e.Dispatches {
		c := e.Dispatches[i].Cost.At(depth)
		all += c.Predicted.Seconds()
		if !c.Measured {
			guessed += c.Predicted.Seconds()
		}
	}
	if all+(untuned[1]-1)*guessed <= settled*all {
		return Range{all, all}
	}
	return untuned.each(func(of float64) float64 { return all + (of-1)*guessed })
}

// Rate is the tokens a second of full steps of an entry behind depth positions, as predicted; 0 where nothing is.
func (p *Plan) Rate(e *Entry, depth, cores int) Range {
	s := p.Seconds(e, depth, cores)
	if s[0] == 0 {
		return Range{}
	}
	return Range{float64(e.Rows) / s[1], float64(e.Rows) / s[0]}
}

// timeColumn names a column of predicted times in microseconds.
func (p *Plan) timeColumn() string {
	if p.OfReference() {
		return "us of the reference"
	}
	return "predicted us"
}

// reference says whose times those of a plan for processors are.
func reference() string {
	return fmt.Sprintf("of a reference, two cores that read %.0f GB and compute %.0f G operations a second", ReferenceBytes/1e9, ReferenceFLOPs/1e9)
}
