package kernels_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// deltaTest is a gated DeltaNet layer of heads of dim over keys, with what its
// group does of: conv, norm, decay, sigmoid, gated.
func deltaTest(does, headMap string, dim, keys, heads int, c siteTest) siteTest {
	c.family = "delta"
	has := func(name string) bool { return strings.Contains(does, name) }
	key, value := keys*dim, heads*dim
	width := 2*key + value
	c.globals = fmt.Sprintf(`step @m : f32[T, %d]
step @a : f32[T, %d]
step @b : f32[T, %d]
step @z : f32[T, %d]
weight @conv : f32[%d, 4]
weight @dt : f32[%d]
weight @rate : f32[%d]
weight @gain : f32[%d]
state @ring : f32[%d, 16, %d]
state @s : f32[%d, %d, %d, %d]
`, width, heads, heads, value, width, heads, heads, dim, c.slots, width, c.slots, heads, dim, dim)
	var ops []string
	op := func(format string, args ...any) string {
		name := fmt.Sprintf("%%%d", len(ops))
		ops = append(ops, name+" = "+fmt.Sprintf(format, args...))
		return name
	}
	m := "@m"
	if has("conv") {
		m = op("conv1d @m, @conv, @ring, @pos, @slot : f32[T, %d]", width)
	}
	q := op("slice %s {first=0, width=%d} : f32[T, %d]", m, key, key)
	k := op("slice %s {first=%d, width=%d} : f32[T, %d]", m, key, key, key)
	v := op("slice %s {first=%d, width=%d} : f32[T, %d]", m, 2*key, value, value)
	eps := 1e-6
	if has("floor") { // for the longest of the keys
		eps = 8.5
	}
	if has("norm") {
		q = op("l2norm %s {eps=%g, group=%d} : f32[T, %d]", q, eps, dim, key)
		k = op("l2norm %s {eps=%g, group=%d} : f32[T, %d]", k, eps, dim, key)
	}
	g, beta := "@a", "@b"
	if has("decay") {
		g = op("decay @a, @dt, @rate : f32[T, %d]", heads)
	}
	if has("sigmoid") {
		beta = op("sigmoid @b : f32[T, %d]", heads)
	}
	y := op("deltanet %s, %s, %s, %s, %s, @s, @pos, @slot {head_dim=%d, k_heads=%d, v_heads=%d, map=%q, scale=%g} : f32[T, %d]",
		q, k, v, g, beta, dim, keys, heads, headMap, 0.125, value)
	if has("gated") {
		op("gated_rmsnorm %s, @gain, @z {eps=1e-06, group=%d} : f32[T, %d]", y, dim, value)
	}
	last := len(ops) - 1
	ops[last] = strings.Replace(ops[last], " : f32", " : io f32", 1)
	if has("conv") {
		ops = append(ops, "conv_write @m, @ring, @pos, @slot")
	}
	c.group = strings.Join(ops, "\n")
	return c
}

const deltaAll = "conv norm decay sigmoid gated"

func TestDelta(t *testing.T) {
	for _, c := range some([]siteTest{
		deltaTest(deltaAll, "mod", 128, 2, 4, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		deltaTest(deltaAll, "mod", 128, 1, 2, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{0}}),
		deltaTest(deltaAll, "div", 64, 2, 6, siteTest{ctx: 64, slots: 1, rows: 8, n: 5, pos: []int{14}}), // over the end of the ring
		deltaTest(deltaAll, "mod", 32, 3, 3, siteTest{ctx: 64, slots: 1, rows: 8, pos: []int{0}}),
		deltaTest(deltaAll, "mod", 64, 1, 3, siteTest{ctx: 64, slots: 4, rows: 4, pos: []int{20, 21, 0, 33}, slot: []int{2, 1, 0, 3}}),
		deltaTest(deltaAll, "div", 96, 1, 2, siteTest{ctx: 64, slots: 2, rows: 8, n: 6, pos: []int{7, 8, 9, 0, 1}, slot: []int{1, 1, 1, 0}}),
		deltaTest(deltaAll, "mod", 16, 2, 4, siteTest{ctx: 64, slots: 1, rows: 8, n: 7, pos: []int{3}}),
		deltaTest(deltaAll, "div", 48, 1, 2, siteTest{ctx: 64, slots: 1, rows: 2, pos: []int{3}}),
		deltaTest("conv norm decay sigmoid", "mod", 128, 1, 2, siteTest{ctx: 64, slots: 1, rows: 2, pos: []int{31}}),
		deltaTest("norm decay sigmoid gated", "mod", 64, 2, 4, siteTest{ctx: 64, slots: 2, rows: 40, n: 37, slot: []int{1}}),
		deltaTest("norm decay sigmoid gated", "div", 128, 1, 3, siteTest{ctx: 64, slots: 1, rows: 17, pos: []int{5}}),
		deltaTest("norm decay sigmoid", "mod", 128, 1, 2, siteTest{ctx: 64, slots: 1, rows: 256, n: 45, pos: []int{5}}), // blocks in one go, and one of 5
		deltaTest("norm decay sigmoid", "div", 256, 1, 1, siteTest{ctx: 64, slots: 1, rows: 3, pos: []int{5}}),
		deltaTest("norm floor decay sigmoid", "mod", 64, 1, 1, siteTest{ctx: 64, slots: 1, rows: 2, pos: []int{5}}),
		deltaTest("norm decay sigmoid gated", "div", 160, 1, 1, siteTest{ctx: 64, slots: 1, rows: 9, pos: []int{5}}),
	}) {
		c.run(t)
		c.runOn(t, processor(t))
		c.checkBuild(t)
	}
}

