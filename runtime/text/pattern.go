package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A pattern is a compiled pre-tokenizer expression. The syntax is the part of
// Perl's that published pre-tokenizers use:
//
//	x  [set]  [^set]  \s \S \r \n \p{L} \p{M} \p{N} \p{P} \p{S}    one code point
//	e* e+ e? e{m,n}                                               greedy; e is one code point
//	(?:a|b) (?:a|b)?                                              groups
//	(?!e) $                                                       e is one code point
//
// Inside a set, [\p{L}--a-z] takes what follows -- away. Matching is by
// backtracking, first alternative first; a repeat is one backtracking frame
// however long, so the stack is bounded by the pattern and not by the text.
type pattern struct{ prog []inst }

type opcode uint8

const (
	opMatch opcode = iota
	opSet          // consume min..max code points of set, as many as possible
	opSplit        // go on at the next instruction, on failure at arg
	opJump         // go on at arg
	opNot          // succeed if no code point of set follows
	opEnd          // succeed at the end
)

type inst struct {
	op       opcode
	set      *set
	min, max int
	arg      int
}

const unbounded = 1 << 30

// A set is a set of code points: by class, and by value outside ASCII.
type set struct {
	byClass [256]bool
	ranges  []runeRange
	without []runeRange // what is taken away
	negated bool
}

type runeRange struct{ lo, hi rune }

func (s *set) has(cp rune, c class) bool {
	for _, r := range s.without {
		if r.lo <= cp && cp <= r.hi {
			return s.negated
		}
	}
	if s.byClass[c] {
		return !s.negated
	}
	if c == classSpace {
		return s.negated
	}
	for _, r := range s.ranges {
		if r.lo <= cp && cp <= r.hi {
			return !s.negated
		}
	}
	return s.negated
}

// setNames gives the escapes that stand for several code points. ASCII
// members are written out.
var setNames = map[string]string{
	`\s`:    " \t\n\v\f\r",
	`\p{L}`: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + string(rune(classLetter)),
	`\p{N}`: "0123456789" + string(rune(classNumber)),
	`\p{P}`: "!\"#%&'()*,-./:;?@[\\]_{}" + string(rune(classPunct)),
	`\p{S}`: "$+<=>^`|~" + string(rune(classSymbol)),
	`\p{M}`: string(rune(classMark)),
}

// A frame is a place to go on from when the current path fails: at pc with
// any position from pos down to low.
type frame struct{ pc, pos, low int }

// matching is what matches in a text leave.
type matching struct {
	stack []frame // scratch space
	seen  int     // how many code points of the text all of them looked at; more than it has: also for its end
}

// match returns the end of the match that starts at pos, or -1. The text ends
// at end for all purposes.
func (p *pattern) match(t *runes, pos, end int, m *matching) int {
	s := m.stack[:0]
	pc := 0
	for {
		in := &p.prog[pc]
		ok := true
		switch in.op {
		case opMatch:
			m.stack = s
			return pos
		case opSet:
			stop := pos + min(in.max, end-pos)
			i := pos
			for i < stop && in.set.has(t.cps[i], t.class[i]) {
				i++
			}
			m.seen = max(m.seen, i+1)
			if ok = i-pos >= in.min; ok {
				if i-pos > in.min {
					s = append(s, frame{pc + 1, i - 1, pos + in.min})
				}
				pos = i
			}
			pc++
		case opSplit:
			s = append(s, frame{in.arg, pos, pos})
			pc++
		case opJump:
			pc = in.arg
		case opNot:
			m.seen = max(m.seen, pos+1)
			ok = pos == end || !in.set.has(t.cps[pos], t.class[pos])
			pc++
		case opEnd:
			m.seen = max(m.seen, pos+1)
			ok = pos == end
			pc++
		}
		if ok {
			continue
		}
		if len(s) == 0 {
			m.stack = s
			return -1
		}
		f := &s[len(s)-1]
		pc, pos = f.pc, f.pos
		if f.pos--; f.pos < f.low {
			s = s[:len(s)-1]
		}
	}
}

// next returns where to try after a failure at pos. If an expression begins
// with set+, what follows has been tried at every place in the run of the set,
// so the whole run is skipped; this keeps the search linear.
func (p *pattern) next(t *runes, pos, end int) int {
	start := pos
	// A lone alternative begins with a jump to the second instruction.
	if in := &p.prog[1]; p.prog[0].op == opJump && in.op == opSet && in.min == 1 && in.max == unbounded {
		for pos < end && in.set.has(t.cps[pos], t.class[pos]) {
			pos++
		}
	}
	return max(pos, start+1)
}

