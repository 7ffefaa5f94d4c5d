package kernels_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
)

// latentKeyTest is the row that latent attention caches: a vector that is normed, and a part that is rotated.
func latentKeyTest(kv string, vector, turned int, c siteTest) siteTest {
	c.family = "heads"
	freqs := "1.0"
	for i := 1; i < turned/2; i++ {
		freqs += fmt.Sprintf(", %g", 1/float64(1+i))
	}
	row := vector + turned
	c.globals = fmt.Sprintf(`weight @g : f32[%[1]d]
table @rope {kind="rope", freqs=[%[2]s], mscale=1.0} : f32[L, %[3]d]
step @x : f32[T, %[4]d]
kv @k : %[5]s[%[6]d, L, %[4]d]
`, vector, freqs, turned, row, kv, c.slots)
	c.group = fmt.Sprintf(`%%0 = head_cut @x {stride=%[1]d, first=0, width=%[2]d} : f32[T, %[2]d]
%%1 = rmsnorm %%0, @g {eps=0.125, group=%[2]d} : f32[T, %[2]d]
%%2 = head_slice @x {head_dim=%[3]d, parts=%[4]d, part=%[5]d} : f32[T, %[3]d]
%%3 = rope %%2, @pos, @rope {kind="norm", head_dim=%[3]d, n_rot=%[3]d} : f32[T, %[3]d]
%%4 = head_join %%1, %%3 {heads=1} : f32[T, %[1]d]
kvwrite %%4, @pos, @slot, @k`, row, vector, turned, row/turned, row/turned-1)
	return c
}

func TestLatentKey(t *testing.T) {
	for _, c := range []siteTest{
		latentKeyTest("f16", 512, 64, siteTest{ctx: 40, slots: 1, rows: 1, pos: []int{39}}),
		latentKeyTest("f32", 64, 32, siteTest{ctx: 40, slots: 2, rows: 4, n: 3, pos: []int{7, 7}, slot: []int{1, 0, 1}}),
		latentKeyTest("q8_0", 256, 64, siteTest{ctx: 16, slots: 1, rows: 16, n: 9}),
		latentKeyTest("f16", 48, 16, siteTest{ctx: 40, slots: 2, rows: 8, n: 6, pos: []int{7, 8, 9, 0, 1}, slot: []int{1, 1, 1, 0}}),
	} {
		c.runAs(t, "norm/")
	}
}

// TestHeadsOfMatrices has a matrix for each head of x, which are parts of wider heads.
func TestHeadsOfMatrices(t *testing.T) {
	for _, c := range []siteTest{{rows: 1}, {rows: 8, n: 5}} {
		for _, w := range []struct {
			dtype             string
			stride, first, in int
		}{{"f16", 256, 0, 192}, {"f32", 576, 64, 512}, {"f32", 24, 4, 20}} {
			c.family, c.ctx, c.slots, c.terms = "expert_gemv", 64, 1, w.in
			c.globals = fmt.Sprintf("step @x : f32[T, %d]\nstep @ids : i32[T, 6]\nweight @w : %s[12, 48, %d]\n", 6*w.stride, w.dtype, w.in)
			c.group = fmt.Sprintf("%%0 = head_cut @x {stride=%d, first=%d, width=%d} : f32[T, %d]\n%%1 = expert_linear %%0, @w, @ids {first=0, rows=48} : io f32[T, 288]", w.stride, w.first, w.in, 6*w.in)
			if list := c.candidates(t, c.site(t, llvmpipe(t))); !strings.HasSuffix(list[0].Kernel, " slotwise cut") && c.n == 0 {
				t.Errorf("%s: %s", c.group, list[0].Kernel)
			}
			c.run(t)
			c.runOn(t, lookup(t, "sm_90-cuda"))
			c.checkBuild(t)
		}
	}
}

// TestOtherRowsAreNoLatentKey has groups of the same ops that cache other rows: halves of two heads by turns, and fewer elements than the
// row has.
func TestOtherRowsAreNoLatentKey(t *testing.T) {
	for _, c := range []struct{ old, new string }{
		{"heads=1", "heads=2"},
		{"head_dim=16, parts=3, part=2", "head_dim=16, parts=1, part=0"},
	} {
		other := latentKeyTest("f16", 32, 16, siteTest{ctx: 40, slots: 1, rows: 1})
		for _, on := range []string{"llvmpipe", "sm_90-cuda"} {
			if len(kernels.Candidates(other.site(t, lookup(t, on)))) == 0 {
				t.Error("the row itself has no candidate")
			}
		}
		if other.group = strings.Replace(other.group, c.old, c.new, 1); c.new != "heads=2" {
			other.group = strings.ReplaceAll(other.group, "f32[T, 16]", "f32[T, 48]")
			other.group = strings.ReplaceAll(other.group, "%4 = head_join %1, %3 {heads=1} : f32[T, 48]", "%4 = head_join %1, %3 {heads=1} : f32[T, 80]")
			other.globals = strings.Replace(other.globals, "kv @k : f16[1, L, 48]", "kv @k : f16[1, L, 80]", 1)
		}
		for _, on := range []string{"llvmpipe", "sm_90-cuda"} {
			for _, k := range kernels.Candidates(other.site(t, lookup(t, on))) {
				t.Errorf("%s: %s", other.group, k.Kernel)
			}
		}
	}
}

