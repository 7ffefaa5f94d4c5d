package ecma

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Valid says whether a text is a pattern of ECMAScript, with the flag u, whether its language is supported or not.
func Valid(pattern string) bool {
	p := &parser{syntax: true}
	_, err := p.whole(pattern)
	for _, name := range p.named {
		if !slices.Contains(p.names, name) {
			return false
		}
	}
	return err == nil && p.highest <= p.captures
}

// look reads a group that stands for no text.
func (p *parser) look(not, behind bool) (*ast, error) {
	a := &ast{op: opLook, asserts: true, not: not, behind: behind, at: p.at}
	var err error
	if a.sub, err = p.alternatives(); err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, p.fail("a ( without a )")
	}
	if !behind || p.syntax {
		return a, nil
	}
	list := []*ast{a.sub}
	if a.sub.op == opOr {
		list = a.sub.list
	}
	for _, s := range list {
		for s.op == opCat && len(s.list) == 1 {
			s = s.list[0]
		}
		switch s.op {
		case opSet:
			a.set = a.set.Or(s.set)
		case opBegin:
			a.begin = true
		default:
			return nil, &Error{Problem: "look-behind for more than one character is not supported", At: a.at, Refused: true}
		}
	}
	a.sub = nil
	return a, nil
}

// capture counts a group that has a number, and perhaps a name.
func (p *parser) capture(name string) error {
	p.captures++
	if name == "" {
		return nil
	}
	if slices.Contains(p.names, name) {
		return p.fail("a second group of one name")
	}
	p.names = append(p.names, name)
	return nil
}

// reference reads \1 or \k<name>.
func (p *parser) reference() (*ast, error) {
	at := p.at
	p.at++
	back := &ast{op: opCat, at: at}
	if p.take("k") {
		name, rest, ok := strings.Cut(strings.TrimPrefix(p.in[p.at:], "<"), ">")
		if !ok || p.peek() != '<' || !isName(name) {
			return nil, p.fail("a back reference without a name")
		}
		p.named = append(p.named, name)
		p.at = len(p.in) - len(rest)
		return back, nil
	}
	digits := p.in[p.at:]
	digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return nil, p.fail("a back reference to no group")
	}
	p.highest = max(p.highest, n)
	p.at += len(digits)
	return back, nil
}

// knownProperty says whether ECMAScript has a property of characters.
func knownProperty(name string) bool {
	key, value, named := strings.Cut(name, "=")
	if named && (key == "Script_Extensions" || key == "scx") {
		return script(value) != nil
	}
	return property(name) != nil || !named && (slices.Contains(binary, name) || unicode.CategoryAliases[name] != "")
}
