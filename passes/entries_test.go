package passes

import (
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestInParts: prompts' entries from 512 rows on have parts in plans of several sequences, where kernels follow them.
func TestInParts(t *testing.T) {
	for _, c := range []struct {
		entry Entry
		slots int
		want  int
	}{
		{ReadsPrompts(Prefill, 512), 2, 128},
		{ReadsPrompts(Prefill, 2048), 128, 128},
		{ReadsPrompts(Prefill, 512), 1, 0},
		{ReadsPrompts(Prefill, 256), 2, 0},
		{ReadsPrompts(Score, 512), 2, 0},
		{Entry{Kind: Decode, Rows: 512, Run: 8, Class: ir.ExactStep}, 512, 0},
	} {
		if got := c.entry.inParts(&ir.Program{Slots: c.slots}, goldenKernels{}); got.Part != c.want {
			t.Errorf("%s of %d sequences: parts of %d rows, want %d", c.entry.Name(), c.slots, got.Part, c.want)
		}
	}
}
