package attention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
)

// shared has workgroups of attention_wgmma share tiles of so many rows, in four splits of 256 positions at least.
func shared(rows int, c kerneltest.Case, headDim, heads int) kerneltest.Case {
	c = merged(headDim, heads, 4, c)
	c.Group = strings.Replace(c.Group, "block=8, rows=1}", fmt.Sprintf("block=128, rows=%d, least=256}", rows), 1)
	return c
}

// sharedTest is attention of heads of so many elements that share one KV head, in shared tiles.
func sharedTest(kv string, headDim, heads int, c kerneltest.Case) kerneltest.Case {
	return halfQuery(shared(128/heads, attentionTest("attention_wgmma", kv, headDim, heads, 1, 4, c), headDim, heads))
}

// fewUnits is NVIDIA's target with so few units that a tile has one workgroup, if all tiles have rows.
func fewUnits(t testing.TB) *target.Target {
	on := *kerneltest.Lookup(t, "sm_90-cuda")
	on.Units = 1
	return &on
}

// TestAttentionShare computes attention whose workgroups share the splits of a tile: one, two and four of them, where a
// row sees one split or several, and also without a workgroup of its own for all, or such that one has splits of two.
func TestAttentionShare(t *testing.T) {
	few, many := fewUnits(t), kerneltest.Lookup(t, "sm_90-cuda")
	deep := kerneltest.Case{Ctx: 1152, Slots: 2, Rows: 128, N: 100, Pos: []int{950}, Slot: []int{1}, Rounds: true}
	two, three, one, begin, tail := deep, deep, deep, deep, deep
	three.N = 70
	two.N, one.N = 40, 19
	begin.N, begin.Pos = 70, []int{218}
	tail.Pos = []int{768}
	for i, test := range []struct {
		on *target.Target
		c  kerneltest.Case
	}{
		{few, sharedTest("f16", 64, 4, deep)},
		{few, sharedTest("f16", 64, 4, two)},
		{few, sharedTest("f16", 64, 4, three)},
		{few, sharedTest("f16", 128, 4, one)},
		{few, sharedTest("f16", 64, 4, begin)},
		{many, sharedTest("f16", 64, 4, tail)},
		{few, sharedTest("q8_0", 64, 4, two)},
		{few, inTiles("13", 256, sharedTest("f16", 64, 4, two))},
		{few, inTiles("13", 256, sharedTest("f16", 64, 4, begin))}, // a workgroup writes a tile and goes on to the next
		{many, inTiles("13", 256, sharedTest("f16", 64, 4, one))},
		{few, inTiles("23", 2048, sharedTest("f16", 256, 8, two))},
		{few, sharedTest("f16", 64, 4, two).Paged()},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			test.c.RunOn(t, test.on)
			for _, k := range test.c.Candidates(t, test.c.Site(t, test.on)) {
				kerneltest.Assembled(t, k)
			}
		})
	}
}

// TestShareModule: one module serves entries of all widths, though tiles of the narrow one have several workgroups.
func TestShareModule(t *testing.T) {
	on := *fewUnits(t)
	on.Units = 8
	var text, key string
	for _, rows := range []int{128, 256, 512} {
		c := inTiles("13", 256, sharedTest("f16", 64, 4, kerneltest.Case{Ctx: 1152, Slots: 2, Rows: rows, N: 100, Pos: []int{950}, Part: 128}))
		k := c.Candidates(t, c.Site(t, &on))[0]
		f, err := k.Build()
		if err != nil {
			t.Fatal(err)
		}
		if key != "" && (k.Kernel != key || f.String() != text) {
			t.Errorf("%d rows: %s is another module than %s", rows, k.Kernel, key)
		}
		key, text = k.Kernel, f.String()
	}
}
