package kernel

import (
	"math"
	"testing"
)

// TestWeigh counts the additions of a kernel's branches and loops. Each body is 100
// of them, which nothing else comes near.
func TestWeigh(t *testing.T) {
	type wrap func(b *Builder, n, fromMemory Value, body func())
	var rows *Buffer // whose first element is known
	for _, c := range []struct {
		name              string
		wrap              wrap
		executed, assumed float64 // bodies
	}{
		{"plain", func(b *Builder, n, m Value, body func()) { body() }, 1, 1},
		{"loop over memory", func(b *Builder, n, m Value, body func()) { b.For(0, m, 1, func(Value) { body() }) }, 8, 8},
		{"loop over a constant", func(b *Builder, n, m Value, body func()) { b.For(0, n, 1, func(Value) { body() }) }, 40, 8},
		{"turns of lanes", func(b *Builder, n, m Value, body func()) { b.For(b.SubgroupLane(), n, 32, func(Value) { body() }) }, 2, 8},
		{"no turn", func(b *Builder, n, m Value, body func()) { b.For(n, 7, 1, func(Value) { body() }) }, 0, 0},
		{"no turn of this workgroup", func(b *Builder, n, m Value, body func()) {
			b.For(b.Add(n, b.WorkgroupID(0)), 7, 1, func(Value) { body() })
		}, 0, 8},
		{"short loop", func(b *Builder, n, m Value, body func()) { b.For(0, 4, 1, func(Value) { body() }) }, 4, 4},
		{"unrolled loop", func(b *Builder, n, m Value, body func()) { b.ForUnroll(0, 20, 1, func(Value) { body() }) }, 20, 20},
		{"loop that stays one", func(b *Builder, n, m Value, body func()) { b.ForRolled(0, 4, 1, func(Value) { body() }) }, 4, 8},
		{"loop in a loop", func(b *Builder, n, m Value, body func()) {
			b.For(0, n, 1, func(Value) { b.For(0, m, 1, func(Value) { body() }) })
		}, 160, 32},
		{"loop over rows", func(b *Builder, n, m Value, body func()) { b.For(0, rows.Load(U32, 0), 1, func(Value) { body() }) }, 20, 8},
		{"loop over what follows them", func(b *Builder, n, m Value, body func()) { b.For(0, rows.Load(U32, 1), 1, func(Value) { body() }) }, 8, 8},
		{"this workgroup", func(b *Builder, n, m Value, body func()) { b.If(b.Eq(b.WorkgroupID(0), 3), body) }, 1, 0.5},
		{"another workgroup", func(b *Builder, n, m Value, body func()) { b.If(b.Lt(b.Add(b.WorkgroupID(1), n), 7), body) }, 0, 0.5},
		{"either", func(b *Builder, n, m Value, body func()) { b.IfElse(b.Eq(b.WorkgroupID(0), 2), body, body) }, 1, 1},
		{"first lane", func(b *Builder, n, m Value, body func()) { b.If(b.Lt(b.LocalID(), 7), body) }, 1, 0.75},
		{"memory", func(b *Builder, n, m Value, body func()) { b.If(b.Lt(m, 7), body) }, 0.5, 0.5},
		{"lanes and memory", func(b *Builder, n, m Value, body func()) { b.If(b.Lt(b.Add(m, b.LocalID()), 7), body) }, 0.75, 0.75},
		{"after the end", func(b *Builder, n, m Value, body func()) { b.ReturnIf(b.Eq(b.WorkgroupID(0), 3)); body() }, 0, 0.5},
		{"not the end", func(b *Builder, n, m Value, body func()) { b.ReturnIf(b.Eq(b.WorkgroupID(0), 4)); body() }, 1, 0.5},
		{"no end of constants", func(b *Builder, n, m Value, body func()) { b.ReturnIf(b.Eq(n, 4)); body() }, 1, 1},
		{"memory ends it", func(b *Builder, n, m Value, body func()) { b.ReturnIf(b.Lt(m, 7)); body() }, 1, 0.5},
		{"the end of lanes", func(b *Builder, n, m Value, body func()) { b.ReturnIf(b.Ge(b.LocalID(), 7)); body() }, 1, 0.75},
	} {
		f, err := Build("weigh", func(b *Builder) {
			x, y := b.Arg("x", Read), b.Arg("y", Write)
			rows = b.Arg("rows", Read)
			n := b.SpecU32("n", 1)
			b.Workgroup(64)
			sum := b.Var(F32.Vec(4), 0)
			c.wrap(b, n, x.Load(U32, 0), func() {
				for range 25 {
					sum.Set(b.Add(sum.Get(), sum.Get())) // 4 operations
				}
			})
			y.Store(b.LocalID(), sum.Get())
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		executed, assumed := f.Weigh(map[uint32]uint32{0: 40}, [3]uint32{3, 5, 0}, map[string]uint32{"rows": 20})
		const body = 25 * 4
		if math.Abs(executed/body-c.executed) > 0.2+0.05*c.executed || math.Abs(assumed/body-c.assumed) > 0.2+0.05*c.assumed {
			t.Errorf("%s: executes %.2f bodies, assumed %.2f; want %v, %v", c.name, executed/body, assumed/body, c.executed, c.assumed)
		}
	}
}
