package jinja

import (
	"strconv"
	"strings"
)

// expr reads an expression. Operators of one level form a list, so that only
// brackets, conditions and prefixes nest.
func (p *parser) expr() expr {
	p.enter()
	defer p.leave()
	e := p.or()
	for n := 0; p.is(tokName, "if"); n++ {
		p.bound(n, p.take())
		c := &condExpr{yes: e, cond: p.or()}
		if p.word("else") {
			c.no = p.expr()
		}
		c.at = p.tokens[p.next-1].at
		e = c
	}
	return e
}

// tuple reads an expression, or several with commas between. In the tags
// where an if may follow, an expression is not a condition.
func (p *parser) tuple(conditions bool) expr {
	read := p.expr
	if !conditions {
		read = func() expr {
			p.enter()
			defer p.leave()
			return p.or()
		}
	}
	first := read()
	if !p.is(tokOp, ",") {
		return first
	}
	t := &listExpr{kind: kindTuple, items: []expr{first}}
	for p.op(",") {
		if p.tupleEnds() {
			break
		}
		t.items = append(t.items, read())
	}
	return t
}

func (p *parser) tupleEnds() bool {
	t := p.peek()
	return t.kind == tokVarEnd || t.kind == tokBlockEnd || t.kind == tokOp && t.text == ")" ||
		t.kind == tokName && (t.text == "recursive" || t.text == "if")
}

func (p *parser) or() expr {
	first := p.and()
	if !p.is(tokName, "or") {
		return first
	}
	e := &logicExpr{until: true, items: []expr{first}}
	for p.word("or") {
		e.items = append(e.items, p.and())
	}
	return e
}

func (p *parser) and() expr {
	first := p.not()
	if !p.is(tokName, "and") {
		return first
	}
	e := &logicExpr{until: false, items: []expr{first}}
	for p.word("and") {
		e.items = append(e.items, p.not())
	}
	return e
}

