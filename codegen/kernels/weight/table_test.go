package weight

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

var update = flag.Bool("update", false, "write testdata/layouts.txt")

// views are those of a layout with the families that read weights by them.
var views = []struct {
	name     string
	families string
	has      func(l *Layout) bool
}{
	{"floats", "embed gemv gemm gemm_float gemm_lanes expert_gemv expert_gemm expert_down", func(l *Layout) bool { return len(l.Floats) > 0 }},
	{"bytes", "gemv gemm_dot expert_gemv expert_dot, x in fixed point", func(l *Layout) bool { return l.Bytes != nil }},
	{"copy", "gemm_coop expert_coop", func(l *Layout) bool { return l.Copy != nil }},
	{"fragment", "gemm_fragment expert_fragment", func(l *Layout) bool { return l.Fragment != nil }},
	{"fixed", "gemm_fixed, x in fixed point", func(l *Layout) bool { return l.Fixed != nil }},
}

// TestLayouts prints which kernels read which weights, compares that with
// testdata/layouts.txt, and fails where a layout lacks a view without saying why.
func TestLayouts(t *testing.T) {
	types := map[string][]string{}
	for _, d := range ir.DTypes() {
		if f := layout.Format(d); f != "" && ir.Computable(d) {
			types[f] = append(types[f], d.String())
		}
	}
	var b strings.Builder
	for _, v := range views {
		fmt.Fprintf(&b, "%-9s %s\n", v.name, v.families)
	}
	fmt.Fprintf(&b, "\n%-10s", "layout")
	for _, v := range views {
		fmt.Fprintf(&b, " %-9s", v.name)
	}
	fmt.Fprintf(&b, " weights\n")
	for _, l := range layouts {
		fmt.Fprintf(&b, "%-10s", l.Name)
		for _, v := range views {
			cell := "yes"
			if !v.has(l) {
				cell = "-"
				if !strings.Contains(l.Without, v.name) {
					t.Errorf("layout %s has no view %s, which %s need, and says not why", l.Name, v.name, v.families)
				}
			} else if strings.Contains(l.Without, v.name) {
				t.Errorf("layout %s says why it has no view %s, and has one", l.Name, v.name)
			}
			fmt.Fprintf(&b, " %-9s", cell)
		}
		fmt.Fprintf(&b, " %s\n", strings.Join(types[l.Name], " "))
		delete(types, l.Name)
	}
	for f, list := range types {
		t.Errorf("no row for layout %s, which %v have", f, list)
	}
	for _, l := range layouts {
		if l.Without != "" {
			fmt.Fprintf(&b, "\n%s: %s", l.Name, l.Without)
		}
	}
	b.WriteString("\n")
	const path = "testdata/layouts.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if have := b.String(); have != string(want) {
		t.Errorf("%s differs (-update to accept):\n%s", path, have)
	}
}

// TestLayoutsAreOfOneName holds that no layout has two rows, and that its views as floats lie in
// order: the widest that fits is taken.
func TestLayoutsAreOfOneName(t *testing.T) {
	var names []string
	for _, l := range layouts {
		if slices.Contains(names, l.Name) {
			t.Errorf("two rows for %s", l.Name)
		}
		names = append(names, l.Name)
		for i, f := range l.Floats {
			if f.Layout != l {
				t.Errorf("%s: view %s has another layout", l.Name, f.Name)
			}
			if i > 0 && f.cols >= l.Floats[i-1].cols {
				t.Errorf("%s: %s is never taken", l.Name, f.Name)
			}
		}
	}
}