// TestOtherCutsAreNoHeads has a cut whose runs are those of two matrices.
func TestOtherCutsAreNoHeads(t *testing.T) {
	c := siteTest{ctx: 64, slots: 1, rows: 1}
	c.globals = "step @x : f32[T, 144]\nstep @ids : i32[T, 6]\nweight @w : f32[12, 48, 20]\n"
	c.group = "%0 = head_cut @x {stride=48, first=4, width=40} : f32[T, 120]\n%1 = expert_linear %0, @w, @ids {first=0, rows=48} : io f32[T, 288]"
	for _, on := range []string{"llvmpipe", "sm_90-cuda"} {
		for _, k := range kernels.Candidates(c.site(t, lookup(t, on))) {
			t.Errorf("%s: %s", c.group, k.Kernel)
		}
	}
}

// latentQueryTest has queries of latent attention: vectors that matrices of heads made, and parts of wider heads that are rotated.
func latentQueryTest(heads, vector, turned, plain int, c siteTest) siteTest {
	key := latentKeyTest("f16", vector, turned, c)
	key.globals = key.globals[strings.Index(key.globals, "table"):strings.Index(key.globals, "step @x")]
	c.family = "heads"
	c.globals = key.globals + fmt.Sprintf("step @made : f32[T, %d]\nstep @q : f32[T, %d]\n", heads*vector, heads*(plain+turned))
	part := fmt.Sprintf("head_cut @q {stride=%d, first=%d, width=%d}", plain+turned, plain, turned)
	if plain%turned == 0 {
		part = fmt.Sprintf("head_slice @q {head_dim=%d, parts=%d, part=%d}", turned, plain/turned+1, plain/turned)
	}
	c.group = fmt.Sprintf(`%%2 = %[1]s : f32[T, %[2]d]
%%3 = rope %%2, @pos, @rope {kind="norm", head_dim=%[3]d, n_rot=%[3]d} : f32[T, %[2]d]
%%4 = head_join @made, %%3 {heads=%[4]d} : io f32[T, %[5]d]`, part, heads*turned, turned, heads, heads*(vector+turned))
	return c
}

// attended puts attention behind the queries of c, split if splits is not 0.
func attended(heads, vector, turned, splits int, c siteTest) siteTest {
	queries, globals := strings.Replace(c.group, " : io ", " : ", 1), c.globals
	c = attentionTest("attention_split", "f16", vector+turned, heads, 1, splits, c)
	c.group = queries + "\n" + strings.Replace(c.group, "@q,", "%4,", 1)
	c.globals = globals + c.globals[strings.Index(c.globals, "kv @k"):]
	if splits > 0 {
		c = merged(vector+turned, heads, splits, c)
	}
	return c
}

func TestLatentQueries(t *testing.T) {
	for _, c := range []siteTest{
		latentQueryTest(20, 512, 64, 192, siteTest{ctx: 40, slots: 1, rows: 1, pos: []int{39}}),
		latentQueryTest(3, 64, 32, 24, siteTest{ctx: 40, slots: 2, rows: 4, n: 3, pos: []int{7, 7}, slot: []int{1, 0, 1}}),
		latentQueryTest(4, 48, 16, 32, siteTest{ctx: 64, slots: 1, rows: 16, n: 9}),
	} {
		c.runAs(t, "[join/")
		c.runOn(t, lookup(t, "sm_90-cuda"))
		for _, splits := range []int{0, 3} {
			if c.rows > 8 {
				continue
			}
			heads, vector, turned := 20, 512, 64
			if c.rows > 1 {
				heads, vector, turned = 3, 64, 32
			}
			both := attended(heads, vector, turned, splits, c)
			both.runAs(t, "[join/")
			both.runOn(t, lookup(t, "sm_90-cuda"))
			both.checkBuild(t)
		}
	}
}

func TestLatentQueriesRounded(t *testing.T) {
	c := latentQueryTest(4, 48, 16, 32, siteTest{ctx: 64, slots: 1, rows: 16, n: 9})
	c.group = strings.Replace(c.group, " : io ", " : ", 1) + "\n%5 = half %4 : io f16[T, 256]"
	c.runAs(t, "[join/48 rope half]")
}

func TestLatentQueriesOfAnyWidth(t *testing.T) {
	at := siteTest{ctx: 64, slots: 1, pos: []int{41}}
	attended(4, 48, 16, 3, latentQueryTest(4, 48, 16, 32, at)).checkWidths(t, "%0")
}

// TestOtherHeadsAreNoLatentQueries has a rotation of halves, one of a part of the run, one of runs that are those of two heads, and a processor, whose passes leave these ops apart.
func TestOtherHeadsAreNoLatentQueries(t *testing.T) {
	for _, c := range []struct{ old, new, on string }{
		{`"norm"`, `"neox"`, "sm_90-cuda"},
		{"n_rot=16", "n_rot=8", "sm_90-cuda"},
		{"head_slice @q {head_dim=16, parts=3, part=2}", "head_cut @q {stride=24, first=16, width=8}", "sm_90-cuda"},
		{"", "", "cpu:x86-64-v4"},
	} {
		for _, other := range []siteTest{
			latentQueryTest(4, 48, 16, 32, siteTest{ctx: 64, slots: 1, rows: 1}),
			attended(4, 48, 16, 0, latentQueryTest(4, 48, 16, 32, siteTest{ctx: 64, slots: 1, rows: 1})),
		} {
			other.group = strings.Replace(other.group, c.old, c.new, 1)
			if c.new == "n_rot=8" {
				other.globals = strings.Replace(other.globals, "f32[L, 16]", "f32[L, 8]", 1)
				other.globals = strings.Replace(other.globals, ", 0.2, 0.166667, 0.142857, 0.125]", "]", 1)
			}
			for _, k := range kernels.Candidates(other.site(t, lookup(t, c.on))) {
				t.Errorf("%s on %s: %s", other.group, c.on, k.Kernel)
			}
		}
	}
}
