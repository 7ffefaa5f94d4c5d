package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads .zir text and verifies the program. Errors name the line.
func Parse(text string) (*Program, error) {
	ps := &parser{src: text, line: 1, globals: map[string]*Value{}}
	p, err := ps.program()
	if err != nil {
		return nil, fmt.Errorf("zir line %d: %w", ps.line, err)
	}
	if err := Verify(p); err != nil {
		return nil, err
	}
	return p, nil
}

type parser struct {
	src     string
	pos     int
	line    int
	globals map[string]*Value
	locals  map[int]*Value
}

func (ps *parser) program() (*Program, error) {
	p := &Program{}
	if err := ps.expect("zir", "1", "stage"); err != nil {
		return nil, err
	}
	stage, ok := ParseStage(ps.peek())
	if !ok {
		return nil, fmt.Errorf("unknown stage %q", ps.peek())
	}
	ps.next()
	p.Stage = stage
	if err := ps.expect("model"); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		key string
		dst *string
	}{{"arch", &p.Arch}, {"name", &p.Name}, {"path", &p.Path}, {"source", &p.Source}, {"target", &p.Target}} {
		if err := ps.expect(f.key, "="); err != nil {
			return nil, err
		}
		s, err := ps.quoted()
		if err != nil {
			return nil, err
		}
		*f.dst = s
	}
	for _, f := range []struct {
		key string
		dst *int
	}{{"ctx", &p.Ctx}, {"slots", &p.Slots}, {"layers", &p.Layers}} {
		n, err := ps.field(f.key)
		if err != nil {
			return nil, err
		}
		*f.dst = n
	}
	for ps.peek() != "" && ps.peek() != "func" {
		g, err := ps.global()
		if err != nil {
			return nil, err
		}
		if ps.globals[g.Name] != nil {
			return nil, fmt.Errorf("global @%s declared twice", g.Name)
		}
		ps.globals[g.Name] = g
		p.Globals = append(p.Globals, g)
	}
	for ps.peek() != "" {
		f, err := ps.function()
		if err != nil {
			return nil, err
		}
		p.Funcs = append(p.Funcs, f)
	}
	return p, nil
}

func (ps *parser) global() (*Value, error) {
	class, ok := parseClass(ps.next())
	if !ok {
		return nil, fmt.Errorf("want a storage class or func")
	}
	name, err := ps.globalRef()
	if err != nil {
		return nil, err
	}
	attrs, err := ps.attrs()
	if err != nil {
		return nil, err
	}
	if err := ps.expect(":"); err != nil {
		return nil, err
	}
	g := &Value{Name: name, Class: class, Attrs: attrs, Offset: -1}
	if g.Type, err = ps.typ(); err != nil || ps.peek() != "as" {
		return g, err
	}
	ps.next()
	if g.Layout = ps.next(); g.Layout == "" || !isWord(g.Layout[0]) {
		return nil, fmt.Errorf("@%s: want the name of a layout, have %q", name, g.Layout)
	}
	return g, nil
}

func (ps *parser) globalRef() (string, error) {
	if err := ps.expect("@"); err != nil {
		return "", err
	}
	if strings.HasPrefix(ps.peek(), `"`) {
		return ps.quoted()
	}
	name := ps.next()
	if name == "" || !isWord(name[0]) {
		return "", fmt.Errorf("want a name after @, have %q", name)
	}
	return name, nil
}

func (ps *parser) function() (*Func, error) {
	if err := ps.expect("func"); err != nil {
		return nil, err
	}
	name, err := ps.quoted()
	if err != nil {
		return nil, err
	}
	rows, err := ps.field("rows")
	if err != nil {
		return nil, err
	}
	f := &Func{Name: name, Rows: rows}
	if err := ps.expect("sequences", "="); err != nil {
		return nil, err
	}
	var ok bool
	if f.Sequences, ok = ParseSequences(ps.next()); !ok {
		return nil, fmt.Errorf("func %q: want sequences=one or many", name)
	}
	if f.Run, err = ps.field("run"); err != nil {
		return nil, err
	}
	if err := ps.expect("class", "="); err != nil {
		return nil, err
	}
	if f.Class, ok = ParseStepClass(ps.next()); !ok {
		return nil, fmt.Errorf("func %q: want class=exact, prompt or alike", name)
	}
	if ps.peek() == "part" {
		if f.Part, err = ps.field("part"); err != nil {
			return nil, err
		}
	}
	ps.locals = map[int]*Value{}
	if err := ps.expect("{"); err != nil {
		return nil, err
	}
	for ps.peek() != "}" {
		var g *Group
		if ps.peek() == "group" {
			g, err = ps.group()
		} else {
			var op *Op
			op, err = ps.op()
			g = &Group{Ops: []*Op{op}}
		}
		if err != nil {
			return nil, err
		}
		f.Groups = append(f.Groups, g)
	}
	return f, ps.expect("}")
}