func (p *parser) not() expr {
	if p.word("not") {
		p.enter()
		defer p.leave()
		return &notExpr{p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	first := p.sum()
	var rest []operand
	for {
		t := p.peek()
		op := t.text
		switch {
		case t.kind == tokOp && (op == "==" || op == "!=" || op == "<" || op == "<=" || op == ">" || op == ">="):
			p.take()
		case p.word("in"):
		case op == "not" && t.kind == tokName && p.tokens[p.next+1].text == "in" && p.tokens[p.next+1].kind == tokName:
			p.next += 2
			op = "not in"
		case len(rest) > 0:
			return &compareExpr{first, rest}
		default:
			return first
		}
		rest = append(rest, operand{t.at, op, p.sum()})
	}
}

// chain reads operators of one level.
func (p *parser) chain(read func() expr, ops ...string) expr {
	first := read()
	var rest []operand
	for {
		t := p.peek()
		found := false
		for _, op := range ops {
			found = found || t.kind == tokOp && t.text == op
		}
		if !found {
			break
		}
		p.take()
		rest = append(rest, operand{t.at, t.text, read()})
	}
	if rest == nil {
		return first
	}
	return &mathExpr{first, rest}
}

func (p *parser) sum() expr { return p.chain(p.concat, "+", "-") }

func (p *parser) concat() expr {
	first := p.product()
	if !p.is(tokOp, "~") {
		return first
	}
	e := &concatExpr{items: []expr{first}}
	for p.op("~") {
		e.items = append(e.items, p.product())
	}
	return e
}

func (p *parser) product() expr { return p.chain(p.power, "*", "/", "//", "%") }

func (p *parser) power() expr {
	return p.chain(func() expr { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) expr {
	var e expr
	t := p.peek()
	if p.op("-") || p.op("+") {
		p.enter()
		e = &signExpr{t.at, t.text == "-", p.unary(false)}
		p.leave()
	} else {
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filters(e)
	}
	return e
}

func (p *parser) primary() expr {
	t := p.peek()
	switch t.kind {
	case tokName:
		p.take()
		switch t.text {
		case "true", "True":
			return &constExpr{true}
		case "false", "False":
			return &constExpr{false}
		case "none", "None":
			return &constExpr{nil}
		}
		for _, u := range p.uses {
			u[t.text] = true
		}
		return &nameExpr{t.at, t.text}
	case tokString:
		var text strings.Builder
		for p.peek().kind == tokString {
			text.WriteString(p.take().text)
		}
		return &constExpr{own(text.String())}
	case tokInt:
		p.take()
		i, _ := strconv.ParseInt(t.text, 10, 64)
		return &constExpr{i}
	case tokFloat:
		p.take()
		f, _ := strconv.ParseFloat(t.text, 64)
		return &constExpr{f}
	case tokOp:
		switch t.text {
		case "(":
			return p.parens()
		case "[":
			p.take()
			return &listExpr{kind: kindList, items: p.items("]")}
		case "{":
			return p.dict()
		}
	}
	failAt(t.at, "unexpected %s", describe(t))
	return nil
}

func (p *parser) parens() expr {
	p.take()
	if p.op(")") {
		return &listExpr{kind: kindTuple}
	}
	e := p.tuple(true)
	p.expectOp(")")
	return e
}

func (p *parser) items(end string) (items []expr) {
	for !p.op(end) {
		if len(items) > 0 {
			p.expectOp(",")
			if p.op(end) {
				break
			}
		}
		items = append(items, p.expr())
	}
	return items
}

func (p *parser) dict() expr {
	d := &dictExpr{at: p.take().at}
	for !p.op("}") {
		if len(d.keys) > 0 {
			p.expectOp(",")
			if p.op("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expr())
		p.expectOp(":")
		d.values = append(d.values, p.expr())
	}
	return d
}

// postfix reads attributes, subscripts and calls. A run of them nests, so it is
// bounded, too.
func (p *parser) postfix(e expr) expr {
	for n := 0; ; n++ {
		t := p.peek()
		if t.kind != tokOp || t.text != "." && t.text != "[" && t.text != "(" {
			return e
		}
		p.bound(n, t)
		e = p.postfixOf(e, t)
	}
}

func (p *parser) bound(n int, t token) {
	if n > maxDepth {
		failAt(t.at, "nested deeper than %d", maxDepth)
	}
}

func (p *parser) postfixOf(e expr, t token) expr {
	switch t.text {
	case ".":
		p.take()
		name := p.take()
		switch name.kind {
		case tokName:
			return &attrExpr{name.at, e, name.text}
		case tokInt:
			i, _ := strconv.ParseInt(name.text, 10, 64)
			return &itemExpr{name.at, e, &constExpr{i}}
		}
		failAt(name.at, "expected a name or a number, got %s", describe(name))
	case "[":
		p.take()
		return p.subscript(e, t.at)
	}
	return p.call(e)
}

func (p *parser) subscript(e expr, at int) expr {
	var parts [3]expr
	slice := false
	for i := range parts {
		if t := p.peek(); !(t.kind == tokOp && (t.text == ":" || t.text == "]")) {
			parts[i] = p.expr()
		}
		if i == 2 || !p.op(":") {
			break
		}
		slice = true
	}
	if !slice {
		if parts[0] == nil {
			failAt(at, "an index is missing")
		}
		if p.is(tokOp, ",") {
			t := &listExpr{kind: kindTuple, items: []expr{parts[0]}}
			for p.op(",") {
				t.items = append(t.items, p.expr())
			}
			parts[0] = t
		}
		p.expectOp("]")
		return &itemExpr{at, e, parts[0]}
	}
	p.expectOp("]")
	return &sliceExpr{at, e, parts}
}

func (p *parser) call(fn expr) expr {
	c := &callExpr{at: p.peek().at, fn: fn}
	c.args = p.args()
	return c
}

func (p *parser) args() (a argList) {
	open := p.peek()
	p.expectOp("(")
	bad := func(bad bool) {
		if bad {
			failAt(open.at, "invalid syntax for function call expression")
		}
	}
	for n := 0; !p.op(")"); n++ {
		if n > 0 {
			p.expectOp(",")
			if p.op(")") {
				break
			}
		}
		t := p.peek()
		switch {
		case p.op("*"):
			bad(a.rest != nil || a.restNamed != nil)
			a.rest = p.expr()
		case p.op("**"):
			bad(a.restNamed != nil)
			a.restNamed = p.expr()
		case t.kind == tokName && p.tokens[p.next+1].kind == tokOp && p.tokens[p.next+1].text == "=":
			bad(a.restNamed != nil)
			p.next += 2
			a.names = append(a.names, t.text)
			a.named = append(a.named, p.expr())
		default:
			bad(a.rest != nil || a.restNamed != nil || len(a.named) > 0)
			a.plain = append(a.plain, p.expr())
		}
	}
	return a
}

// filters reads filters, tests and the calls behind them.
func (p *parser) filters(e expr) expr {
	for n := 0; ; n++ {
		t := p.peek()
		p.bound(n, t)
		switch {
		case p.op("|"):
			e = p.filter(e)
		case p.word("is"):
			e = p.test(e)
		case p.is(tokOp, "("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) dotted() string {
	name := p.name().text
	for n := 0; p.op("."); n++ {
		p.bound(n, p.peek())
		name += "." + p.name().text
	}
	return name
}

func (p *parser) filter(e expr) expr {
	f := &filterExpr{at: p.peek().at, of: e, name: p.dotted()}
	if p.is(tokOp, "(") {
		f.args = p.args()
	}
	return f
}

func (p *parser) test(e expr) expr {
	not := p.word("not")
	at := p.peek().at
	t := &testExpr{at: at, of: e, name: p.dotted()}
	next := p.peek()
	switch {
	case p.is(tokOp, "("):
		t.args = p.args()
	case next.kind == tokString, next.kind == tokInt, next.kind == tokFloat, p.is(tokOp, "["), p.is(tokOp, "{"),
		next.kind == tokName && next.text != "else" && next.text != "or" && next.text != "and":
		if next.text == "is" && next.kind == tokName {
			failAt(next.at, "tests cannot be chained with is")
		}
		p.enter()
		t.args.plain = []expr{p.postfix(p.primary())}
		p.leave()
	}
	if not {
		return &notExpr{t}
	}
	return t
}
