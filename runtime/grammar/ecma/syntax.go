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

// assertion reads a group that stands for no text.
func (p *parser) assertion() (*ast, error) {
	at := p.at
	_, err := p.alternatives()
	if err == nil && !p.take(")") {
		err = p.fail("a ( without a )")
	}
	return &ast{op: opBegin, anchor: true, at: at}, err // as an anchor, it is not repeated
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
