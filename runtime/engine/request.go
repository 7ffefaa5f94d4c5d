package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// Request is a prompt to continue.
type Request struct {
	Prompt     []int32
	Max        int // tokens to generate, at most; negative: as many as fit the context
	Min        int // tokens before an end token or stop token may come
	Sampling   sample.Params
	Stops      []string // texts that end the answer and are no part of it
	StopTokens []int32  // tokens that end the answer as end-of-generation tokens do
	IgnoreEOG  bool     // go on behind end-of-generation tokens
	Special    bool     // control tokens give text

	// TopLogprobs is how many of the most likely tokens come with each token; 0: the log
	// probability of the token alone; negative: none.
	TopLogprobs int

	Priority int // requests of a higher priority go first
	// Owner is whose request it is: nothing that one owner's requests left is reused for another's.
	Owner string
	// NoCache computes the whole prompt anew.
	NoCache bool
	// Turn is the number of leading tokens of the prompt with which the next turn of the conversation will surely
	// begin: all but the generation prompt of a chat template. 0: all tokens.
	Turn int

	Reasoning *Budget  // nil: without end
	Opening   *Opening // nil: the model begins as it likes

	// Format is what the answer is a text of, without its reasoning; nil: anything. With a text of which nothing can
	// follow, the answer ends.
	Format *grammar.Grammar
	// AtOnce: the format begins with the answer, even if the model would reason first.
	AtOnce bool

	// Reading gets how much of the prompt is read, behind each step of it; nil: nobody looks. It must return at once.
	Reading func(tokens int)
}

// Budget bounds the reasoning in front of an answer.
type Budget struct {
	Limit  int     // tokens; then Force is forced; negative: without end, but counted
	Open   bool    // the prompt has opened it
	Hidden bool    // Stops are not looked for in it
	Begin  []int32 // what opens it, if the prompt has not
	Close  []int32 // what closes it
	Force  []int32 // what it is ended with at the limit: Close and what belongs around it; nil: Close
}

// Opening makes an answer begin with one of several sequences of tokens. Where these diverge, the likeliest
// one continues.
type Opening struct {
	Plain  [][]int32 // at the beginning of the answer
	Behind [][]int32 // behind its reasoning, if it begins with some; nil: at the beginning, whatever the model would do
}

// Event is a part of the answer. The last one has Done.
type Event struct {
	Tokens []Token // those whose text is complete with this event
	Text   string  // whole code points, as far as the model writes such
	Done   *Done
}

// Token is a chosen token.
type Token struct {
	ID      int32
	Text    string // its bytes, which need not be whole code points
	Logprob float32
	Top     []Alternative
}

// Alternative is one of the most likely tokens at a place.
type Alternative struct {
	ID      int32
	Text    string
	Logprob float32
}

// Why an answer ends.
const (
	Stopped   = "stop"      // an end-of-generation token, a stop token or a stop text
	Length    = "length"    // Request.Max, or the end of Drain
	Context   = "context"   // the context is full
	Cancelled = "cancelled" // by the context of Generate, or Close
	Failed    = "error"     // Done.Err
)

// Done is the end of an answer.
type Done struct {
	Reason  string
	Stop    string // the stop text that was found
	Drained bool   // Drain ended it
	Usage   Usage
	Err     error
}

// Usage is what a request took.
type Usage struct {
	Prompt     int           // tokens
	Cached     int           // tokens of the prompt that slots still held
	Completion int           // tokens of the answer, without the one that ended it
	Reasoning  int           // tokens of the answer that are reasoning
	Guessed    int           // tokens that were guessed, and had rows in steps
	Held       int           // of these, those that came so
	Preempted  int           // how often it gave its slot up for the pages of others
	Queue      time.Duration // until a slot was free
	Prefill    time.Duration // from then to the first token
	Decode     time.Duration // from then to the last
}

// RequestError says what is wrong with a request.
type RequestError struct{ Field, Problem string }

func (e *RequestError) Error() string { return e.Field + " " + e.Problem }

// ContextError says that a prompt does not fit.
type ContextError struct{ Prompt, Ctx int }

func (e *ContextError) Error() string {
	return fmt.Sprintf("%d tokens do not fit: the plan's context is %d", e.Prompt, e.Ctx)
}

// check returns a RequestError, a ContextError or a sample.Error.
func (e *Engine) check(r *Request) error {
	if len(r.Prompt) == 0 {
		return &RequestError{"prompt", "has no tokens"}
	}
	if ctx := e.plan.Header.Ctx; len(r.Prompt) > ctx {
		return &ContextError{len(r.Prompt), ctx}
	}
	if r.Turn < 0 || r.Turn > len(r.Prompt) {
		return &RequestError{"turn", fmt.Sprintf("is %d, the prompt has %d tokens", r.Turn, len(r.Prompt))}
	}
	reasoning := r.Reasoning
	if reasoning == nil {
		reasoning = &Budget{}
	}
	vocab := int32(e.plan.Header.Model.Vocab)
	type list struct {
		name string
		ids  []int32
	}
	lists := []list{{"prompt", r.Prompt}, {"stop_token_ids", r.StopTokens}, {"reasoning", reasoning.Begin}, {"reasoning", reasoning.Close}, {"reasoning", reasoning.Force}}
	if o := r.Opening; o != nil {
		for _, ids := range slices.Concat(o.Plain, o.Behind) {
			if len(ids) == 0 {
				return &RequestError{"opening", "has no tokens"}
			}
			lists = append(lists, list{"opening", ids})
		}
		if len(o.Plain) == 0 {
			return &RequestError{"opening", "is nothing"}
		}
	}
	for _, list := range lists {
		if i := slices.IndexFunc(list.ids, func(id int32) bool { return id < 0 || id >= vocab }); i >= 0 {
			return &RequestError{list.name, fmt.Sprintf("has token %d, the vocabulary has %d", list.ids[i], vocab)}
		}
	}
	if r.Reasoning != nil && r.Reasoning.Limit >= 0 && len(r.Reasoning.Close) == 0 {
		return &RequestError{"reasoning", "has a limit but nothing that closes it"}
	}
	if r.Format != nil && r.Opening != nil {
		return &RequestError{"format", "says how the answer begins; there is an opening, too"}
	}
	return r.Sampling.Validate()
}