// TestDeltaAsks runs a token of one slot as it is through CUDA, in the interpreter: with the weights loaded first and the ring written last.
func TestDeltaAsks(t *testing.T) {
	on := lookup(t, "sm_90-cuda")
	for _, c := range []siteTest{
		deltaTest(deltaAll, "mod", 128, 2, 4, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{40}}),
		deltaTest(deltaAll, "mod", 128, 1, 2, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{0}}),
		deltaTest(deltaAll, "div", 32, 3, 3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{2}}), // fewer lanes than channels
		deltaTest("conv norm sigmoid", "mod", 64, 1, 3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{16}}),
		deltaTest("norm decay gated", "mod", 64, 1, 3, siteTest{ctx: 64, slots: 1, rows: 1, pos: []int{5}}),
	} {
		if list := c.candidates(t, c.site(t, on)); !strings.Contains(list[0].Kernel, " asks") {
			t.Errorf("%s: %s", c.group, list[0].Kernel)
		}
		c.runOn(t, on)
	}
}

func TestDeltaOfAnyWidth(t *testing.T) {
	c := deltaTest(deltaAll, "mod", 64, 2, 4, siteTest{ctx: 64, slots: 1, pos: []int{12}})
	c.checkWidths(t, "%9")
}

// TestDeltaChunks runs the same rows in steps of different lengths, from the state
// that the step before has left.
func TestDeltaChunks(t *testing.T) {
	c := deltaTest("norm decay sigmoid gated", "mod", 64, 1, 2, siteTest{ctx: 64, slots: 1})
	c.rows = 29
	y, state := c.steps(t, 29)
	for _, lengths := range [][]int{{1, 28}, {8, 8, 13}, {10, 19}, {3, 3, 3, 20}} {
		y2, state2 := c.steps(t, lengths...)
		if !bytes.Equal(y, y2) || !bytes.Equal(state, state2) {
			t.Errorf("chunks of %d differ from one of 29", lengths)
		}
	}
}

// steps runs the test's rows, which start at position 0, in steps of these
// lengths, and returns the results and the state after the last one.
func (c siteTest) steps(t *testing.T, lengths ...int) (y, state []byte) {
	t.Helper()
	whole := c
	for _, rows := range lengths {
		first := len(y)
		c.rows, c.pos = rows, []int{at(whole.pos, 0, 1)}
		s := c.site(t, lookup(t, "llvmpipe"))
		k := c.candidates(t, s)[0]
		data := map[*ir.Value][]byte{}
		row := func(v *ir.Value) int { n, _ := v.Type.Bytes(1, c.ctx); return int(n) }
		done := first
		for _, o := range k.Operands {
			if o.Name == "y" {
				done = first / row(o.Value)
			}
		}
		c.pos = []int{done}
		for _, o := range k.Operands {
			v := o.Value
			switch {
			case o.Name == "state" && state != nil:
				data[v] = state
			case v.Class == ir.Step && v.Type.DType == ir.F32:
				data[v] = whole.value(v)[done*row(v):][:rows*row(v)]
			default:
				data[v] = c.value(v)
			}
		}
		for v, b := range interpretOnly(t, k, func(v *ir.Value) int { return len(data[v]) }, data) {
			switch v {
			case k.Operands[len(k.Operands)-1].Value:
				y = append(y, b...)
			case k.Operands[len(k.Operands)-2].Value:
				state = b
			}
		}
	}
	return y, state
}

// TestDeltaApart has q, k and v in values of their own. Without norms errors grow
// from token to token, so that case has one.
func TestDeltaApart(t *testing.T) {
	for does, n := range map[string]int{"": 1, "norm": 4} {
		c := deltaTest(does, "div", 64, 2, 4, siteTest{ctx: 64, slots: 1, rows: 5, n: n, pos: []int{40}})
		c.globals += "step @q : f32[T, 128]\nstep @k : f32[T, 128]\nstep @v : f32[T, 256]\n"
		c.group = c.group[strings.Index(c.group, "%3"):] // without the slices
		c.group = strings.NewReplacer("%0", "@q", "%1", "@k", "%2", "@v").Replace(c.group)
		c.run(t)
		c.checkBuild(t)
	}
}

