package verify_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// TestFirstNotNumber damages a weight of the second layer, and wants the dispatch that multiplies by it.
func TestFirstNotNumber(t *testing.T) {
	plan := compile(t, writeModel(t), "llvmpipe", ir.F16)
	tokens := make([]int32, 60) // several steps
	for i := range tokens {
		tokens[i] = int32(i)
	}
	_, dev := open(t, plan)
	if n, err := verify.FirstNotNumber(t.Context(), plan, dev, tokens); n != nil || err != nil {
		t.Fatalf("%v, %v of a model that is sound", n, err)
	}

	for i := range plan.Weights {
		if w := &plan.Weights[i]; w.Name == "blk.1.ffn_down.weight" {
			copy(plan.Embedded[w.At+2*7*ff:], bytes.Repeat([]byte{0xff, 0x7e}, ff)) // row 7
		}
	}
	_, dev = open(t, plan)
	n, err := verify.FirstNotNumber(t.Context(), plan, dev, tokens)
	if err != nil {
		t.Fatal(err)
	}
	if n == nil || n.Site != "blk.1.ffn_down" || n.Column != 7 || !math.IsNaN(float64(n.Number)) {
		t.Errorf("found %v", n)
	}
}
