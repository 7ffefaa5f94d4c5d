package schema

import "slices"

// mark is what an alt says of a member that tells objects apart: which strings it is or is not, and whether it is
// there.
type mark struct {
	is              []string // if some
	some            bool
	not             []string
	present, absent bool
}

// marks returns what the objects of an alt say of such members.
func (a *alt) marks() map[string]*mark {
	if a.told != nil {
		return a.told
	}
	a.told = map[string]*mark{}
	of := func(name string) *mark {
		m := a.told[name]
		if m == nil {
			m = &mark{}
			a.told[name] = m
		}
		return m
	}
	for _, r := range a.obj {
		for name, s := range r.props {
			if s.kind == no {
				of(name).absent = true
			}
			if list := stringsOf(s.value); list != nil {
				m := of(name)
				if m.some {
					list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !slices.Contains(m.is, s) })
				}
				m.is, m.some = list, true
			}
			if s.kind == object && len(s.members) == 1 && s.get("not") != nil {
				if list := stringsOf(s.get("not")); list != nil {
					m := of(name)
					m.not = append(m.not, list...)
				}
			}
		}
	}
	for _, r := range a.obj {
		for _, name := range r.required {
			if m := a.told[name]; m != nil {
				m.present = true
			} else if len(a.obj) > 1 || len(r.props) == 0 {
				of(name).present = true
			}
		}
	}
	return a.told
}

// stringsOf returns the strings that a schema lists, nil if it lists anything else.
func stringsOf(v *value) (out []string) {
	if v.kind != object {
		return nil
	}
	list := []*value{v.get("const")}
	if list[0] == nil {
		e := v.get("enum")
		if e == nil {
			return nil
		}
		list = e.list
	}
	for _, v := range list {
		if v.kind != str {
			return nil
		}
		out = append(out, v.text)
	}
	return out
}

// clash says at a glance that no object is valid by both of two alts: by a member that is there in one of them and not
// in the other, or that is none of the strings it must be.
func clash(a, b *alt) bool {
	x, y := a.marks(), b.marks()
	if len(x) > len(y) {
		x, y = y, x
	}
	for name, m := range x {
		o := y[name]
		if o == nil {
			continue
		}
		there := m.present || o.present
		if there && (m.absent || o.absent) {
			return true
		}
		if !there || !m.some && !o.some {
			continue
		}
		is := m.is
		if !m.some {
			is = o.is
		}
		if !slices.ContainsFunc(is, func(s string) bool {
			return !slices.Contains(m.not, s) && !slices.Contains(o.not, s) && (!m.some || slices.Contains(m.is, s)) &&
				(!o.some || slices.Contains(o.is, s))
		}) {
			return true
		}
	}
	return false
}

// split makes two alts of each whose objects have a member of certain strings that may be left out: without it, and
// with it. Then alts of other strings clash.
func (c *compiler) split(n *node, alts []*alt) (out []*alt) {
	for len(alts) > 0 {
		a := alts[0]
		alts = alts[1:]
		name, found := "", false
		if a.types == isObject {
			for k, m := range a.marks() {
				if m.some && !m.present && !m.absent && (!found || k < name) {
					name, found = k, true
				}
			}
		}
		if !found {
			out = append(out, a)
			continue
		}
		for _, o := range []*objects{{props: map[string]*node{name: c.never(n)}, max: -1}, {required: []string{name}, max: -1}} {
			b := *a
			b.told = nil
			b.obj = append(slices.Clone(a.obj), o)
			alts = append(alts, &b)
		}
	}
	return out
}
