package site

import "github.com/zincc-dev/zincc/ir"

// Rewrite is what a family wants of the program around a site, so that a kernel of its own can
// take the group then. One of its parts is set.
type Rewrite struct {
	// Family is the one that wants it.
	Family string
	// Round names the op, half, fixed12, fixed8 or bfloat16, that rounds what Readers, ops of the group,
	// have as their first operand, and Units those of a row that a lane has then, if the family says so.
	Round   string
	Readers []*ir.Op
	Units   int
	// Workspace is the sums of a row, f32, that the workgroups of a split-K product leave for
	// each other, Tiling what they do then, and Rows those of x that the group has, if the family says so. Of several
	// such wishes one can be granted.
	Workspace int
	Tiling    *Tiling
	Rows      int
	// Lanes are the orders in which what Readers have as their first operand is to lie in tiles (op tile), and
	// Tiling what is done then. It is a rival of workspaces.
	Lanes string
	// Tiles and TileRows are how many workgroups attention has if the positions are not split
	// among more, the rows of q of each, and the positions that they take at a time.
	Tiles, TileRows, TileKV int
}

// Half is the wish that the ops of the group that read x have it as f16.
func Half(s *Site, x *ir.Value) []Rewrite {
	r := Rewrite{Round: "half"}
	for _, op := range s.Group.Ops {
		switch op.Kind.Name {
		case "linear", "expert_linear", "attention", "attention_split":
			if op.Args[0] == x {
				r.Readers = append(r.Readers, op)
			}
		}
	}
	return []Rewrite{r}
}

// Fixed is the wish that readers have their first operand rounded as they read it, by fixed12, fixed8 or bfloat16; none if there are no readers.
func Fixed(round string, readers []*ir.Op) []Rewrite {
	if len(readers) == 0 {
		return nil
	}
	return []Rewrite{{Round: round, Readers: readers}}
}
