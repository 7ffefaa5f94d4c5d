package jinja

import (
	"slices"
	"strings"
)

// parser reads statements by recursive descent; expressions are in expr.go.
type parser struct {
	tokens []token
	next   int
	depth  int
	loops  int // loops around here within the macro
	// uses has, for each macro around here, which of the special names it reads.
	uses []map[string]bool
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokEnd {
		p.next++
	}
	return t
}

func (p *parser) is(kind tokenKind, text string) bool {
	t := p.peek()
	return t.kind == kind && t.text == text
}

func (p *parser) skip(kind tokenKind, text string) bool {
	if p.is(kind, text) {
		p.next++
		return true
	}
	return false
}

func (p *parser) op(text string) bool   { return p.skip(tokOp, text) }
func (p *parser) word(text string) bool { return p.skip(tokName, text) }

func (p *parser) expect(kind tokenKind, text, what string) token {
	t := p.peek()
	if t.kind != kind || text != "" && t.text != text {
		failAt(t.at, "expected %s, got %s", what, describe(t))
	}
	return p.take()
}

func (p *parser) expectOp(text string) { p.expect(tokOp, text, "'"+text+"'") }

func (p *parser) name() token { return p.expect(tokName, "", "a name") }

func describe(t token) string {
	switch t.kind {
	case tokData:
		return "text"
	case tokVarBegin:
		return "'{{'"
	case tokVarEnd:
		return "'}}'"
	case tokBlockBegin:
		return "'{%'"
	case tokBlockEnd:
		return "'%}'"
	case tokString:
		return "a string"
	case tokEnd:
		return "the end of the template"
	}
	return "'" + t.text + "'"
}

// enter guards a recursion: for each call one leave.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		failAt(p.peek().at, "nested deeper than %d", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) template() []stmt {
	body := p.body()
	if t := p.peek(); t.kind != tokEnd {
		failAt(t.at, "unexpected %s", describe(t))
	}
	return body
}

// body reads statements up to a tag that begins with one of ends, whose name
// is then the next token, or up to the end of the source.
func (p *parser) body(ends ...string) []stmt {
	p.enter()
	defer p.leave()
	var out []stmt
	for {
		t := p.peek()
		switch t.kind {
		case tokData:
			p.take()
			out = append(out, &dataStmt{t.text})
		case tokVarBegin:
			p.take()
			out = append(out, &printStmt{p.tuple(true)})
			p.expect(tokVarEnd, "", "'}}'")
		case tokBlockBegin:
			p.take()
			if next := p.peek(); next.kind == tokName && slices.Contains(ends, next.text) {
				return out
			}
			out = append(out, p.statement())
			p.endTag()
		default:
			if len(ends) > 0 {
				failAt(t.at, "the template ends where %s is missing", ends[len(ends)-1])
			}
			return out
		}
	}
}

func (p *parser) endTag() { p.expect(tokBlockEnd, "", "'%}'") }

// block reads the end of a tag, a body and the name of the tag that ends it.
func (p *parser) block(ends ...string) (body []stmt, end string) {
	p.endTag()
	body = p.body(ends...)
	return body, p.take().text
}

// statements has the reader of every tag; the tag's name has been taken.
var statements map[string]func(p *parser, at int) stmt

func init() {
	statements = map[string]func(p *parser, at int) stmt{
		"if":         (*parser).ifStmt,
		"for":        (*parser).forStmt,
		"set":        (*parser).setStmt,
		"macro":      (*parser).macroStmt,
		"call":       (*parser).callStmt,
		"filter":     (*parser).filterStmt,
		"with":       (*parser).withStmt,
		"generation": (*parser).generationStmt,
		"print":      func(p *parser, _ int) stmt { return &printStmt{p.tuple(true)} },
		"break":      func(p *parser, at int) stmt { return p.jump(at, "break", leaveLoop) },
		"continue":   func(p *parser, at int) stmt { return p.jump(at, "continue", nextItem) },
	}
}

// refusedTags are the tags of Jinja2 that are left out, and why.
var refusedTags = map[string]string{
	"import": oneFile, "from": oneFile, "include": oneFile, "extends": oneFile, "block": oneFile,
	"autoescape": "a prompt is no HTML", "do": "values cannot be changed", "trans": "a prompt is not translated",
}

const oneFile = "a chat template is one file"

func (p *parser) statement() stmt {
	t := p.peek()
	read := statements[t.text]
	if why, known := refusedTags[t.text]; known && t.kind == tokName {
		failAt(t.at, "tag %s is not supported: %s", describe(t), why)
	}
	if t.kind != tokName || read == nil {
		failAt(t.at, "unknown tag %s", describe(t))
	}
	p.take()
	return read(p, t.at)
}

