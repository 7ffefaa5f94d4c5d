package codegen_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
)

// TestDeferStates: exact steps of more than 8 rows of many sequences defer what they write of a delta rule's state,
// which gets a log then, or has one already. Others do not.
func TestDeferStates(t *testing.T) {
	const narrow, wide = `rows=8 sequences=many run=8 class=exact`, `rows=16 sequences=many run=8 class=exact`
	for _, c := range []struct {
		steps, attr string
		slots       int
		have        int // rows of the state's heads of 64
		log, defers int
	}{
		{wide, "", 12, 64, 3, 3},
		{wide, "", 12, 80, 8, 8},
		{wide, ", defer=8", 12, 80, 8, 8},
		{narrow, "", 12, 64, 0, 0},
		{narrow, "", 12, 72, 4, 0},
		{wide, "", 1, 64, 0, 0},
		{`rows=16 sequences=many run=16 class=alike`, "", 12, 64, 0, 0},
	} {
		p, err := ir.Parse(fmt.Sprintf(`zir 1
stage fuse
model arch="" name="" path="" source="" target="" ctx=64 slots=%[1]d layers=1

state @s : f32[%[1]d, 2, %[2]d, 64]
step @k : f32[T, 64]
step @v : f32[T, 128]
step @b : f32[T, 2]
step @pos : i32[T]
step @slot : i32[T]

func "f" %[3]s {
  group "g" stage=0 waits=0 {
    %%0 = deltanet @k, @k, @v, @b, @b, @s, @pos, @slot {head_dim=64, k_heads=1, v_heads=2, map="mod", scale=0.5%[4]s} : io f32[T, 128]
  }
}
`, c.slots, c.have, c.steps, c.attr))
		if err != nil {
			t.Fatal(err)
		}
		table := codegen.Table(kerneltest.Lookup(t, "sm_90-cuda"), 16)
		i := slices.IndexFunc(table, func(pass passes.Pass) bool { return pass.Name == "DeferStates" })
		if err := table[i].Run(p); err != nil {
			t.Errorf("%s, %d rows%s: %v", c.steps, c.have, c.attr, err)
			continue
		}
		op := p.Funcs[0].Groups[0].Ops[0]
		named := 0
		for _, a := range op.Attrs {
			if a.Name == "defer" {
				named++
			}
		}
		if log, defers := ir.DeltaLog(p.Global("s").Type), op.Attrs.Int("defer"); log != c.log || defers != c.defers || named > 1 {
			t.Errorf("%s, %d slots, %d rows%s: a log of %d, %d deferred, named %d times; want %d and %d",
				c.steps, c.slots, c.have, c.attr, log, defers, named, c.log, c.defers)
		}
	}
}
