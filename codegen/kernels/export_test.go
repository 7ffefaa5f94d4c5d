package kernels

import (
	"reflect"

	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
)

// LeaveGroups reports whether the site's linear group is, behind all families, what it was before; false also where
// it is none.
func LeaveGroups(s *Site) bool {
	g := matmul.Match(s)
	for f := range Families(s.Target) {
		f.candidates(s, g)
		f.wants(s, g)
	}
	return g != nil && reflect.DeepEqual(g, matmul.Match(s))
}

// Takers returns the families whose row takes all that the site's group has, and needs no more.
func Takers(s *Site) (list []string) {
	g := matmul.Match(s)
	for f := range Families(s.Target) {
		takes := false
		switch w := f.work.(type) {
		case linear:
			takes = g != nil && g.Has(w.needs, w.takes)
		case around:
			takes = w.match(s) != nil
		}
		if takes {
			list = append(list, f.Name)
		}
	}
	return list
}
