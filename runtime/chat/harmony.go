package chat

import "strings"

// sink is where the text of a message of the harmony form goes.
type sink uint8

const (
	toContent sink = iota
	toReasoning
	toCall
)

// harmonyEnds end a message; the last two begin the next one.
var harmonyEnds = []string{"<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"}

const harmonyMessage = "<|message|>"

// header reads what stands before a message:
//
//	<|start|>assistant to=functions.NAME<|channel|>CHANNEL <|constrain|>json<|message|>
//
// of which the prompt has the first part. Text without a header is content.
func (p *Parser) header(final bool) bool {
	rest := strings.TrimLeft(p.buf, white)
	if rest == "" {
		if final {
			p.buf = ""
		}
		return false
	}
	plausible := false
	for _, word := range append([]string{"to=", "assistant", "commentary", "analysis", "final", harmonyMessage, "<|constrain|>"}, harmonyEnds...) {
		yes, maybe := begins(rest, word)
		plausible = plausible || yes || maybe && !final
	}
	head, body, ok := strings.Cut(rest, harmonyMessage)
	const longest = 500
	switch {
	case !plausible || len(head) > longest:
		p.mode, p.sink = inMessage, toContent
		return true
	case !ok && final:
		p.buf = ""
		return false
	case !ok:
		return false
	}
	// A message that ended without a body is over.
	for _, end := range harmonyEnds[:4] {
		if i := strings.LastIndex(head, end); i >= 0 {
			head = head[i+len(end):]
		}
	}
	p.buf = body
	p.mode, p.sink = inMessage, toContent
	_, channel, _ := strings.Cut(head, "<|channel|>")
	_, to, called := strings.Cut(head, "to=")
	switch {
	case called:
		to = strings.TrimPrefix(to, "functions.")
		if end := strings.IndexAny(to, white+"<"); end >= 0 {
			to = to[:end]
		}
		if to != "" {
			p.sink = toCall
			p.emit(Delta{Call: &CallDelta{Index: p.calls, Name: to}})
		}
	case strings.HasPrefix(strings.TrimLeft(channel, white), "analysis"):
		p.sink = toReasoning
		switch {
		case p.inline:
			p.emit(Delta{Content: p.d.ReasoningOpen})
		case p.reasoned:
			p.emit(Delta{Reasoning: "\n"})
		}
		p.reasoned = true
	}
	return true
}

// message reads the text of a message.
func (p *Parser) message(final bool) bool {
	end, mark := find(p.buf, 0, harmonyEnds)
	text := p.buf
	switch {
	case end >= 0:
		text = p.buf[:end]
	case !final:
		text = p.buf[:len(p.buf)-partial(p.buf, harmonyEnds...)]
	}
	if text != "" {
		switch {
		case p.sink == toContent, p.sink == toReasoning && p.inline:
			p.emit(Delta{Content: text})
		case p.sink == toReasoning:
			p.emit(Delta{Reasoning: text})
		case p.sink == toCall:
			p.emit(Delta{Call: &CallDelta{Index: p.calls, Arguments: text}})
		}
	}
	p.buf = p.buf[len(text):]
	if end < 0 {
		return false
	}
	if mark != "<|start|>" && mark != "<|channel|>" {
		p.buf = p.buf[len(mark):]
	}
	switch {
	case p.sink == toCall:
		p.calls++
	case p.sink == toReasoning && p.inline:
		p.emit(Delta{Content: p.d.ReasoningClose})
	}
	p.mode = inHeader
	return true
}
