package codegen

import (
	"fmt"
	"strings"
	"testing"
)

// TestContracts holds what is said of the kernels of a plan: all that they take, with units.
func TestContracts(t *testing.T) {
	p := planOf(t, "gopher-q4_k_m.gguf", "sm_90", 512)
	all, err := Contracts(p, "", "")
	if err != nil {
		t.Fatal(err)
	}
	kernels := map[string]bool{}
	for _, f := range p.Program.Funcs {
		for _, g := range f.Groups {
			kernels[g.Call.Kernel] = true
		}
	}
	if len(all) != len(kernels) {
		t.Errorf("%d contracts of %d kernels", len(all), len(kernels))
	}
	for _, c := range all {
		for _, row := range c.Rows {
			for i, column := range []int{0, 1, 3, 4} {
				if row[column] == "" {
					t.Errorf("%s: row %v lacks %d", c.Title, row, i)
				}
			}
		}
	}
	one, err := Contracts(p, "decode/1", "blk.0.ffn_down")
	if err != nil || len(one) != 1 {
		t.Fatalf("%d contracts, %v", len(one), err)
	}
	text := fmt.Sprint(one[0].Rows)
	for _, want := range []string{"[argument x read f32[T, ", "[argument y0 write f32[T, ", "elements of a row of x]", "weight blk.0.ffn_down.weight]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", text, want)
		}
	}
}
