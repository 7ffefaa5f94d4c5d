package attention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

// latentKeyTest is the row that latent attention caches: a vector that is normed, and a part that is rotated.
func latentKeyTest(kv string, vector, turned int, c kerneltest.Case) kerneltest.Case {
	c.Family = "heads"
	freqs := "1.0"
	for i := 1; i < turned/2; i++ {
		freqs += fmt.Sprintf(", %g", 1/float64(1+i))
	}
	row := vector + turned
	c.Globals = fmt.Sprintf(`weight @g : f32[%[1]d]
table @rope {kind="rope", freqs=[%[2]s], mscale=1.0} : f32[L, %[3]d]
step @x : f32[T, %[4]d]
kv @k : %[5]s[%[6]d, L, %[4]d]
`, vector, freqs, turned, row, kv, c.Slots)
	c.Group = fmt.Sprintf(`%%0 = head_cut @x {stride=%[1]d, first=0, width=%[2]d} : f32[T, %[2]d]
%%1 = rmsnorm %%0, @g {eps=0.125, group=%[2]d} : f32[T, %[2]d]
%%2 = head_slice @x {head_dim=%[3]d, parts=%[4]d, part=%[5]d} : f32[T, %[3]d]
%%3 = rope %%2, @pos, @rope {kind="norm", head_dim=%[3]d, n_rot=%[3]d} : f32[T, %[3]d]
%%4 = head_join %%1, %%3 {heads=1} : f32[T, %[1]d]
kvwrite %%4, @pos, @slot, @k`, row, vector, turned, row/turned, row/turned-1)
	return c
}

func TestLatentKey(t *testing.T) {
	for _, c := range []kerneltest.Case{
		latentKeyTest("f16", 512, 64, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 1, Pos: []int{39}}),
		latentKeyTest("f32", 64, 32, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		latentKeyTest("q8_0", 256, 64, kerneltest.Case{Ctx: 16, Slots: 1, Rows: 16, N: 9}),
		latentKeyTest("f16", 48, 16, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 8, N: 6, Pos: []int{7, 8, 9, 0, 1}, Slot: []int{1, 1, 1, 0}}),
	} {
		c.RunAs(t, "norm/")
	}
}

// TestOtherRowsAreNoLatentKey has groups of the same ops that cache other rows: halves of two heads by turns, and fewer
// elements than the row has.
func TestOtherRowsAreNoLatentKey(t *testing.T) {
	for _, c := range []struct{ old, new string }{
		{"heads=1", "heads=2"},
		{"head_dim=16, parts=3, part=2", "head_dim=16, parts=1, part=0"},
	} {
		other := latentKeyTest("f16", 32, 16, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 1})
		for _, on := range []string{"llvmpipe", "sm_90-cuda"} {
			if len(kernels.Candidates(other.Site(t, kerneltest.Lookup(t, on)))) == 0 {
				t.Error("the row itself has no candidate")
			}
		}
		if other.Group = strings.Replace(other.Group, c.old, c.new, 1); c.new != "heads=2" {
			other.Group = strings.ReplaceAll(other.Group, "f32[T, 16]", "f32[T, 48]")
			other.Group = strings.ReplaceAll(other.Group, "%4 = head_join %1, %3 {heads=1} : f32[T, 48]", "%4 = head_join %1, %3 {heads=1} : f32[T, 80]")
			other.Globals = strings.Replace(other.Globals, "kv @k : f16[1, L, 48]", "kv @k : f16[1, L, 80]", 1)
		}
		for _, on := range []string{"llvmpipe", "sm_90-cuda"} {
			for _, k := range kernels.Candidates(other.Site(t, kerneltest.Lookup(t, on))) {
				t.Errorf("%s: %s", other.Group, k.Kernel)
			}
		}
	}
}

// latentQueryTest has queries of latent attention: vectors that matrices of heads made, and parts of wider heads that
// are rotated.
func latentQueryTest(heads, vector, turned, plain int, c kerneltest.Case) kerneltest.Case {
	key := latentKeyTest("f16", vector, turned, c)
	key.Globals = key.Globals[strings.Index(key.Globals, "table"):strings.Index(key.Globals, "step @x")]
	c.Family = "heads"
	c.Globals = key.Globals + fmt.Sprintf("step @made : f32[T, %d]\nstep @q : f32[T, %d]\n", heads*vector, heads*(plain+turned))
	part := fmt.Sprintf("head_cut @q {stride=%d, first=%d, width=%d}", plain+turned, plain, turned)
	if plain%turned == 0 {
		part = fmt.Sprintf("head_slice @q {head_dim=%d, parts=%d, part=%d}", turned, plain/turned+1, plain/turned)
	}
	c.Group = fmt.Sprintf(`%%2 = %[1]s : f32[T, %[2]d]
%%3 = rope %%2, @pos, @rope {kind="norm", head_dim=%[3]d, n_rot=%[3]d} : f32[T, %[2]d]
%%4 = head_join @made, %%3 {heads=%[4]d} : io f32[T, %[5]d]`, part, heads*turned, turned, heads, heads*(vector+turned))
	return c
}

