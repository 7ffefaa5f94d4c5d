package strategy_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
)

// TestArgmaxParts holds that rows of many logits fill the units once, and that steps of few rows have all parts.
func TestArgmaxParts(t *testing.T) {
	const most = 32
	on := &target.Target{Units: 132, ArgmaxPart: 1024}
	for _, c := range []struct{ logits, rows, want int }{
		{151936, 1, most}, {151936, target.DecodeRows, most}, // these are not bounded by units
		{151936, 32, most}, {151936, 64, 16}, {151936, 128, 8},
		{1024, 128, 1}, {1023, 1, 1}, {5000, 128, 4},
	} {
		if got := strategy.ArgmaxParts(c.logits, c.rows, false, on); got != c.want {
			t.Errorf("%d logits of %d rows: %d parts, want %d", c.logits, c.rows, got, c.want)
		}
	}
	if got := strategy.ArgmaxParts(151936, 128, true, on); got != 2 {
		t.Errorf("rows that candidates decide have %d parts, want 2", got)
	}
	on.Units = 1
	if got := strategy.ArgmaxParts(151936, 128, false, on); got != 1 {
		t.Errorf("one unit has %d parts", got)
	}
	if got := strategy.ArgmaxParts(151936, target.DecodeRows, false, on); got != most {
		t.Errorf("8 rows have %d parts on one unit", got)
	}
}