func compile(expr string) (*pattern, error) {
	c := &compiler{src: expr}
	c.alternatives()
	c.emit(inst{op: opMatch})
	if c.err == nil && c.src != "" {
		c.fail("unexpected %q", c.src)
	}
	if c.err != nil {
		return nil, fmt.Errorf("pattern %q: %w", expr, c.err)
	}
	return &pattern{c.prog}, nil
}

type compiler struct {
	src  string // what is left of the expression
	prog []inst
	err  error
}

func (c *compiler) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	c.src = ""
}

func (c *compiler) emit(in inst) int {
	c.prog = append(c.prog, in)
	return len(c.prog) - 1
}

func (c *compiler) eat(prefix string) bool {
	rest, ok := strings.CutPrefix(c.src, prefix)
	c.src = rest
	return ok
}

// alternatives compiles a|b|c up to the end or a closing parenthesis.
func (c *compiler) alternatives() {
	var jumps []int
	for {
		split := c.emit(inst{op: opSplit})
		for c.src != "" && c.src[0] != '|' && c.src[0] != ')' {
			c.item()
		}
		if !c.eat("|") {
			// The last alternative has nothing to fall back to.
			c.prog[split] = inst{op: opJump, arg: split + 1}
			break
		}
		jumps = append(jumps, c.emit(inst{op: opJump}))
		c.prog[split].arg = len(c.prog)
	}
	for _, j := range jumps {
		c.prog[j].arg = len(c.prog)
	}
}

func (c *compiler) item() {
	switch {
	case c.eat("(?:"):
		split := c.emit(inst{op: opSplit})
		c.alternatives()
		if !c.eat(")") {
			c.fail("group is not closed")
		}
		if c.eat("?") {
			c.prog[split].arg = len(c.prog)
		} else {
			c.prog[split] = inst{op: opJump, arg: split + 1}
		}
	case c.eat("(?!"):
		c.emit(inst{op: opNot, set: c.one()})
		if !c.eat(")") {
			c.fail("lookahead is not closed")
		}
	case c.eat("$"):
		c.emit(inst{op: opEnd})
	case strings.ContainsRune("(*+?{]}", rune(c.src[0])):
		c.fail("unexpected %q", c.src)
	default:
		in := inst{op: opSet, set: c.one()}
		in.min, in.max = c.quantifier()
		c.emit(in)
	}
}

func (c *compiler) quantifier() (lo, hi int) {
	switch {
	case c.eat("?"):
		return 0, 1
	case c.eat("*"):
		return 0, unbounded
	case c.eat("+"):
		return 1, unbounded
	case c.eat("{"):
		body, rest, ok := strings.Cut(c.src, "}")
		if _, err := fmt.Sscanf(body, "%d,%d", &lo, &hi); err != nil || !ok {
			c.fail("bad repeat {%s}", body)
		}
		c.src = rest
		return lo, hi
	}
	return 1, 1
}

// one compiles an expression for one code point.
func (c *compiler) one() *set {
	s := &set{}
	switch {
	case c.eat("[^"):
		s.negated = true
		c.members(s)
	case c.eat("["):
		c.members(s)
	case c.eat(`\S`):
		c.src = `\s` + c.src
		s.negated = true
		c.member(s, true)
	default:
		c.member(s, true)
	}
	return s
}

func (c *compiler) members(s *set) {
	in := true
	for !c.eat("]") {
		if c.src == "" {
			c.fail("set is not closed")
			return
		}
		if c.eat("--") {
			in = false
		}
		c.member(s, in)
	}
}

// member adds one escape, code point or range to s, or takes it away.
func (c *compiler) member(s *set, in bool) {
	for name, list := range setNames {
		if c.eat(name) {
			for _, r := range list {
				s.byClass[r] = in
			}
			return
		}
	}
	lo := c.char()
	hi := lo
	if strings.HasPrefix(c.src, "-") && !strings.HasPrefix(c.src, "--") && !strings.HasPrefix(c.src, "-]") {
		c.src = c.src[1:]
		hi = c.char()
	}
	if beyond := (runeRange{max(lo, utf8.RuneSelf), hi}); hi >= utf8.RuneSelf && in {
		s.ranges = append(s.ranges, beyond)
	} else if hi >= utf8.RuneSelf {
		s.without = append(s.without, beyond)
	}
	for r := lo; r <= min(hi, utf8.RuneSelf-1); r++ {
		s.byClass[r] = in
	}
}

func (c *compiler) char() rune {
	escaped := c.eat(`\`)
	r, n := utf8.DecodeRuneInString(c.src)
	if n == 0 {
		c.fail("ends early")
		return 0
	}
	c.src = c.src[n:]
	switch {
	case escaped && r == 'r':
		return '\r'
	case escaped && r == 'n':
		return '\n'
	case escaped && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'):
		c.fail("unknown escape \\%c", r)
	}
	return r
}
