package schema

import "strconv"

// readArrays reads what a schema says of arrays.
func (c *compiler) readArrays(n *node, base *alt) error {
	a := &arrays{max: -1}
	said := false
	list, rest := "prefixItems", "items"
	if n.draft <= draft2019 {
		list, rest = "items", "additionalItems"
		if v := n.get("items"); v == nil || v.kind != array {
			list, rest = "", "items"
		}
	}
	if v := n.get(list); list != "" && v != nil {
		if v.kind != array {
			return n.fail(list, "want an array of schemas")
		}
		for i, s := range v.list {
			a.prefix = append(a.prefix, c.doc.node(s, n, list+"/"+strconv.Itoa(i)))
		}
		said = true
	}
	if v := n.get(rest); v != nil {
		if v.kind == array {
			return n.fail(rest, "want a schema; lists of schemas are prefixItems since draft 2020-12")
		}
		a.rest, said = c.doc.node(v, n, rest), true
	}
	if v := n.get("contains"); v != nil && n.draft >= draft6 {
		s := some{node: c.doc.node(v, n, "contains"), min: 1, max: -1}
		for _, b := range []struct {
			name string
			to   *int
		}{{"minContains", &s.min}, {"maxContains", &s.max}} {
			if v := n.get(b.name); v != nil && n.draft >= draft2019 {
				var err error
				if *b.to, err = n.count(b.name, v); err != nil {
					return err
				}
			}
		}
		if s.max >= 0 {
			s.not = c.made(s.node, s.node.value, "not")
		}
		a.some, said = []some{s}, true
	}
	if v := n.get("uniqueItems"); v != nil && v.kind == yes {
		a.repeats, said = differ, true
	}
	for _, b := range []struct {
		name string
		to   *int
	}{{"minItems", &a.min}, {"maxItems", &a.max}} {
		if v := n.get(b.name); v != nil {
			var err error
			if *b.to, err = n.count(b.name, v); err != nil {
				return err
			}
			said = true
		}
	}
	if said {
		base.arr = append(base.arr, a)
	}
	return nil
}

// readObjects reads what a schema says of objects.
func (c *compiler) readObjects(n *node, base *alt) error {
	o := &objects{max: -1}
	said := false
	for _, k := range objectKeywords {
		v := n.get(k.name)
		if v == nil || n.draft < k.since {
			continue
		}
		says, err := k.read(c, n, o, v)
		if err != nil {
			return err
		}
		said = said || says
	}
	if said {
		base.obj = append(base.obj, o)
	}
	return nil
}

// objectKeywords are those that speak of objects, with the first draft that has them. read takes the value into o, and
// reports whether it says anything.
var objectKeywords = []struct {
	name  string
	since draft
	read  func(c *compiler, n *node, o *objects, v *value) (says bool, err error)
}{
	{"properties", 0, (*compiler).readProperties},
	{"patternProperties", 0, (*compiler).readPatterns},
	{"additionalProperties", 0, func(c *compiler, n *node, o *objects, v *value) (bool, error) {
		o.extra = c.doc.node(v, n, "additionalProperties")
		return true, nil
	}},
	{"propertyNames", draft6, func(c *compiler, n *node, o *objects, v *value) (bool, error) {
		o.names = c.doc.node(v, n, "propertyNames")
		return true, nil
	}},
	{"required", 0, (*compiler).readRequired},
	{"dependentRequired", draft2019, func(_ *compiler, n *node, o *objects, v *value) (bool, error) {
		return readNeeds(n, o, v, "dependentRequired")
	}},
	{"dependencies", 0, func(_ *compiler, n *node, o *objects, v *value) (bool, error) {
		return readNeeds(n, o, v, "dependencies")
	}},
	{"minProperties", 0, func(_ *compiler, n *node, o *objects, v *value) (says bool, err error) {
		o.min, err = n.count("minProperties", v)
		return true, err
	}},
	{"maxProperties", 0, func(_ *compiler, n *node, o *objects, v *value) (says bool, err error) {
		o.max, err = n.count("maxProperties", v)
		return true, err
	}},
}

func (c *compiler) readProperties(n *node, o *objects, v *value) (bool, error) {
	if v.kind != object {
		return false, n.fail("properties", "want an object of schemas")
	}
	o.props = map[string]*node{}
	for _, m := range v.members {
		o.props[m.name] = c.doc.node(m.value, n, "properties/"+escapePointer(m.name))
	}
	return true, nil
}

func (c *compiler) readPatterns(n *node, o *objects, v *value) (bool, error) {
	if v.kind != object {
		return false, n.fail("patternProperties", "want an object of schemas")
	}
	for _, m := range v.members {
		t, err := c.pattern(n, "patternProperties", m.name)
		if err != nil {
			return false, err
		}
		o.patterns = append(o.patterns, pattern{Term: t, node: c.doc.node(m.value, n, "patternProperties/"+escapePointer(m.name))})
	}
	return true, nil
}

func (c *compiler) readRequired(n *node, o *objects, v *value) (bool, error) {
	if n.draft == draft4 && v.kind != array {
		return false, nil
	}
	names, err := n.strings("required", v)
	o.required = names
	return true, err
}

// readNeeds reads which names others need beside them.
func readNeeds(n *node, o *objects, v *value, key string) (says bool, err error) {
	if v.kind != object {
		return false, n.fail(key, "want an object")
	}
	for _, m := range v.members {
		if key == "dependencies" && m.value.kind != array {
			continue // dependent reads it
		}
		names, err := n.strings(key, m.value)
		if err != nil {
			return false, err
		}
		if o.needs == nil {
			o.needs = map[string][]string{}
		}
		o.needs[m.name], says = append(o.needs[m.name], names...), true
	}
	return says, nil
}

// strings reads an array of strings.
func (n *node) strings(keyword string, v *value) ([]string, error) {
	if v.kind != array {
		return nil, n.fail(keyword, "want an array of strings")
	}
	var out []string
	for _, s := range v.list {
		if s.kind != str {
			return nil, n.fail(keyword, "want an array of strings")
		}
		out = append(out, s.text)
	}
	return out, nil
}
