package schema

// conditional applies if, then and else: what is valid by if and then, and what is not valid by if, but by else. The
// complement of if must be known.
func (c *compiler) conditional(n *node, v *value, alts []*alt) ([]*alt, error) {
	if n.get("then") == nil && n.get("else") == nil {
		return alts, nil
	}
	holds, err := c.expand(c.doc.node(v, n, "if"))
	if err != nil {
		return nil, err
	}
	holds = c.split(n, holds)
	fails, err := c.complement(n, holds, "if")
	if err != nil {
		return nil, err
	}
	var out []*alt
	for _, branch := range []struct {
		keyword string
		alts    []*alt
	}{{"then", holds}, {"else", fails}} {
		list, err := c.product(alts, branch.alts, n, "if")
		if s := n.get(branch.keyword); s != nil && err == nil {
			var options []*alt
			if options, err = c.expand(c.doc.node(s, n, branch.keyword)); err == nil {
				list, err = c.product(list, options, n, branch.keyword)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	if len(out) > maxAlts {
		return nil, n.fail("if", tooManyWays)
	}
	return out, nil
}

// dependent applies schemas that hold where a member is: each is valid, or the member is not there.
func (c *compiler) dependent(n *node, keyword string, v *value, alts []*alt) ([]*alt, error) {
	if v.kind != object {
		return nil, n.fail(keyword, "want an object of schemas")
	}
	for _, m := range v.members {
		if m.kind == array && keyword == "dependencies" {
			continue // readObjects has read it
		}
		options, err := c.expand(c.doc.node(m.value, n, keyword+"/"+escapePointer(m.name)))
		if err != nil {
			return nil, err
		}
		absent := &objects{props: map[string]*node{m.name: c.never(n)}, max: -1}
		present := &objects{required: []string{m.name}, max: -1}
		has, err := c.product([]*alt{{types: isObject, obj: []*objects{present}}}, options, n, keyword)
		if err != nil {
			return nil, err
		}
		ways := append(has, &alt{types: allType, obj: []*objects{absent}})
		if alts, err = c.product(alts, ways, n, keyword); err != nil {
			return nil, err
		}
	}
	return alts, nil
}
