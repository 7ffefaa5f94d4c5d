package passes

import "github.com/zincc-dev/zincc/ir"

// sinkLastRow makes a prefill entry compute logits for its last row only: it
// rebuilds what leads to the logits with one row, up to the ops that mix rows or
// whose results others need too, and takes the last row of those.
func sinkLastRow(f *ir.Func) error {
	if KindOf(f) != Prefill {
		return nil
	}
	uses := f.Uses()
	s := &lastRow{b: ir.NewBuilder(f), uses: uses, single: map[*ir.Value]*ir.Value{}, dead: map[*ir.Op]bool{}}
	old := f.Groups
	f.Groups = nil
	for _, g := range old {
		op := g.Ops[0]
		if op.Kind.Name == "argmax" {
			logits := op.Args[0]
			one, err := s.row(logits)
			if err != nil {
				return err
			}
			one.Class, logits.Class = logits.Class, ir.Arena
			next, err := s.b.Op("argmax", op.Attrs, one)
			if err != nil {
				return err
			}
			next.Class = op.Result.Class
			s.single[op.Result] = next
			continue
		}
		if op.Kind.Name == "advance" {
			if next := s.single[op.Args[0]]; next != nil {
				op.Args[0] = next
			}
		}
		f.Groups = append(f.Groups, g)
	}
	keep := f.Groups[:0]
	for _, g := range f.Groups {
		if !s.dead[g.Ops[0]] {
			keep = append(keep, g)
		}
	}
	f.Groups = keep
	return nil
}

type lastRow struct {
	b      *ir.Builder
	uses   map[*ir.Value][]*ir.Op
	single map[*ir.Value]*ir.Value // value -> its last row
	dead   map[*ir.Op]bool         // ops that were rebuilt
}

// row returns the last row of v, by rebuilding v's op on last rows if nobody
// else reads v and each row of it depends on that row of the operands alone.
func (s *lastRow) row(v *ir.Value) (*ir.Value, error) {
	if r := s.single[v]; r != nil {
		return r, nil
	}
	var r *ir.Value
	var err error
	if op := v.Def; op != nil && s.live(v) <= 1 && rowwise(op) {
		args := append([]*ir.Value(nil), op.Args...)
		s.dead[op] = true
		for i, a := range args {
			if a.Type.Shape[0] == ir.T {
				if args[i], err = s.row(a); err != nil {
					return nil, err
				}
			}
		}
		r, err = s.b.Op(op.Kind.Name, op.Attrs, args...)
	} else {
		n := s.n()
		r, err = s.b.Op("last_row", nil, v, n)
	}
	s.single[v] = r
	return r, err
}

// live counts the readers of v that are not rebuilt.
func (s *lastRow) live(v *ir.Value) int {
	n := 0
	for _, u := range s.uses[v] {
		if !s.dead[u] {
			n++
		}
	}
	return n
}

// n finds the step block's row count among the operands of advance.
func (s *lastRow) n() *ir.Value {
	for v, uses := range s.uses {
		for _, u := range uses {
			if u.Kind.Name == "advance" && u.Args[4] == v {
				return v
			}
		}
	}
	return nil
}

func rowwise(op *ir.Op) bool {
	switch op.Kind.Fusion {
	case ir.MatMul, ir.RowNorm, ir.Elementwise:
		return true
	}
	return false
}
