package attention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
)

// halfQuery makes q of an attention test f16.
func halfQuery(c kerneltest.Case) kerneltest.Case {
	c.Globals = strings.Replace(c.Globals, "@q : f32", "@q : f16", 1)
	return c
}

// rounded rounds the test's last value to f16.
func rounded(width int, c kerneltest.Case) kerneltest.Case {
	c.Group = strings.Replace(c.Group, " : io f32[", " : f32[", 1)
	from := "%0"
	if strings.Contains(c.Group, "%12 = ") {
		from = "%12"
	}
	c.Group += fmt.Sprintf("\n%%3 = half %s : io f16[T, %d]", from, width)
	return c
}

// blocksOf128 has the parts of a split begin at multiples of 128 positions.
func blocksOf128(c kerneltest.Case) kerneltest.Case {
	c.Group = strings.ReplaceAll(c.Group, "block=32", "block=128")
	return c
}

// splitTiles makes the rows of a tile share the ranges of a split attention.
func splitTiles(rows int, c kerneltest.Case) kerneltest.Case {
	c.Group = strings.Replace(c.Group, "block=8, rows=1", fmt.Sprintf("block=32, rows=%d", rows), 1)
	return c
}

// TestAttentionCoop builds attention for targets with cooperative matrices; devices
// without them have other families. The interpreter computes it.
func TestAttentionCoop(t *testing.T) {
	many := kerneltest.Case{Ctx: 96, Slots: 2, Rows: 70}
	for _, c := range kerneltest.Some([]kerneltest.Case{
		attentionTest("attention_coop", "f16", 128, 8, 2, 0, many),
		attentionTest("attention_coop", "f16", 64, 8, 8, 0, many),
		attentionTest("attention_coop", "q8_0", 128, 8, 2, 0, many),
		splitTiles(8, attentionTest("attention_coop", "q8_0", 256, 16, 2, 3, many)),
		attentionTest("attention_coop", "f16", 80, 12, 2, 0, many),
		gated(256, 16, true, attentionTest("attention_coop", "f16", 256, 16, 2, 0, many)),
		rounded(256, attentionTest("attention_coop", "f16", 64, 4, 4, 0, many)),
		splitTiles(8, attentionTest("attention_coop", "f16", 256, 16, 2, 3, many)),
		rounded(1024, gated(128, 8, false, attentionTest("attention_coop", "f16", 128, 8, 1, 0, many))),
	}) {
		c = halfQuery(c)
		c.Rounds = true
		checkMatrices(t, c)
		c.Rows, c.N, c.Pos = 20, 19, []int{70}
		c.RunOn(t, kerneltest.Lookup(t, "sm_90"))
	}
}

// checkMatrices is checkBuild for the targets with cooperative matrices.
func checkMatrices(t *testing.T, c kerneltest.Case) {
	t.Helper()
	found := false
	for _, on := range target.All() {
		if on.Matrix == (target.MatrixShape{}) {
			if list := kernels.Candidates(c.Site(t, on)); len(list) > 0 {
				t.Errorf("%s: %s without matrices", on.Name, list[0].Kernel)
			}
			continue
		}
		if on.Groups {
			continue // which have attention_wgmma
		}
		found = true
		c.CheckOn(t, on)
	}
	if !found {
		t.Error("no target has cooperative matrices")
	}
}

// TestAttentionWithoutMatrices holds which attention attention_coop leaves to others.
func TestAttentionWithoutMatrices(t *testing.T) {
	many := kerneltest.Case{Ctx: 96, Slots: 2, Rows: 70}
	for _, c := range []kerneltest.Case{
		attentionTest("attention_tiled", "f32", 128, 8, 2, 0, many), // cache
		attentionTest("attention_tiled", "f16", 72, 8, 2, 0, many),  // no matrices of 16
		attentionTest("attention_tiled", "f16", 512, 2, 1, 0, many), // sums of too many dims
		attentionTest("attention_split", "f16", 128, 8, 2, 0, kerneltest.Case{Ctx: 96, Slots: 2, Rows: 8}),
	} {
		s := c.Site(t, kerneltest.Lookup(t, "sm_90"))
		if q := kerneltest.RoundedFor(s, "half"); q != nil {
			t.Errorf("%s: %v is to be rounded", c.Group, q)
		}
		c.Candidates(t, s)
	}
}

// TestWideHeads: heads wider than 256, whose keys may be the values, on a target with much shared memory, in the
// interpreter.
func TestWideHeads(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	many := kerneltest.Case{Ctx: 192, Slots: 2, Rows: 20, N: 19, Pos: []int{110}, Rounds: true}
	same := func(c kerneltest.Case) kerneltest.Case {
		c.Group = strings.ReplaceAll(c.Group, "@k, @v", "@k, @k")
		return c
	}
	block := func(c kerneltest.Case) kerneltest.Case {
		c.Group = strings.ReplaceAll(c.Group, "block=32", "block=64")
		return c
	}
	for _, c := range kerneltest.Some([]kerneltest.Case{
		same(attentionTest("attention_coop", "f16", 576, 20, 1, 0, many)),
		same(block(splitTiles(8, attentionTest("attention_coop", "f16", 576, 4, 1, 3, many)))),
		same(attentionTest("attention_coop", "q8_0", 576, 4, 1, 0, many)),
		attentionTest("attention_coop", "f16", 512, 8, 1, 0, many),
		block(splitTiles(8, attentionTest("attention_coop", "q8_0", 512, 8, 2, 2, many))),
		windowed(70, 4, attentionTest("attention_coop", "f16", 320, 4, 1, 0, many)),
	}) {
		c = halfQuery(c)
		c.CheckOn(t, on)
		c.RunOn(t, on)
	}
}
