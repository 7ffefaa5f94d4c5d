package tuning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// SiteOf names what a group of a function computes: the entry and, for each op, its
// kind, the types of its operands from outside the group, and its attributes except
// real numbers and where a slice of such an operand begins, which is another place in every layer of gemma 4.
// Groups of the same name have the same best kernel on a device.
func SiteOf(f *ir.Func, g *ir.Group) string {
	entry, _ := Variant(f.Name)
	var ops []string
	for _, op := range g.Ops {
		words := []string{op.Kind.Name}
		outside := false
		table := op.Table()
		for _, a := range op.Args {
			switch {
			case a == table && table != nil: // what is best does not depend on where positions lie
			case a.Paged():
				t := ir.MakeType(a.Type.DType, table.Type.Shape[0], ir.L, a.Type.Last())
				words, outside = append(words, t.String()), true
			case a.Def == nil || !slices.Contains(g.Ops, a.Def):
				words, outside = append(words, a.Type.String()), true
			}
		}
		for _, a := range op.Attrs {
			if _, real := a.Value.(float64); !real && !(outside && op.Kind.Name == "slice" && a.Name == "first") {
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

// Variant returns the entry of which a function is a copy, and whether it is a copy.
func Variant(name string) (entry string, copied bool) {
	entry, _, copied = strings.Cut(name, "+")
	return entry, copied
}

// Order returns ORDER from a candidate's name ORDER/SHAPE: the order
// of its sums. Decode entries of different widths must use one order at a site.
func Order(candidate string) string {
	order, _, _ := strings.Cut(candidate, "/")
	return order
}
