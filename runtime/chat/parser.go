package chat

import (
	"encoding/json"
	"slices"
	"strings"
)

// Delta is what a piece of text adds to the answer.
type Delta struct {
	Reasoning, Content string
	Call               *CallDelta
}

// CallDelta begins a call, with its name and perhaps an id of the model's own,
// or adds to the JSON text of the arguments of the call with this index.
type CallDelta struct {
	Index               int
	ID, Name, Arguments string
}

// Parser takes a model's text apart as it comes. The result does not depend on where the
// text is cut.
type Parser struct {
	d    Dialect
	form *form // nil: no calls
	env  env

	buf  string // what is not decided yet
	mode mode
	out  []Delta

	inline   bool // reasoning is content
	reasoned bool // the answer began with reasoning
	written  bool // the text of this part has begun
	called   bool // the text before this stood in a call
	calls    int

	// Of the call that is being read: the text before it, which counts if it is no call, and
	// how much of it has been given.
	lead      string
	id, named bool
	sent      int

	sink sink // of a message of the harmony form
}

type mode uint8

const (
	atStart   mode = iota // nothing but white space so far
	inThought             // reasoning
	inContent
	inSection // between calls
	inCall
	inHeader // of a message of the harmony form
	inMessage
)

// Parser starts to read an answer. opensThinking says that the prompt has opened
// the reasoning (Dialect.Thinks); without tools, calls are text.
func (d Dialect) Parser(opensThinking bool, toolObjects []json.RawMessage) *Parser {
	p := &Parser{d: d, env: env{tools: readTools(toolObjects)}}
	if len(toolObjects) > 0 || d.Calls == harmonyName {
		p.form = formOf(d.Calls)
	}
	switch {
	case d.Calls == harmonyName && opensThinking:
		p.mode, p.sink = inMessage, toReasoning
	case d.Calls == harmonyName:
		p.mode = inHeader
	case opensThinking && d.ReasoningClose != "":
		p.mode = inThought
		p.reasoned = true
	}
	return p
}

// Inline makes reasoning a part of the content: as the model writes it, between its marks. It comes
// before the first Push.
func (p *Parser) Inline() *Parser {
	p.inline = true
	if p.mode == inThought || p.mode == inMessage {
		p.emit(Delta{Content: p.d.ReasoningOpen})
	}
	return p
}

// Resume makes the text go on a message that has begun. It comes before the first Push.
func (p *Parser) Resume() *Parser {
	p.written = true
	switch p.mode {
	case atStart:
		p.mode = inContent
	case inHeader:
		p.mode, p.sink = inMessage, toContent
	}
	return p
}

// Push takes the next piece of the text and returns what is certain with it.
func (p *Parser) Push(text string) []Delta {
	p.buf += text
	return p.run(false)
}

// Close ends the text and returns the rest.
func (p *Parser) Close() []Delta { return p.run(true) }

func (p *Parser) run(final bool) []Delta {
	for p.step(final) {
	}
	out := p.out
	p.out = nil
	return out
}

// step does what can be done in this mode; false: more text is needed.
func (p *Parser) step(final bool) bool {
	switch p.mode {
	case atStart:
		return p.start(final)
	case inThought:
		return p.thought(final)
	case inContent:
		return p.content(final)
	case inSection:
		return p.section(final)
	case inCall:
		return p.call(final)
	case inHeader:
		return p.header(final)
	}
	return p.message(final)
}

func (p *Parser) emit(d Delta) {
	if d.Call == nil && len(p.out) > 0 {
		if last := &p.out[len(p.out)-1]; last.Call == nil && (d.Content == "") == (last.Content == "") {
			last.Content += d.Content
			last.Reasoning += d.Reasoning
			return
		}
	}
	p.out = append(p.out, d)
}

// start looks whether the answer begins with reasoning, or is a bare call.
func (p *Parser) start(final bool) bool {
	rest := strings.TrimLeft(p.buf, white)
	if rest == "" && !final {
		return false
	}
	if open := p.d.ReasoningOpen; open != "" && !p.reasoned {
		yes, maybe := begins(rest, open)
		if maybe && !final {
			return false
		}
		if yes {
			if p.inline {
				p.emit(Delta{Content: p.buf[:len(p.buf)-len(rest)+len(open)]})
			}
			p.buf = rest[len(open):]
			p.reasoned = true
			p.mode = inThought
			return true
		}
	}
	if p.form != nil && p.form.name == bareName && strings.HasPrefix(rest, "{") {
		p.buf = rest
		p.mode = inCall
		return true
	}
	p.mode = inContent
	return true
}

func (p *Parser) thought(final bool) bool {
	end := p.d.ReasoningClose
	text, rest, closed := strings.Cut(p.buf, end)
	if p.inline {
		if closed {
			p.buf, p.mode = rest, atStart
			text += end
		} else if p.buf = ""; !final {
			n := len(text) - partial(text, end)
			text, p.buf = text[:n], text[n:]
		}
		if text != "" {
			p.emit(Delta{Content: text})
		}
		return closed
	}
	if closed {
		p.reason(strings.TrimRight(text, white))
		p.buf = rest
		p.written = false
		p.mode = atStart
		return true
	}
	if final {
		p.reason(strings.TrimRight(text, white))
		p.buf = ""
		return false
	}
	held := strings.TrimRight(text[:len(text)-partial(text, end)], white)
	p.buf = p.buf[len(held):]
	p.reason(held)
	return false
}

