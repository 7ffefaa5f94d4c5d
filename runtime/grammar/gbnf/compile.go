package gbnf

import (
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// maxInline bounds the size of rules that become a part of the automaton of the rule that uses them.
const maxInline = 4096

// compiler makes symbols of rules. What does not lead back to itself is a regular language and becomes one lexeme.
type compiler struct {
	pool  *lex.Pool
	rules *rules

	size    map[string]int  // of rules without recursion and control tokens; 0: not one of these
	good    map[string]bool // has a text
	empty   map[string]bool // has the empty text
	terms   map[*part]*lex.Term
	symbols map[string]*machine.Symbol
	marks   map[string]machine.Item
}

// Compile makes the grammar of a text. An error is an *Error, or a panic with a *lex.LimitError.
func Compile(pool *lex.Pool, text string) (machine.Item, error) {
	var none machine.Item
	r, err := parse(text)
	if err != nil {
		return none, err
	}
	c := &compiler{pool: pool, rules: r, size: map[string]int{}, good: map[string]bool{}, empty: map[string]bool{},
		terms: map[*part]*lex.Term{}, symbols: map[string]*machine.Symbol{}, marks: map[string]machine.Item{}}
	if r.byName["root"] == nil {
		return none, &Error{Problem: "there is no rule root"}
	}
	for _, name := range r.names {
		if err := c.defined(name, r.byName[name]); err != nil {
			return none, err
		}
	}
	c.fix(c.good, c.hasText)
	c.fix(c.empty, c.hasEmpty)
	if !c.good["root"] {
		return none, &Error{Rule: "root", Problem: "there is no text of it"}
	}
	for _, name := range r.names {
		c.measure(name, map[string]bool{})
	}
	if err := c.leftmost(); err != nil {
		return none, err
	}
	return c.reference("root"), nil
}

// defined looks for rules that are not there.
func (c *compiler) defined(rule string, x *part) error {
	if x.op == opRef && c.rules.byName[x.text] == nil {
		return &Error{Line: x.line, Rule: rule, Problem: "there is no rule " + x.text}
	}
	for _, y := range x.list {
		if err := c.defined(rule, y); err != nil {
			return err
		}
	}
	return nil
}

// fix finds the rules that have a property, which follows from that of others.
func (c *compiler) fix(set map[string]bool, has func(*part) bool) {
	for again := true; again; {
		again = false
		for _, name := range slices.Backward(c.rules.names) {
			if !set[name] && has(c.rules.byName[name]) {
				set[name], again = true, true
			}
		}
	}
}

func (c *compiler) hasText(x *part) bool {
	switch x.op {
	case opSet:
		return len(x.set) > 0
	case opRef:
		return c.good[x.text]
	case opOr:
		return slices.ContainsFunc(x.list, c.hasText)
	case opRepeat:
		return x.lo == 0 || c.hasText(x.list[0])
	}
	return !slices.ContainsFunc(x.list, func(y *part) bool { return !c.hasText(y) })
}

func (c *compiler) hasEmpty(x *part) bool {
	switch x.op {
	case opSet, opMark:
		return false
	case opText:
		return x.text == ""
	case opRef:
		return c.empty[x.text]
	case opOr:
		return slices.ContainsFunc(x.list, c.hasEmpty)
	case opRepeat:
		return x.lo == 0 || c.hasEmpty(x.list[0])
	}
	return !slices.ContainsFunc(x.list, func(y *part) bool { return !c.hasEmpty(y) })
}

// leftmost refuses rules that lead back to themselves before any character.
func (c *compiler) leftmost() error {
	const open, done = 1, 2
	state := map[string]int{}
	var rule func(name string) error
	var walk func(name string, x *part) error
	walk = func(name string, x *part) error {
		switch x.op {
		case opRef:
			if state[x.text] == open {
				return &Error{Line: x.line, Rule: name, Problem: "is left-recursive through " + x.text}
			}
			return rule(x.text)
		case opCat:
			for _, y := range x.list {
				if err := walk(name, y); err != nil {
					return err
				}
				if !c.hasEmpty(y) {
					break
				}
			}
			return nil
		case opRepeat:
			if x.hi < 0 && c.hasEmpty(x.list[0]) && c.measurePart(x, map[string]bool{}) == 0 {
				return &Error{Line: x.line, Rule: name, Problem: "repeats without end what may be empty"}
			}
		}
		for _, y := range x.list {
			if err := walk(name, y); err != nil {
				return err
			}
		}
		return nil
	}
	rule = func(name string) error {
		if state[name] != 0 {
			return nil
		}
		state[name] = open
		err := walk(name, c.rules.byName[name])
		state[name] = done
		return err
	}
	for _, name := range c.rules.names {
		if err := rule(name); err != nil {
			return err
		}
	}
	return nil
}

// measure returns how large a rule is with those that it uses, 0 if it leads back to itself or is too large.
func (c *compiler) measure(name string, open map[string]bool) int {
	if n, ok := c.size[name]; ok {
		return n
	}
	if open[name] {
		return 0
	}
	open[name] = true
	n := c.measurePart(c.rules.byName[name], open)
	delete(open, name)
	c.size[name] = n
	return n
}

func (c *compiler) measurePart(x *part, open map[string]bool) int {
	switch x.op {
	case opMark:
		return 0
	case opRef:
		return c.measure(x.text, open)
	}
	n := 1 + len(x.text)
	for _, y := range x.list {
		m := c.measurePart(y, open)
		if m == 0 {
			return 0
		}
		n += m
	}
	if n > maxInline {
		return 0
	}
	return n
}

// term returns a part as a regular language; nil if it is none.
func (c *compiler) term(x *part) *lex.Term {
	if t, ok := c.terms[x]; ok {
		return t
	}
	t := c.makeTerm(x)
	c.terms[x] = t
	return t
}

func (c *compiler) makeTerm(x *part) *lex.Term {
	switch x.op {
	case opSet:
		return c.pool.Set(x.set)
	case opText:
		return c.pool.Text(x.text)
	case opMark:
		return nil
	case opRef:
		if c.size[x.text] == 0 {
			return nil
		}
		return c.term(c.rules.byName[x.text])
	}
	list := make([]*lex.Term, len(x.list))
	for i, y := range x.list {
		if list[i] = c.term(y); list[i] == nil {
			return nil
		}
	}
	switch x.op {
	case opOr:
		return c.pool.Or(list...)
	case opRepeat:
		return c.pool.Repeat(list[0], x.lo, x.hi)
	}
	return c.pool.Cat(list...)
}

// lexeme is the item of a regular language.
func (c *compiler) lexeme(t *lex.Term) machine.Item {
	l := lex.NewLexer(lex.UTF8{Runes: lex.Terms{Pool: c.pool}})
	return machine.Lexeme(l, l.State(lex.Begin(t)))
}

func (c *compiler) reference(name string) machine.Item {
	s := c.symbols[name]
	if s == nil {
		body := c.rules.byName[name]
		s = machine.NewSymbol(func() [][]machine.Item { return c.sequences(body) })
		c.symbols[name] = s
	}
	return machine.Of(s)
}

// sequences returns what a part stands for.
func (c *compiler) sequences(x *part) (out [][]machine.Item) {
	if !c.hasText(x) {
		return nil
	}
	if t := c.term(x); t != nil {
		return [][]machine.Item{{c.lexeme(t)}}
	}
	switch x.op {
	case opOr:
		for _, y := range x.list {
			out = append(out, c.sequences(y)...)
		}
		return out
	case opCat:
		return [][]machine.Item{c.items(x.list)}
	}
	return [][]machine.Item{c.items([]*part{x})}
}

// items returns the items of parts behind each other. Neighbours that are regular become one lexeme.
func (c *compiler) items(list []*part) (out []machine.Item) {
	var run []*lex.Term
	flush := func() {
		if len(run) > 0 {
			out = append(out, c.lexeme(c.pool.Cat(run...)))
			run = nil
		}
	}
	for _, x := range list {
		if t := c.term(x); t != nil {
			run = append(run, t)
			continue
		}
		flush()
		switch x.op {
		case opRef:
			out = append(out, c.reference(x.text))
		case opMark:
			out = append(out, c.mark(x.text))
		case opRepeat:
			out = append(out, machine.Of(c.repeat(x)))
		default:
			out = append(out, machine.Of(machine.NewSymbol(func() [][]machine.Item { return c.sequences(x) })))
		}
	}
	flush()
	return out
}

func (c *compiler) mark(text string) machine.Item {
	item, ok := c.marks[text]
	if !ok {
		l := lex.NewLexer(lex.Marker(text))
		item = machine.Lexeme(l, l.State(lex.Key{}))
		c.marks[text] = item
	}
	return item
}

// repeat is the symbol of a repetition.
func (c *compiler) repeat(x *part) *machine.Symbol {
	inner := machine.Of(machine.NewSymbol(func() [][]machine.Item { return c.sequences(x.list[0]) }))
	lo := x.lo
	made := map[int]*machine.Symbol{}
	var from func(n int) *machine.Symbol
	from = func(n int) *machine.Symbol {
		if x.hi < 0 {
			n = min(n, lo)
		}
		s := made[n]
		if s == nil {
			s = machine.NewSymbol(func() (out [][]machine.Item) {
				if n >= lo {
					out = append(out, nil)
				}
				if (x.hi < 0 || n < x.hi) && c.hasText(x.list[0]) {
					out = append(out, []machine.Item{inner, machine.Of(from(n + 1))})
				}
				return out
			})
			made[n] = s
		}
		return s
	}
	return from(0)
}