func (ps *parser) group() (*Group, error) {
	if err := ps.expect("group"); err != nil {
		return nil, err
	}
	name, err := ps.quoted()
	if err != nil {
		return nil, err
	}
	g := &Group{Name: name}
	if g.Order, err = ps.order(); err != nil {
		return nil, err
	}
	if err := ps.expect("{"); err != nil {
		return nil, err
	}
	var callArgs []string
	if ps.peek() == "call" {
		if g.Call, callArgs, err = ps.call(); err != nil {
			return nil, err
		}
	}
	for ps.peek() != "}" {
		op, err := ps.op()
		if err != nil {
			return nil, err
		}
		g.Ops = append(g.Ops, op)
	}
	// A call names results of its own ops, so it is resolved after them.
	for _, a := range callArgs {
		v, err := ps.resolve(a)
		if err != nil {
			return nil, err
		}
		g.Call.Args = append(g.Call.Args, v)
	}
	return g, ps.expect("}")
}

// order reads what Order.String writes.
func (ps *parser) order() (o Order, err error) {
	if o.Stage, err = ps.field("stage"); err != nil {
		return o, err
	}
	if o.Waits, err = ps.field("waits"); err != nil {
		return o, err
	}
	if ps.peek() == "queue" {
		if o.Queue, err = ps.field("queue"); err == nil && o.Queue == 0 {
			err = fmt.Errorf("queue 0 is not written")
		}
	}
	if err == nil {
		o.Early, err = ps.early("early")
	}
	return o, err
}

func (ps *parser) call() (*Call, []string, error) {
	c := &Call{}
	var err error
	if err = ps.expect("call"); err != nil {
		return nil, nil, err
	}
	if c.Candidate, err = ps.quoted(); err != nil {
		return nil, nil, err
	}
	if err = ps.expect("kernel", "="); err != nil {
		return nil, nil, err
	}
	if c.Kernel, err = ps.quoted(); err != nil {
		return nil, nil, err
	}
	if c.Wave, err = ps.field("wave"); err != nil {
		return nil, nil, err
	}
	if err = ps.expect("grid", "=", "["); err != nil {
		return nil, nil, err
	}
	for i := range c.Grid {
		if i > 0 {
			if err = ps.expect(","); err != nil {
				return nil, nil, err
			}
		}
		if c.Grid[i], err = ps.integer(); err != nil {
			return nil, nil, err
		}
	}
	if err = ps.expect("]", "const", "=", "{"); err != nil {
		return nil, nil, err
	}
	if c.Consts, err = ps.consts(); err != nil {
		return nil, nil, err
	}
	if err = ps.expect("}", "args", "=", "["); err != nil {
		return nil, nil, err
	}
	args, err := ps.refs()
	if err != nil {
		return nil, nil, err
	}
	if err = ps.expect("]"); err != nil {
		return nil, nil, err
	}
	if ps.peek() == "sums" {
		ps.next()
		if err = ps.expect("="); err != nil {
			return nil, nil, err
		}
		if c.Sums, err = ps.quoted(); err != nil {
			return nil, nil, err
		}
	}
	if err = ps.decided(c); err != nil {
		return nil, nil, err
	}
	if err = ps.expect("why", "="); err != nil {
		return nil, nil, err
	}
	c.Why, err = ps.quoted()
	return c, args, err
}

// consts reads "name=value, ..." up to a brace.
func (ps *parser) consts() (list []Const, err error) {
	for ps.peek() != "}" {
		if len(list) > 0 {
			if err = ps.expect(","); err != nil {
				return nil, err
			}
		}
		name := ps.next()
		if name == "" || !isWord(name[0]) {
			return nil, fmt.Errorf("want a constant's name, have %q", name)
		}
		if err = ps.expect("="); err != nil {
			return nil, err
		}
		k, err := parseConst(name, ps.next())
		if err != nil {
			return nil, fmt.Errorf("constant %s: %w", name, err)
		}
		list = append(list, k)
	}
	return list, nil
}