// reason emits reasoning, which begins at the first text that is not white.
func (p *Parser) reason(text string) {
	if !p.written {
		text = strings.TrimLeft(text, white)
	}
	if text != "" {
		p.written = true
		p.emit(Delta{Reasoning: text})
	}
}

// write emits content. White space at the beginning goes if reasoning or a call
// stands before.
func (p *Parser) write(text string) {
	if !p.written && (p.reasoned && !p.inline || p.called) {
		text = strings.TrimLeft(text, white)
	}
	if text != "" {
		p.written = true
		p.emit(Delta{Content: text})
	}
}

// content reads up to the next call. White space before one is not content.
func (p *Parser) content(final bool) bool {
	var marks []string
	if p.form != nil {
		marks = append(append(marks, p.form.opens...), p.form.starts...)
	}
	i, mark := find(p.buf, 0, marks)
	if i >= 0 {
		text := strings.TrimRight(p.buf[:i], white)
		p.write(text)
		p.lead, p.buf = p.buf[len(text):i], p.buf[i:]
		p.mode = inCall
		if slices.Contains(p.form.opens, mark) {
			p.mode = inSection
			p.lead, p.buf = p.lead+mark, p.buf[len(mark):]
		}
		return true
	}
	if final {
		p.write(p.buf)
		p.buf = ""
		return false
	}
	n := len(p.buf) - partial(p.buf, marks...)
	if len(marks) > 0 {
		n = len(strings.TrimRight(p.buf[:n], white))
	}
	text := p.buf[:n]
	p.buf = p.buf[n:]
	p.write(text)
	return false
}

// section reads what stands between calls.
func (p *Parser) section(final bool) bool {
	rest := strings.TrimLeft(p.buf, white+p.form.between)
	if rest == "" {
		if final {
			if p.lead != "" {
				p.write(p.lead + p.buf)
			}
			p.buf = ""
		}
		return false
	}
	for _, end := range p.form.closes {
		yes, maybe := begins(rest, end)
		if maybe && !final {
			return false
		}
		if yes {
			if p.lead != "" { // there was no call
				p.write(p.lead + p.buf[:len(p.buf)-len(rest)] + end)
			}
			p.lead, p.buf = "", rest[len(end):]
			p.mode = inContent
			return true
		}
	}
	for _, open := range p.form.opens {
		yes, maybe := begins(rest, open)
		if maybe && !final {
			return false
		}
		if yes && p.lead == "" {
			p.lead, p.buf = open, rest[len(open):]
			return true
		}
	}
	if p.lead != "" {
		p.lead += p.buf[:len(p.buf)-len(rest)]
	}
	p.buf = rest
	p.mode = inCall
	return true
}

// call reads a call.
func (p *Parser) call(final bool) bool {
	r := p.form.read(p.buf, final, &p.env)
	if r.named {
		p.give(r)
	}
	switch {
	case r.state == done:
		p.buf = p.buf[r.n:]
		p.calls++
		p.called, p.written = true, false
		p.id, p.named, p.sent, p.env.text = false, false, 0, quoter{}
		p.mode = inSection
	case r.state == bad:
		p.notCall()
	case final:
		if !p.named {
			p.write(p.lead + p.buf)
		}
		p.buf = ""
		return false
	default:
		return false
	}
	return true
}

// give emits what is new of a call.
func (p *Parser) give(r reading) {
	var c CallDelta
	if !p.named {
		c.Name = r.name
		p.named = true
		p.lead = ""
	}
	if r.id != "" && !p.id {
		c.ID = r.id
		p.id = true
	}
	if len(r.args) > p.sent {
		c.Arguments = r.args[p.sent:]
		p.sent = len(r.args)
	}
	if c != (CallDelta{}) {
		c.Index = p.calls
		p.emit(Delta{Call: &c})
	}
}

// notCall gives what looked like the beginning of a call back as text.
func (p *Parser) notCall() {
	text := p.lead
	for _, start := range p.form.starts {
		if rest, ok := strings.CutPrefix(p.buf, start); ok {
			text += start
			p.buf = rest
			break
		}
	}
	p.lead = ""
	p.mode = inContent
	p.write(text)
}

// Collect reads a whole text and returns the message that it is.
func Collect(p *Parser, text string) Message {
	m := Message{Role: "assistant"}
	for _, d := range append(p.Push(text), p.Close()...) {
		m.Add(d)
	}
	return m
}

// Add adds a delta to a message.
func (m *Message) Add(d Delta) {
	m.Reasoning += d.Reasoning
	m.Content += d.Content
	if d.Call == nil {
		return
	}
	for len(m.Calls) <= d.Call.Index {
		m.Calls = append(m.Calls, Call{})
	}
	c := &m.Calls[d.Call.Index]
	c.ID += d.Call.ID
	c.Name += d.Call.Name
	c.Arguments += d.Call.Arguments
}
