package runtime

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/runtime/text"
)

// Burst is how many greedy tokens one submission decodes: enough to hide the
// host, few enough that text flows.
const Burst = 8

// Generator continues a prompt.
type Generator struct {
	Session   *Session
	Tokenizer *text.Tokenizer
	Sampling  Sampling
	Max       int // tokens to generate, at most

	sequence []int32 // what was fed
}

// What ends a generation.
const (
	StoppedByEOG     = "stop"    // an end-of-generation token
	StoppedByLength  = "length"  // Generator.Max
	StoppedByContext = "context" // the context is full
)

// Stats are the counts and times of one generation.
type Stats struct {
	Load, Prefill, Decode       time.Duration
	PrefillTokens, DecodeTokens int
	Stopped                     string `json:"stopped"` // by what
}

// Generate feeds prompt and writes the text of the tokens that follow to w as
// they come, never a part of a UTF-8 code point. The error is a NotNumbersError if it runs into
// logits that are not numbers.
func (g *Generator) Generate(ctx context.Context, prompt []int32, w io.Writer) (Stats, error) {
	g.sequence = slices.Clone(prompt)
	stats, err := g.generate(ctx, prompt, w)
	if errors.Is(err, ErrNotNumbers) {
		err = &NotNumbersError{g.sequence}
	}
	return stats, err
}

func (g *Generator) generate(ctx context.Context, prompt []int32, w io.Writer) (Stats, error) {
	var stats Stats
	start := time.Now()
	next, err := g.Session.Prefill(ctx, prompt, 0)
	if err != nil {
		return stats, err
	}
	sampler := NewSampler(g.Sampling)
	if !g.Sampling.Greedy() {
		if next, err = g.sample(sampler); err != nil {
			return stats, err
		}
	}
	stats.Prefill, stats.PrefillTokens = time.Since(start), len(prompt)
	start = time.Now()
	err = g.decode(ctx, sampler, next, w, &stats)
	stats.Decode = time.Since(start)
	if err == nil { // a device that chooses by itself passes over some that are NaN
		_, err = g.logits()
	}
	return stats, err
}

// decode writes next and what follows it.
func (g *Generator) decode(ctx context.Context, sampler *Sampler, next int32, w io.Writer, stats *Stats) error {
	stream := g.Tokenizer.Stream(false)
	chosen := []int32{next} // not yet written; the last one is not yet in the sequence
	stats.Stopped = StoppedByLength
	for left := g.Max; left > 0; {
		for _, id := range chosen[:min(left, len(chosen))] {
			if g.Tokenizer.IsEOG(id) {
				stats.Stopped, left = StoppedByEOG, 0
				break
			}
			if _, err := io.WriteString(w, stream.Next(id)); err != nil {
				return err
			}
			left--
		}
		n := min(left, g.Session.Room(), Burst)
		if n == 0 {
			if left > 0 {
				stats.Stopped = StoppedByContext
			}
			break
		}
		if !g.Sampling.Greedy() {
			n = 1
		}
		var err error
		g.sequence = append(g.sequence, chosen[len(chosen)-1])
		if chosen, err = g.Session.Decode(ctx, chosen[len(chosen)-1], n); len(chosen) > 0 {
			g.sequence = append(g.sequence, chosen[:len(chosen)-1]...)
		}
		if err != nil {
			return err
		}
		if !g.Sampling.Greedy() {
			if chosen[0], err = g.sample(sampler); err != nil {
				return err
			}
		}
		stats.DecodeTokens += n
	}
	_, err := io.WriteString(w, stream.Flush())
	return err
}

// logits returns those behind the sequence, which are numbers.
func (g *Generator) logits() ([]float32, error) {
	logits, err := g.Session.Logits()
	if err == nil {
		err = CheckLogits(logits)
	}
	return logits, err
}

func (g *Generator) sample(s *Sampler) (int32, error) {
	logits, err := g.logits()
	if err != nil {
		return 0, err
	}
	return s.Sample(logits), nil
}