// refs reads the names of values, up to a bracket.
func (ps *parser) refs() (list []string, err error) {
	for ps.peek() != "]" {
		if len(list) > 0 {
			if err = ps.expect(","); err != nil {
				return nil, err
			}
		}
		ref, err := ps.ref()
		if err != nil {
			return nil, err
		}
		list = append(list, ref)
	}
	return list, nil
}

// decided reads what printDecided writes.
func (ps *parser) decided(c *Call) (err error) {
	for _, f := range c.Form.fields() {
		if ps.peek() != f.name {
			continue
		}
		if *f.n, err = ps.field(f.name); err == nil && *f.n == 0 {
			err = fmt.Errorf("%s=0 is not written", f.name)
		}
		if err != nil {
			return err
		}
	}
	if c.Overlap.Waits, err = ps.early("overlap"); err != nil {
		return err
	}
	if ps.peek() == "loads" {
		if err = ps.expect("loads", "=", "["); err != nil {
			return err
		}
		for more := true; more; {
			n, err := ps.integer()
			if err != nil {
				return err
			}
			c.Overlap.Loads = append(c.Overlap.Loads, n)
			if more = ps.peek() == ","; more {
				ps.next()
			}
		}
		if err = ps.expect("]"); err != nil {
			return err
		}
	}
	if c.Overlap.LateTrigger = ps.peek() == "trigger"; c.Overlap.LateTrigger {
		err = ps.expect("trigger", "=", "late")
	}
	return err
}

// early reads "key=waits" or "key=loads", if it is there.
func (ps *parser) early(key string) (Early, error) {
	if ps.peek() != key {
		return NotEarly, nil
	}
	if err := ps.expect(key, "="); err != nil {
		return NotEarly, err
	}
	e := Early(ps.next())
	if e == NotEarly || !e.known() {
		return e, fmt.Errorf("want %s=waits or loads", key)
	}
	return e, nil
}

// ref reads "%7" or "@name" and returns it with the name unquoted.
func (ps *parser) ref() (string, error) {
	if ps.peek() == "%" {
		ps.next()
		return "%" + ps.next(), nil
	}
	name, err := ps.globalRef()
	return "@" + name, err
}

