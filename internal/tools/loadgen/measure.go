package main

import (
	"math"
	"slices"
	"time"
)

// measures are the figures of a result, by the definitions of vLLM's benchmark (vllm bench serve).
// Latencies are in ms, of requests without an error.
type measures struct {
	requests, errors, unfinished int
	problem                      error // the first
	seconds                      float64
	promptRate, outputRate       float64 // tokens a second, first turns with them
	cached                       float64 // median of prompts' tokens that the server had in its cache

	ttft latencies // from the request's last byte to the first piece of the answer
	tpot latencies // from there to the last piece, divided by the tokens behind the first; of each answer of two and more
	itl  latencies // between a piece and the one before, of all answers together
	e2el latencies // from the request to the last piece
}

type latencies []float64

func measure(r *result) *measures {
	m := &measures{unfinished: r.unfinished, seconds: r.wall.Seconds()}
	prompt, output := 0, 0
	var cached latencies
	for _, t := range r.traces {
		if t.err != nil {
			m.errors++
			if m.problem == nil {
				m.problem = t.err
			}
			continue
		}
		m.requests++
		prompt += t.prompt
		output += t.completion
		cached = append(cached, float64(t.cached))
		first, last := t.times[0], t.times[len(t.times)-1]
		m.ttft.add(first)
		m.e2el.add(last)
		if t.completion > 1 {
			m.tpot = append(m.tpot, ms(last-first)/float64(t.completion-1))
		}
		for i, at := range t.times[1:] {
			m.itl.add(at - t.times[i])
		}
	}
	for _, t := range r.first {
		prompt += t.prompt
		output += t.completion
	}
	if m.seconds > 0 {
		m.promptRate, m.outputRate = float64(prompt)/m.seconds, float64(output)/m.seconds
	}
	m.cached = cached.percentile(50)
	return m
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (l *latencies) add(d time.Duration) { *l = append(*l, ms(d)) }

// percentile interpolates linearly between the two nearest, as numpy does by default; 0 of none.
func (l latencies) percentile(p float64) float64 {
	if len(l) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(l))
	at := p / 100 * float64(len(s)-1)
	i := int(math.Floor(at))
	j := min(i+1, len(s)-1)
	return s[i] + (at-float64(i))*(s[j]-s[i])
}

func (l latencies) mean() float64 {
	if len(l) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range l {
		sum += x
	}
	return sum / float64(len(l))
}
