package kerneltest

import (
	"fmt"
	"strings"
)

// DeltaLog is R of the log of DeltaTest.
const DeltaLog = 3

// DeltaTest is a gated DeltaNet layer of heads of dim over keys, with what its
// group does of: conv, norm, decay, sigmoid, gated, log (its state has one), defer (its rows add to that).
func DeltaTest(does, headMap string, dim, keys, heads int, c Case) Case {
	c.Family = "delta"
	has := func(name string) bool { return strings.Contains(does, name) }
	key, value := keys*dim, heads*dim
	width := 2*key + value
	state, rows, more := "s", dim, ""
	if has("log") {
		state, rows = "logged", dim+2*DeltaLog
	}
	if has("defer") {
		more = fmt.Sprintf(", defer=%d", DeltaLog)
	}
	c.Globals = fmt.Sprintf(`step @m : f32[T, %d]
step @a : f32[T, %d]
step @b : f32[T, %d]
step @z : f32[T, %d]
weight @conv : f32[%d, 4]
weight @dt : f32[%d]
weight @rate : f32[%d]
weight @gain : f32[%d]
state @ring : f32[%d, 16, %d]
state @%s : f32[%d, %d, %d, %d]
`, width, heads, heads, value, width, heads, heads, dim, c.Slots, width, state, c.Slots, heads, rows, dim)
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
	y := op("deltanet %s, %s, %s, %s, %s, @%s, @pos, @slot {head_dim=%d, k_heads=%d, v_heads=%d, map=%q, scale=%g%s} : f32[T, %d]",
		q, k, v, g, beta, state, dim, keys, heads, headMap, 0.125, more, value)
	if has("gated") {
		op("gated_rmsnorm %s, @gain, @z {eps=1e-06, group=%d} : f32[T, %d]", y, dim, value)
	}
	last := len(ops) - 1
	ops[last] = strings.Replace(ops[last], " : f32", " : io f32", 1)
	if has("conv") {
		ops = append(ops, "conv_write @m, @ring, @pos, @slot")
	}
	c.Group = strings.Join(ops, "\n")
	return c
}

const DeltaAll = "conv norm decay sigmoid gated"
