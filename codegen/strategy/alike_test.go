package strategy_test

import (
	"fmt"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// TestSums chooses the sums of a call site of two entries: those whose times add up to the least, as predicted by the
// H200's curve or measured; without times those that are ranked first; never some that an entry does not have.
func TestSums(t *testing.T) {
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	// Rows of 4,096 elements, 2,048 outputs: workgroups that share rows gain at 512 rows, and lose more at 2,048.
	product := func(splits int) kernels.Candidate {
		tile := kernels.Tiling{Name: "grouped", K: 4096, Matrices: 1, Rows: 128, Across: 16, Outputs: 128, Subgroups: 8, Iterations: 16 / splits, Splits: splits}
		return kernels.Candidate{Family: "gemm_wgmma", Order: "wgmma", Shape: fmt.Sprint(splits), Sums: fmt.Sprint(splits), Tiling: &tile}
	}
	other := func(sums string) kernels.Candidate {
		return kernels.Candidate{Family: "conv", Order: sums, Sums: sums}
	}
	tuned := tuning.NewTable([]tuning.Row{{Site: "b", Best: "wgmma/2", Micros: 1}})
	for _, c := range []struct {
		name          string
		narrow, broad []kernels.Candidate
		tuned         *tuning.Table
		want          string
	}{
		{"least of both", []kernels.Candidate{product(2), product(1)}, []kernels.Candidate{product(1), product(2)}, nil, "1"},
		{"measured", []kernels.Candidate{product(2), product(1)}, []kernels.Candidate{product(1), product(2)}, tuned, "2"},
		{"not in both", []kernels.Candidate{product(2), product(1)}, []kernels.Candidate{product(2)}, nil, "2"},
		{"no times", []kernels.Candidate{other("y"), other("x"), other("z")}, []kernels.Candidate{other("x"), other("z"), other("y")}, nil, "x"},
		{"none", []kernels.Candidate{other("y")}, []kernels.Candidate{other("x")}, nil, ""},
	} {
		have, err := strategy.Sums([]strategy.SumsSite{{Key: "a", Rows: 512, Candidates: c.narrow}, {Key: "b", Rows: 2048, Candidates: c.broad}}, on, c.tuned)
		if have != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: sums %q, want %q (%v)", c.name, have, c.want, err)
		}
	}
}
