package schema

import "strings"

// note enters an anchor of dynamic references.
func (d *document) note(name, base string, v *value) {
	if d.dynamic[name] == nil {
		d.dynamic[name] = map[string]*value{}
	}
	d.dynamic[name][base] = v
}

// dynamicReference applies a reference that leads to the outermost anchor of its name on the way here. Where several
// documents within have one, the way must begin at one of these: then it is that one.
func (c *compiler) dynamicReference(n *node, keyword string, v *value, alts []*alt) ([]*alt, error) {
	if v.kind != str {
		return nil, n.fail(keyword, "want a string")
	}
	to, err := c.doc.follow(n, keyword, v.text)
	if err != nil {
		return nil, err
	}
	_, name, _ := strings.Cut(v.text, "#")
	all := c.doc.dynamic[name]
	if all[to.base] != to.value { // it leads to no such anchor
		return c.refer(n, keyword, to, alts)
	}
	if len(all) > 1 {
		outer := c.doc.outermost(all)
		if outer == nil {
			return nil, n.refuse(keyword, "may lead to several schemas, by the way that leads here")
		}
		to = c.doc.nodes[outer]
	}
	return c.refer(n, keyword, to, alts)
}

// outermost returns the first of some anchors on every way from the root: in the document itself, or in those that are
// all that it refers to. It is nil if that is not so.
func (d *document) outermost(anchors map[string]*value) *value {
	n := d.root
	for range 8 {
		if v := anchors[n.base]; v != nil {
			return v
		}
		ref := n.get("$ref")
		for _, m := range n.members {
			if m.name != "$ref" && m.name != "$defs" && m.name != "definitions" && m.name != "$schema" && m.name != "$id" {
				return nil
			}
		}
		if ref == nil || ref.kind != str {
			return nil
		}
		var err error
		if n, err = d.follow(n, "$ref", ref.text); err != nil {
			return nil
		}
	}
	return nil
}