func (p *parser) jump(at int, name string, to control) stmt {
	if p.loops == 0 {
		failAt(at, "%s outside of a loop", name)
	}
	return &jumpStmt{to}
}

func (p *parser) ifStmt(int) stmt {
	s := &ifStmt{}
	for {
		cond := p.tuple(false)
		body, end := p.block("elif", "else", "endif")
		s.arms = append(s.arms, arm{cond, body})
		switch end {
		case "elif":
			continue
		case "else":
			s.otherwise, _ = p.block("endif")
		}
		return s
	}
}

func (p *parser) forStmt(at int) stmt {
	s := &forStmt{at: at, target: p.target(false)}
	if !p.word("in") {
		failAt(p.peek().at, "expected 'in', got %s", describe(p.peek()))
	}
	s.over = p.tuple(false)
	if p.word("if") {
		s.test = p.expr()
	}
	s.recursive = p.word("recursive")
	p.loops++
	body, end := p.block("endfor", "else")
	p.loops--
	s.body = body
	if end == "else" {
		s.otherwise, _ = p.block("endfor")
	}
	return s
}

func (p *parser) setStmt(at int) stmt {
	target := p.target(true)
	if p.op("=") {
		return &setStmt{at, target, p.tuple(true)}
	}
	var filters expr
	if p.is(tokOp, "|") {
		filters = p.filters(&captured{})
	}
	body, _ := p.block("endset")
	return &setBlockStmt{at, target, filters, body}
}

// target reads what can be assigned to: names, tuples of them and, where
// attributes are allowed, attributes of namespaces.
func (p *parser) target(attributes bool) target {
	at := p.peek().at
	var out []target
	for {
		out = append(out, p.oneTarget(attributes))
		if !p.op(",") {
			break
		}
		if t := p.peek(); t.kind == tokBlockEnd || t.kind == tokName && t.text == "in" || t.kind == tokOp && t.text != "(" {
			return &tupleTarget{at, out}
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return &tupleTarget{at, out}
}

func (p *parser) oneTarget(attributes bool) target {
	at := p.peek().at
	if p.op("(") {
		p.enter()
		defer p.leave()
		t := p.target(attributes)
		p.expectOp(")")
		return t
	}
	name := p.name()
	switch strings.ToLower(name.text) {
	case "true", "false", "none":
		failAt(name.at, "cannot assign to %s", name.text)
	}
	if attributes && p.op(".") {
		return &attrTarget{at, name.text, p.name().text}
	}
	return &nameTarget{name.text}
}

// signature reads the parameters of a macro.
func (p *parser) signature() (params []param) {
	p.expectOp("(")
	for !p.op(")") {
		if len(params) > 0 {
			p.expectOp(",")
			if p.op(")") {
				break
			}
		}
		t := p.name()
		q := param{name: t.text}
		if p.op("=") {
			q.def = p.expr()
		} else if len(params) > 0 && params[len(params)-1].def != nil {
			failAt(t.at, "parameter %s without a default follows one with a default", t.text)
		}
		params = append(params, q)
	}
	return params
}

// macroBody reads what a macro or a call block runs.
func (p *parser) macroBody(name string, params []param, end string) *macroDef {
	uses := map[string]bool{}
	p.uses = append(p.uses, uses)
	loops := p.loops
	p.loops = 0
	body, _ := p.block(end)
	p.loops = loops
	p.uses = p.uses[:len(p.uses)-1]
	return &macroDef{name: name, params: params, body: body, uses: uses}
}

func (p *parser) macroStmt(int) stmt {
	name := p.name().text
	return &macroStmt{p.macroBody(name, p.signature(), "endmacro")}
}

func (p *parser) callStmt(at int) stmt {
	var params []param
	if p.is(tokOp, "(") {
		params = p.signature()
	}
	c, ok := p.expr().(*callExpr)
	if !ok {
		failAt(at, "expected a call")
	}
	return &callStmt{c, p.macroBody("", params, "endcall")}
}

func (p *parser) filterStmt(int) stmt {
	filters := p.filter(&captured{})
	filters = p.filters(filters)
	body, _ := p.block("endfilter")
	return &filterBlockStmt{filters, body}
}

func (p *parser) withStmt(at int) stmt {
	s := &withStmt{at: at}
	for p.peek().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			p.expectOp(",")
		}
		s.targets = append(s.targets, p.target(false))
		p.expectOp("=")
		s.values = append(s.values, p.expr())
	}
	s.body, _ = p.block("endwith")
	return s
}

// generationStmt reads what marks the parts of a text that a model learns: here
// it is a scope.
func (p *parser) generationStmt(at int) stmt {
	s := &withStmt{at: at}
	loops := p.loops
	p.loops = 0
	s.body, _ = p.block("endgeneration")
	p.loops = loops
	return s
}
