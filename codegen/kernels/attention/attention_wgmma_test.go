package attention_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// TestAttentionWgmma computes attention with products of four subgroups in the interpreter, and has the modules
// assembled: heads of 16 to 256 elements, one tile of positions and several, of which the last is whole or not, rows of
// which tiles have all or few.
func TestAttentionWgmma(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	many := kerneltest.Case{Ctx: 448, Slots: 2, Rows: 512, N: 19, Pos: []int{370}, Slot: []int{1}}
	begin, whole, round, parts := many, many, many, many
	parts.N, parts.Pos = 147, []int{290}
	begin.Pos, whole.Pos = []int{0}, []int{237}
	round.Ctx, round.Pos = 1024, []int{690}
	block := func(c kerneltest.Case) kerneltest.Case {
		c.Group = strings.ReplaceAll(c.Group, "block=32", "block=128")
		return c
	}
	for _, c := range kerneltest.Some([]kerneltest.Case{
		attentionTest("attention_wgmma", "f16", 128, 8, 2, 0, many),
		attentionTest("attention_wgmma", "f16", 128, 8, 2, 0, begin),
		attentionTest("attention_wgmma", "f16", 128, 3, 1, 0, whole),
		attentionTest("attention_wgmma", "f16", 64, 8, 1, 0, many),
		attentionTest("attention_wgmma", "f16", 80, 12, 2, 0, many),
		attentionTest("attention_wgmma", "f16", 16, 4, 1, 0, many),
		attentionTest("attention_wgmma", "f16", 96, 4, 1, 0, many),
		gated(256, 8, true, attentionTest("attention_wgmma", "f16", 256, 8, 1, 0, many)),
		rounded(1024, gated(128, 8, false, attentionTest("attention_wgmma", "f16", 128, 8, 1, 0, many))),
		inTiles("13", 1024, attentionTest("attention_wgmma", "f16", 128, 8, 2, 0, many)),
		inTiles("12 23", 512, attentionTest("attention_wgmma", "q8_0", 64, 8, 2, 0, parts)),
		inTiles("13", 2048, gated(256, 8, true, attentionTest("attention_wgmma", "f16", 256, 8, 1, 0, many))),
		block(splitTiles(16, attentionTest("attention_wgmma", "f16", 256, 8, 1, 3, many))), // a split has no positions
		inTiles("01", 256, attentionTest("attention_wgmma", "f16", 256, 1, 1, 0, many)),
		inTiles("23", 768, attentionTest("attention_wgmma", "f16", 128, 6, 2, 0, many)),
		block(splitTiles(32, windowed(170, 8, attentionTest("attention_wgmma", "f16", 128, 8, 2, 3, many)))),
		windowed(170, 4, attentionTest("attention_wgmma", "f16", 192, 4, 1, 0, many)),
		attentionTest("attention_wgmma", "q8_0", 128, 8, 2, 0, many),
		attentionTest("attention_wgmma", "q8_0", 64, 4, 1, 0, whole),
		attentionTest("attention_wgmma", "q4_0", 64, 4, 1, 0, whole),
		attentionTest("attention_wgmma", "q4_0", 128, 8, 2, 0, many),
		block(splitTiles(16, attentionTest("attention_wgmma", "q8_0", 256, 8, 1, 3, many))),
		ringed(704, windowed(170, 4, attentionTest("attention_wgmma", "q8_0", 192, 4, 1, 0, round))),
		ringed(704, windowed(170, 4, attentionTest("attention_wgmma", "f16", 64, 4, 1, 0, round))),
	}) {
		t.Run(fmt.Sprint(strings.SplitN(c.Group, "{", 2)[1]), func(t *testing.T) {
			t.Parallel()
			c := halfQuery(c)
			c.Rounds = true
			c.RunOn(t, on)
			for _, k := range c.Candidates(t, c.Site(t, on)) {
				kerneltest.Assembled(t, k)
			}
		})
	}
}

// TestAttentionWgmmaTile holds that attention puts the bits into tiles that op tile puts there behind it.
func TestAttentionWgmmaTile(t *testing.T) {
	on := kerneltest.Lookup(t, "sm_90-cuda")
	rows := halfQuery(attentionTest("attention_wgmma", "f16", 128, 8, 2, 0, kerneltest.Case{Ctx: 448, Slots: 2, Rows: 512, N: 150, Pos: []int{270}, Slot: []int{1}, Rounds: true}))
	tiles := inTiles("13 12", 1024, rows)
	rows = rounded(1024, rows)
	tile := kerneltest.Case{Family: "tile", Ctx: rows.Ctx, Slots: rows.Slots, Rows: rows.Rows, N: rows.N, Given: map[string][]byte{"x": rows.FirstOf(t, on, kerneltest.Launch)["%3"]},
		Globals: "step @x : f16[T, 1024]\n", Group: "%4 = " + strings.Replace(strings.SplitN(tiles.Group, "%4 = ", 2)[1], "%3", "@x", 1)}
	if got, want := tiles.FirstOf(t, on, kerneltest.Launch)["%4"], tile.FirstOf(t, on, kerneltest.Launch)["%4"]; len(want) == 0 || !bytes.Equal(got, want) {
		t.Errorf("%d bytes are not the %d of op tile", len(got), len(want))
	}
}

// inTiles rounds the test's last value to f16 and puts it into tiles.
func inTiles(lanes string, width int, c kerneltest.Case) kerneltest.Case {
	c = rounded(width, c)
	c.Group = strings.Replace(c.Group, " : io f16[", " : f16[", 1)
	c.Group += fmt.Sprintf("\n%%4 = tile %%3 {rows=%d, lanes=%q} : io f16[%d, 1024]", c.Rows, lanes, c.Rows/128*len(strings.Fields(lanes))*width/8)
	return c
}