// attended puts attention behind the queries of c, split if splits is not 0.
func attended(heads, vector, turned, splits int, c kerneltest.Case) kerneltest.Case {
	queries, globals := strings.Replace(c.Group, " : io ", " : ", 1), c.Globals
	c = attentionTest("attention_split", "f16", vector+turned, heads, 1, splits, c)
	c.Group = queries + "\n" + strings.Replace(c.Group, "@q,", "%4,", 1)
	c.Globals = globals + c.Globals[strings.Index(c.Globals, "kv @k"):]
	if splits > 0 {
		c = merged(vector+turned, heads, splits, c)
	}
	return c
}

func TestLatentQueries(t *testing.T) {
	for _, c := range []kerneltest.Case{
		latentQueryTest(20, 512, 64, 192, kerneltest.Case{Ctx: 40, Slots: 1, Rows: 1, Pos: []int{39}}),
		latentQueryTest(3, 64, 32, 24, kerneltest.Case{Ctx: 40, Slots: 2, Rows: 4, N: 3, Pos: []int{7, 7}, Slot: []int{1, 0, 1}}),
		latentQueryTest(4, 48, 16, 32, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 16, N: 9}),
	} {
		c.RunAs(t, "[join/")
		c.RunOn(t, kerneltest.Lookup(t, "sm_90-cuda"))
		for _, splits := range []int{0, 3} {
			if c.Rows > 8 {
				continue
			}
			heads, vector, turned := 20, 512, 64
			if c.Rows > 1 {
				heads, vector, turned = 3, 64, 32
			}
			both := attended(heads, vector, turned, splits, c)
			both.RunAs(t, "[join/")
			both.RunOn(t, kerneltest.Lookup(t, "sm_90-cuda"))
			both.CheckBuild(t)
		}
	}
}

func TestLatentQueriesRounded(t *testing.T) {
	c := latentQueryTest(4, 48, 16, 32, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 16, N: 9})
	c.Group = strings.Replace(c.Group, " : io ", " : ", 1) + "\n%5 = half %4 : io f16[T, 256]"
	c.RunAs(t, "[join/48 rope half]")
}

func TestLatentQueriesOfAnyWidth(t *testing.T) {
	at := kerneltest.Case{Ctx: 64, Slots: 1, Pos: []int{41}}
	attended(4, 48, 16, 3, latentQueryTest(4, 48, 16, 32, at)).CheckWidths(t, "%0")
}

// TestOtherHeadsAreNoLatentQueries has a rotation of halves, one of a part of the run, one of runs that are those of
// two heads, and a processor, whose passes leave these ops apart.
func TestOtherHeadsAreNoLatentQueries(t *testing.T) {
	for _, c := range []struct{ old, new, on string }{
		{`"norm"`, `"neox"`, "sm_90-cuda"},
		{"n_rot=16", "n_rot=8", "sm_90-cuda"},
		{"head_slice @q {head_dim=16, parts=3, part=2}", "head_cut @q {stride=24, first=16, width=8}", "sm_90-cuda"},
		{"", "", "cpu:x86-64-v4"},
	} {
		for _, other := range []kerneltest.Case{
			latentQueryTest(4, 48, 16, 32, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1}),
			attended(4, 48, 16, 0, latentQueryTest(4, 48, 16, 32, kerneltest.Case{Ctx: 64, Slots: 1, Rows: 1})),
		} {
			other.Group = strings.Replace(other.Group, c.old, c.new, 1)
			if c.new == "n_rot=8" {
				other.Globals = strings.Replace(other.Globals, "f32[L, 16]", "f32[L, 8]", 1)
				other.Globals = strings.Replace(other.Globals, ", 0.2, 0.166667, 0.142857, 0.125]", "]", 1)
			}
			for _, k := range kernels.Candidates(other.Site(t, kerneltest.Lookup(t, c.on))) {
				t.Errorf("%s on %s: %s", other.Group, c.on, k.Kernel)
			}
		}
	}
}