func (ps *parser) resolve(ref string) (*Value, error) {
	if ref[0] == '@' {
		if v := ps.globals[ref[1:]]; v != nil {
			return v, nil
		}
	} else if id, err := strconv.Atoi(ref[1:]); err == nil {
		if v := ps.locals[id]; v != nil && "%"+strconv.Itoa(id) == ref {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%s is not defined", ref)
}

func (ps *parser) op() (*Op, error) {
	op := &Op{}
	id := -1
	if ps.peek() == "%" {
		ps.next()
		var err error
		if id, err = ps.integer(); err != nil {
			return nil, err
		}
		if ps.locals[id] != nil {
			return nil, fmt.Errorf("%%%d defined twice", id)
		}
		if err = ps.expect("="); err != nil {
			return nil, err
		}
	}
	name := ps.next()
	if op.Kind = LookupOp(name); op.Kind == nil {
		return nil, fmt.Errorf("unknown op %q", name)
	}
	for more := true; more; {
		ref, err := ps.ref()
		if err != nil {
			return nil, err
		}
		v, err := ps.resolve(ref)
		if err != nil {
			return nil, err
		}
		op.Args = append(op.Args, v)
		if more = ps.peek() == ","; more {
			ps.next()
		}
	}
	var err error
	if op.Attrs, err = ps.attrs(); err != nil {
		return nil, err
	}
	if id < 0 {
		return op, nil
	}
	if err := ps.expect(":"); err != nil {
		return nil, err
	}
	r := &Value{ID: id, Def: op, Offset: -1}
	if c, ok := parseClass(ps.peek()); ok {
		ps.next()
		r.Class = c
		if c == Arena {
			return nil, fmt.Errorf("class arena is the default and is not written")
		}
	}
	if r.Type, err = ps.typ(); err != nil {
		return nil, err
	}
	if ps.peek() == "at" {
		ps.next()
		n, err := strconv.ParseUint(ps.next(), 10, 62)
		if err != nil {
			return nil, fmt.Errorf("offset: %w", err)
		}
		r.Offset = int64(n)
	}
	op.Result = r
	ps.locals[id] = r
	return op, nil
}

func (ps *parser) typ() (Type, error) {
	name := ps.next()
	d, ok := ParseDType(name)
	if !ok {
		return Type{}, fmt.Errorf("unknown dtype %q", name)
	}
	t := Type{DType: d}
	if err := ps.expect("["); err != nil {
		return Type{}, err
	}
	for ps.peek() != "]" {
		if len(t.Shape) > 0 {
			if err := ps.expect(","); err != nil {
				return Type{}, err
			}
		}
		switch tok := ps.next(); tok {
		case "T":
			t.Shape = append(t.Shape, T)
		case "L":
			t.Shape = append(t.Shape, L)
		default:
			n, err := strconv.ParseUint(tok, 10, 62)
			if err != nil || n == 0 {
				return Type{}, fmt.Errorf("bad dim %q", tok)
			}
			t.Shape = append(t.Shape, Dim(n))
		}
	}
	if len(t.Shape) == 0 {
		return Type{}, fmt.Errorf("type without dims")
	}
	return t, ps.expect("]")
}

func (ps *parser) attrs() (Attrs, error) {
	if ps.peek() != "{" {
		return nil, nil
	}
	ps.next()
	var attrs Attrs
	for ps.peek() != "}" {
		if len(attrs) > 0 {
			if err := ps.expect(","); err != nil {
				return nil, err
			}
		}
		name := ps.next()
		if name == "" || !isWord(name[0]) {
			return nil, fmt.Errorf("want an attribute's name, have %q", name)
		}
		if err := ps.expect("="); err != nil {
			return nil, err
		}
		v, err := ps.attrValue()
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		attrs = append(attrs, Attr{name, v})
	}
	if len(attrs) == 0 {
		return nil, fmt.Errorf("empty attribute list")
	}
	return attrs, ps.expect("}")
}

func (ps *parser) attrValue() (any, error) {
	switch tok := ps.peek(); {
	case strings.HasPrefix(tok, `"`):
		return ps.quoted()
	case tok == "[":
		ps.next()
		list := []float64{}
		for ps.peek() != "]" {
			if len(list) > 0 {
				if err := ps.expect(","); err != nil {
					return nil, err
				}
			}
			f, err := strconv.ParseFloat(ps.next(), 64)
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		return list, ps.expect("]")
	case strings.ContainsAny(tok, ".einI"):
		return strconv.ParseFloat(ps.next(), 64)
	}
	return strconv.ParseInt(ps.next(), 10, 64)
}

// field reads "key=number".
func (ps *parser) field(key string) (int, error) {
	if err := ps.expect(key, "="); err != nil {
		return 0, err
	}
	return ps.integer()
}

func (ps *parser) integer() (int, error) {
	n, err := strconv.ParseUint(ps.next(), 10, 31)
	return int(n), err
}

func (ps *parser) quoted() (string, error) {
	s, err := strconv.Unquote(ps.peek())
	if err != nil || ps.peek()[0] != '"' {
		return "", fmt.Errorf("want a quoted string, have %q", ps.peek())
	}
	ps.next()
	return s, nil
}

func (ps *parser) expect(toks ...string) error {
	for _, want := range toks {
		if have := ps.peek(); have != want {
			return fmt.Errorf("want %q, have %q", want, have)
		}
		ps.next()
	}
	return nil
}

// peek returns the next token without consuming it; "" at the end.
func (ps *parser) peek() string {
	pos, line := ps.pos, ps.line
	tok := ps.next()
	ps.pos, ps.line = pos, line
	return tok
}

func (ps *parser) next() string {
	for ps.pos < len(ps.src) && (ps.src[ps.pos] == ' ' || ps.src[ps.pos] == '\n') {
		if ps.src[ps.pos] == '\n' {
			ps.line++
		}
		ps.pos++
	}
	start := ps.pos
	if start == len(ps.src) {
		return ""
	}
	switch c := ps.src[start]; {
	case c == '"':
		for ps.pos++; ps.pos < len(ps.src) && ps.src[ps.pos] != '"' && ps.src[ps.pos] != '\n'; ps.pos++ {
			if ps.src[ps.pos] == '\\' {
				ps.pos++
			}
		}
		ps.pos = min(ps.pos+1, len(ps.src))
	case isWord(c) || c == '+':
		for ps.pos < len(ps.src) && (isWord(ps.src[ps.pos]) || ps.src[ps.pos] == '+') {
			ps.pos++
		}
	default:
		ps.pos++
	}
	return ps.src[start:ps.pos]
}

// parseConst is the inverse of Const.String.
func parseConst(name, value string) (Const, error) {
	if strings.ContainsAny(value, ".e") {
		v, err := strconv.ParseFloat(value, 32)
		return FloatConst(name, v), err
	}
	v, err := strconv.ParseUint(value, 10, 32)
	return Const{Name: name, Value: uint32(v)}, err
}
