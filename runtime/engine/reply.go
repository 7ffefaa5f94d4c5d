package engine

import (
	"strings"

	"github.com/zincc-dev/zincc/runtime/text"
)

// reply turns chosen tokens into the events of an answer. Text is held back as long as it is
// part of a code point or may become a stop text; tokens are held back with it.
type reply struct {
	stops  []string
	stream *text.Stream
	hidden bool    // stops are not looked for in reasoning
	held   string  // text that may begin a stop
	from   int     // where in it stops are looked for
	behind bool    // only white space came since the reasoning
	tokens []Token // not yet handed out
	ends   []int   // where each of them ends in the text
	begun  int     // bytes of text that tokens brought, held back or not
	given  int     // bytes of text handed out
	stop   string  // the stop text that was found
}

func newReply(tok *text.Tokenizer, r *Request) *reply {
	return &reply{stream: tok.Stream(r.Special), stops: r.Stops, hidden: r.Reasoning != nil && r.Reasoning.Hidden}
}

// add takes a token, of reasoning or not, and reports whether a stop text ends the answer.
func (r *reply) add(t Token, reasoning bool) bool {
	r.begun += len(t.Text)
	r.tokens, r.ends = append(r.tokens, t), append(r.ends, r.begun)
	r.held += r.stream.Next(t.ID)
	if r.hidden {
		r.pass(reasoning)
	}
	at := -1
	for _, s := range r.stops {
		if i := strings.Index(r.held[r.from:], s); s != "" && i >= 0 && (at < 0 || r.from+i < at) {
			at, r.stop = r.from+i, s
		}
	}
	if at < 0 {
		return false
	}
	r.held = r.held[:at]
	// Tokens with text that begins at the stop or behind it are no part of the answer.
	n, end := 0, r.given+at
	for n < len(r.tokens) && (r.ends[n] <= end || r.ends[n]-len(r.tokens[n].Text) < end) {
		n++
	}
	r.tokens, r.ends = r.tokens[:n], r.ends[:n]
	return true
}

// pass leaves out of the search what nobody sees: reasoning, and the white space behind it.
func (r *reply) pass(reasoning bool) {
	if reasoning {
		r.from, r.behind = len(r.held), true
	}
	if r.behind {
		text := strings.TrimLeft(r.held[r.from:], " \t\r\n")
		r.from, r.behind = len(r.held)-len(text), text == ""
	}
}

// take returns what can be handed out, all of it at the end.
func (r *reply) take(end bool) Event {
	n := len(r.held)
	if !end {
		n -= r.pending()
	} else if r.stop == "" {
		r.held += r.stream.Flush()
		n = len(r.held)
	}
	ev := Event{Text: r.held[:n]}
	r.held = r.held[n:]
	r.from = max(0, r.from-n)
	r.given += n
	done := 0
	for done < len(r.tokens) && (end || r.ends[done] <= r.given) {
		done++
	}
	ev.Tokens = r.tokens[:done:done]
	r.tokens, r.ends = r.tokens[done:], r.ends[done:]
	return ev
}

// pending is the length of the longest end of the held text that begins a stop.
func (r *reply) pending() int {
	longest := 0
	for _, s := range r.stops {
		for n := min(len(s)-1, len(r.held)-r.from); n > longest; n-- {
			if strings.HasSuffix(r.held, s[:n]) {
				longest = n
			}
		}
	}
	return longest
}
