package fleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
)

// Request is a prompt and the length of its answer. Prompts of one conversation begin alike: each goes on where the
// one before it ended. Those of one system prompt have its tokens in common.
type Request struct {
	At           float64 `json:"at"` // seconds; of a later turn, behind the answer before it where Think is used
	Conversation string  `json:"conversation"`
	System       string  `json:"system,omitempty"`
	SystemTokens int     `json:"system_tokens,omitempty"`
	Prompt       int     `json:"prompt"` // tokens, with the system prompt and all turns before
	Answer       int     `json:"answer"` // tokens
}

// common is how many tokens two prompts have in common.
func (r *Request) common(o *Request) int {
	switch {
	case r.Conversation == o.Conversation:
		return min(r.Prompt, o.Prompt)
	case r.System != "" && r.System == o.System:
		return min(r.SystemTokens, o.SystemTokens)
	}
	return 0
}

// Mix is a mix of conversations.
type Mix struct {
	Conversations int
	Rate          float64 // conversations that begin in a second, at random times
	Turns         int
	Think         float64 // seconds from an answer to the next turn, the mean of an exponential distribution
	Systems       int     // different system prompts; 0: none
	SystemTokens  int
	Prompt        int // new tokens of a turn
	Answer        int // tokens
	Seed          uint64
}

// work is what is asked: the requests that come at times of their own, and what follows each.
type work struct {
	first []*job
	jobs  int
}

// job is a request, and the one that follows think seconds behind its answer.
type job struct {
	Request
	next  *job
	think float64
}

// work draws the conversations.
func (m Mix) work() work {
	r := rand.New(rand.NewPCG(m.Seed, 0))
	w := work{}
	at := 0.0
	for i := range m.Conversations {
		q := Request{At: at, Conversation: fmt.Sprint(i), Answer: m.Answer}
		at += r.ExpFloat64() / m.Rate
		if m.Systems > 0 {
			q.System, q.SystemTokens = fmt.Sprint(r.IntN(m.Systems)), m.SystemTokens
			q.Prompt = m.SystemTokens
		}
		var last *job
		for turn := range m.Turns {
			if q.Prompt += m.Prompt; turn > 0 {
				q.Prompt += m.Answer
			}
			j := &job{Request: q}
			if last == nil {
				w.first = append(w.first, j)
			} else {
				last.next, last.think = j, m.Think*r.ExpFloat64()
			}
			last = j
			w.jobs++
		}
	}
	return w
}

// maxTrace bounds the requests of a trace.
const maxTrace = 1 << 20

// ReadTrace reads requests, one JSON object a line. The error names the line.
func ReadTrace(r io.Reader) ([]Request, error) {
	var all []Request
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var q Request
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		if q.At < 0 || q.At > 1e9 || q.Prompt < 1 || q.Prompt > maxCtx || q.Answer < 1 || q.Answer > maxCtx || q.SystemTokens < 0 || q.SystemTokens > q.Prompt {
			return nil, fmt.Errorf("line %d: %+v: want at >= 0, and tokens", len(all)+1, q)
		}
		if all = append(all, q); len(all) > maxTrace {
			return nil, fmt.Errorf("more than %d requests", maxTrace)
		}
	}
	return all, lines.Err()
}

func traceWork(all []Request) work {
	w := work{jobs: len(all)}
	for _, q := range all {
		w.first = append(w.first, &job{Request: q})
	}
	slices.SortStableFunc(w.first, func(a, b *job) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return w
}
