package ir

import (
	"fmt"
	"strings"
	"testing"
)

// TestDeltaLogOfState: the rows of a delta rule's state behind its value dims are a log, whose size says in how many
// rows the op may defer what it writes.
func TestDeltaLogOfState(t *testing.T) {
	for _, c := range []struct {
		rows  int
		attr  string
		fails string
	}{
		{8, "", ""}, {12, "", ""}, {16, ", defer=4", ""}, {24, ", defer=8", ""},
		{8, ", defer=4", "updates of 4 rows"}, {12, ", defer=4", "updates of 4 rows"},
		{7, "", "a log of -1 rows"}, {10, "", "a log of 2 rows"}, {13, "", "a log of 5 rows"}, {26, "", "a log of 18 rows"},
	} {
		p, err := Parse(fmt.Sprintf(`zir 1
stage import
model arch="toy" name="" path="" source="" target="" ctx=64 slots=2 layers=1

state @s : f32[2, 2, %d, 8]
step @x : f32[T, 8]
step @v : f32[T, 16]
step @a : f32[T, 2]
step @pos : i32[T]
step @slot : i32[T]

func "f" rows=3 sequences=many run=3 class=exact {
  %%0 = deltanet @x, @x, @v, @a, @a, @s, @pos, @slot {head_dim=8, k_heads=1, v_heads=2, map="mod", scale=0.5%s} : f32[T, 16]
}
`, c.rows, c.attr))
		switch {
		case c.fails == "":
			if err != nil {
				t.Errorf("%d rows%s: %v", c.rows, c.attr, err)
			} else if log := DeltaLog(p.Global("s").Type); log != (c.rows-8)/2 {
				t.Errorf("%d rows: a log of %d", c.rows, log)
			}
		case err == nil || !strings.Contains(err.Error(), c.fails):
			t.Errorf("%d rows%s: %v, want %s", c.rows, c.attr, err, c.fails)
		}
	}
}