func TestConv(t *testing.T) {
	globals := "step @m : f32[T, %[1]d]\nweight @w : f32[%[1]d, %[2]d]\nstate @ring : f32[3, 16, %[1]d]\n"
	for _, c := range []siteTest{
		{rows: 20, n: 18, pos: []int{5}, slot: []int{2}},
		{rows: 40, pos: []int{0}},
		{rows: 1, pos: []int{2}},
		{rows: 6, n: 5, pos: []int{16, 17, 18, 0, 1}, slot: []int{2, 0, 0, 1, 1}},
	} {
		c.family, c.ctx, c.slots = "conv", 64, 3
		for _, taps := range []int{4, 3} {
			c.globals = fmt.Sprintf(globals, 300, taps)
			for _, c.group = range []string{"%0 = conv1d @m, @w, @ring, @pos, @slot : io f32[T, 300]", "conv_write @m, @ring, @pos, @slot"} {
				c.run(t)
				c.checkBuild(t)
			}
		}
	}
}

// deltaChunkTest is what makes the chunks of a delta rule, or the rule that uses them.
func deltaChunkTest(does, headMap string, dim, keys, heads int, c siteTest) siteTest {
	c = deltaTest("norm decay sigmoid", headMap, dim, keys, heads, c)
	key, value := keys*dim, heads*dim
	attrs := fmt.Sprintf("head_dim=%d, k_heads=%d, v_heads=%d, map=%q", dim, keys, heads, headMap)
	q := fmt.Sprintf("%%0 = slice @m {first=0, width=%d} : f32[T, %d]\n", key, key)
	k := fmt.Sprintf("%%1 = slice @m {first=%d, width=%d} : f32[T, %d]\n", key, key, key)
	v := fmt.Sprintf("%%2 = slice @m {first=%d, width=%d} : f32[T, %d]\n", 2*key, value, value)
	switch does {
	case "chunk":
		c.family = "delta_chunk"
		c.group = q + k + fmt.Sprintf("%%2 = decay @a, @dt, @rate : f32[T, %d]\n%%3 = sigmoid @b : f32[T, %d]\n", heads, heads) +
			fmt.Sprintf("%%4 = delta_chunk %%0, %%1, %%2, %%3 {%s, scale=0.125, eps=1e-06} : io f32[T, %d]", attrs, heads*ir.DeltaChunkWidth)
	case "chunked":
		c.family = "delta_chunked"
		c.globals += fmt.Sprintf("step @chunk : f32[T, %d]\n", heads*ir.DeltaChunkWidth)
		c.group = q + k + v + fmt.Sprintf("%%3 = deltanet_chunked %%0, %%1, %%2, @chunk, @s, @pos, @slot {%s} : io f32[T, %d]", attrs, value)
	}
	return c
}

func TestDeltaChunk(t *testing.T) {
	for _, c := range []siteTest{
		deltaChunkTest("chunk", "mod", 128, 2, 4, siteTest{ctx: 64, slots: 1, rows: 256, n: 21, pos: []int{5}}),
		deltaChunkTest("chunk", "div", 64, 2, 6, siteTest{ctx: 64, slots: 1, rows: 256, n: 8, pos: []int{5}}),
	} {
		c.run(t)
		c.checkBuild(t)
	}
}

func TestDeltaChunked(t *testing.T) {
	for _, c := range some([]siteTest{
		deltaChunkTest("chunked", "mod", 128, 2, 4, siteTest{ctx: 64, slots: 1, rows: 256, n: 21, pos: []int{5}}),
		deltaChunkTest("chunked", "div", 64, 1, 2, siteTest{ctx: 64, slots: 2, rows: 256, n: 17, pos: []int{0}, slot: []int{1}}),
		deltaChunkTest("chunked", "mod", 128, 1, 3, siteTest{ctx: 64, slots: 1, rows: 256, n: 1, pos: []int{9}}), // less than is copied ahead
		deltaChunkTest("chunked", "mod", 64, 1, 1, siteTest{ctx: 64, slots: 1, rows: 256, n: 40, pos: []int{0}}), // whole chunks
	}) {
		for _, name := range []string{"sm_90", "sm_90-cuda"} { // where lanes copy
			c.alone = true
			c.runOn(t, lookup(t, name))
		}
		c.checkBuild(t)
		c.family = "delta_thrice"
		on := lookup(t, "sm_90-cuda")
		c.runOn(t, on)
		for _, k := range c.candidates(t, c.site(t, on)) {
			assembled(t, k)
		}
	}
}
