package site

import "github.com/zincc-dev/zincc/ir"

// Rewrite is a change that a family wants in the program around a site, so that one of its kernels can
// then take the group. One of its parts is set.
type Rewrite struct {
	// Family is the name of the family that wants it.
	Family string
	// Round names the op (half, fixed12, fixed8 or bfloat16) that is to round the first operand of
	// Readers, ops of the group. Units is the number of units of a row that a lane then has, if the family says so.
	Round   string
	Readers []*ir.Op
	Units   int
	// Pack has the layouts in which op pack12 is to leave what Readers read and fixed12 rounds now, for as many
	// rows as Columns at a time.
	Pack    string
	Columns int
	// Each is the elements of a part of a row. A dispatch behind that of Readers adds up products of parts, and does
	// what the group does with results.
	Each int
	// Workspace is the number of sums of a row, f32, that the workgroups of a split-K product leave for each other.
	// Tiling describes the product then. Rows is the rows of x of the group, if the family says so. Only one of several
	// such rewrites can be applied.
	Workspace int
	Tiling    *Tiling
	Sums      string // what the sums of that product depend on, as in Candidate
	Rows      int
	// Lanes are the orders in which op tile is to lay out the first operand of Readers; Tiling describes the product
	// then. It excludes a workspace.
	Lanes string
	// Tiles is the number of workgroups of attention if positions are not split
	// among more, TileRows the rows of q of each, TileKV the positions that they take at a time.
	Tiles, TileRows, TileKV int
	// Merges is what positions of a split are a multiple of if such workgroups can merge splits themselves; else 0.
	Merges int
}

// Half wants x rounded to f16 for the ops of the group that read it.
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

// Fixed wants the first operand of readers rounded by fixed12, fixed8 or bfloat16; nothing if there are no readers.
func Fixed(round string, readers []*ir.Op) []Rewrite {
	if len(readers) == 0 {
		return nil
	}
	return []Rewrite{{Round: round, Readers: readers}}
}
