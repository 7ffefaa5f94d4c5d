package schema

import (
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// maxFew is how many names a pattern, or propertyNames, may have that are known one by one.
const maxFew = 256

// few returns the names of patterns and of propertyNames that have few. They are known, as those of properties, so that
// none is begun that has come.
func (c *compiler) few(r *objects) (names []string) {
	terms := make([]*lex.Term, 0, len(r.patterns)+1)
	for _, p := range r.patterns {
		terms = append(terms, p.Term)
	}
	if r.names != nil {
		terms = append(terms, c.nameTerm(r.names))
	}
	for _, t := range terms {
		if list, ok := c.pool.Texts(t, maxFew); ok {
			names = append(names, list...)
		}
	}
	return names
}

// valueOf returns the union of a member's value.
func (c *compiler) valueOf(rules []*objects, name string) *union {
	return c.union(c.nodesOf(rules, name)...)
}

// nodesOf are the schemas of a member's value.
func (c *compiler) nodesOf(rules []*objects, name string) (nodes []*node) {
	for _, r := range rules {
		n, ok := r.props[name]
		if ok {
			nodes = append(nodes, n)
		}
		for _, p := range r.patterns {
			if c.pool.Has(p.Term, name) {
				nodes, ok = append(nodes, p.node), true
			}
		}
		if !ok && r.extra != nil {
			nodes = append(nodes, r.extra)
		}
	}
	return nodes
}

// valueUnion returns the union of the value of a name that no schema knows, by which patterns it matches.
func (c *compiler) valueUnion(d *objectDef, matches []bool) *union {
	key := make([]byte, len(matches))
	for i, m := range matches {
		if m {
			key[i] = 1
		}
	}
	u := d.unions[string(key)]
	if u != nil {
		return u
	}
	u = c.union(d.otherNodes(matches)...)
	d.unions[string(key)] = u
	return u
}

// otherNodes are the schemas of a name that no schema knows, by which patterns it matches.
func (d *objectDef) otherNodes(matches []bool) (nodes []*node) {
	i := 0
	for _, r := range d.rules {
		any := false
		for _, p := range r.patterns {
			if matches[i] {
				nodes, any = append(nodes, p.node), true
			}
			i++
		}
		if !any && r.extra != nil {
			nodes = append(nodes, r.extra)
		}
	}
	return nodes
}

// nameKind are the names that no schema knows of one set of patterns.
type nameKind struct {
	matches []bool
	names   *lex.Term
	value   *union
}

// kinds returns the sets of patterns that some such name matches. It finds the sets pattern by pattern.
func (d *objectDef) kinds() []nameKind {
	if d.kindList != nil {
		return d.kindList
	}
	c := d.c
	known := make([]*lex.Term, len(d.names))
	for i, n := range d.names {
		known[i] = c.pool.Text(n)
	}
	names := c.pool.Not(c.pool.Or(known...))
	for _, r := range d.rules {
		if r.names != nil {
			names = c.pool.And(names, c.nameTerm(r.names))
		}
	}
	d.kindList = []nameKind{}
	matches := make([]bool, len(d.patterns))
	var try func(i int, t *lex.Term)
	try = func(i int, t *lex.Term) {
		if !c.pool.Live(t) {
			return
		}
		if i == len(matches) {
			d.kindList = append(d.kindList, nameKind{slices.Clone(matches), t, c.valueUnion(d, matches)})
			return
		}
		p := d.patterns[i].Term
		for _, m := range []bool{true, false} {
			matches[i] = m
			if !m {
				p = c.pool.Not(p)
			}
			try(i+1, c.pool.And(t, p))
		}
	}
	try(0, names)
	return d.kindList
}
