package tuning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// SiteOf names what a group of a function computes: the entry and, for each op, its
// kind, the types of what it reads from outside the group, and its attributes but for
// real numbers. Groups of the same name want the same kernel on a device.
func SiteOf(f *ir.Func, g *ir.Group) string {
	entry, _ := Variant(f.Name)
	var ops []string
	for _, op := range g.Ops {
		words := []string{op.Kind.Name}
		for _, a := range op.Args {
			if a.Def == nil || !slices.Contains(g.Ops, a.Def) {
				words = append(words, a.Type.String())
			}
		}
		for _, a := range op.Attrs {
			if _, real := a.Value.(float64); !real {
				words = append(words, fmt.Sprintf("%s=%v", a.Name, a.Value))
			}
		}
		ops = append(ops, strings.Join(words, " "))
	}
	return entry + ": " + strings.Join(ops, "; ")
}

// VariantName names the n-th copy of an entry, which has other candidates at some sites.
func VariantName(entry string, n int) string {
	if n == 0 {
		return entry
	}
	return fmt.Sprintf("%s+%d", entry, n)
}

// Variant returns the entry that a function is a copy of, and whether it is one.
func Variant(name string) (entry string, copied bool) {
	entry, _, copied = strings.Cut(name, "+")
	return entry, copied
}

// Order returns the part of a candidate's name, which is ORDER/SHAPE, that tells the order
// of its sums. In decode entries of different widths a site must have one order.
func Order(candidate string) string {
	order, _, _ := strings.Cut(candidate, "/")
	return order
}
