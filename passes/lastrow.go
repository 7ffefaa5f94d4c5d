package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// sinkLastRows makes prefill entries compute logits for the last row of each prompt only, and makes an embed entry that
// uses the last row take it early.
func sinkLastRows(p *ir.Program) error {
	most := 0
	for _, f := range p.Funcs {
		if f.Part > 0 {
			most = max(most, f.Heads())
		}
	}
	var heads *ir.Value
	if most > 0 {
		heads = p.AddGlobal(ir.StepHeads, ir.Step, ir.MakeType(ir.I32, ir.Dim(most)))
	}
	return each(func(f *ir.Func) error { return sinkLastRow(f, heads) })(p)
}

// sinkLastRow rebuilds on one row, or on those of f's heads, the ops that work row by row and lead only to the logits,
// or to such a row, and takes these rows of their inputs.
func sinkLastRow(f *ir.Func, heads *ir.Value) error {
	if (f.Class == ir.ExactStep || !hasOp(f, "argmax")) && !hasOp(f, "last_row") {
		return nil
	}
	uses := f.Uses()
	ops := f.Ops()
	s := &lastRow{b: ir.NewBuilder(f), f: f, heads: heads, rebuilt: map[*ir.Op]bool{}, single: map[*ir.Value]*ir.Value{}}
	for _, op := range slices.Backward(ops) {
		onlyTail := op.Result != nil
		if onlyTail {
			for _, u := range uses[op.Result] {
				onlyTail = onlyTail && s.rebuilt[u]
			}
		}
		switch {
		case op.Kind.Name == "advance":
			s.n = op.Args[4]
		case op.Kind.Name == "last_row":
			s.n = op.Args[1]
			s.rebuilt[op] = true
		case op.Kind.Name == "argmax", onlyTail && op.Kind.RowWise:
			s.rebuilt[op] = true
		}
	}
	f.Groups = nil
	for _, op := range ops {
		switch {
		case op.Kind.Name == "argmax":
			next, err := s.row(op.Result)
			if err != nil {
				return err
			}
			s.single[op.Result] = next
		case op.Kind.Name == "last_row":
			r, err := s.row(op.Args[0])
			if err != nil {
				return err
			}
			r.Class = op.Result.Class
		case s.rebuilt[op] && op.Result.Class == ir.IO && len(uses[op.Result]) == 0:
			if _, err := s.row(op.Result); err != nil {
				return err
			}
		case op.Kind.Name == "advance":
			op.Args[0] = s.single[op.Args[0]]
			fallthrough
		case !s.rebuilt[op]:
			f.Groups = append(f.Groups, &ir.Group{Ops: []*ir.Op{op}})
		}
	}
	return nil
}

type lastRow struct {
	b       *ir.Builder
	f       *ir.Func
	heads   *ir.Value               // rows that get logits, in functions with parts
	n       *ir.Value               // rows of the step
	rebuilt map[*ir.Op]bool         // ops that are computed for these rows only
	single  map[*ir.Value]*ir.Value // value -> these rows of it
}

// row returns the last row of v, or those of heads.
func (s *lastRow) row(v *ir.Value) (*ir.Value, error) {
	if r := s.single[v]; r != nil {
		return r, nil
	}
	var r *ir.Value
	var err error
	if op := v.Def; op != nil && s.rebuilt[op] {
		args := slices.Clone(op.Args)
		for i, a := range args {
			if a.Type.Shape[0] == ir.T {
				if args[i], err = s.row(a); err != nil {
					return nil, err
				}
			}
		}
		r, err = s.b.Op(op.Kind.Name, op.Attrs, args...)
	} else if s.f.Part > 0 {
		r, err = s.b.Op("take_rows", ir.Attrs{{Name: "count", Value: int64(s.f.Heads())}}, v, s.heads)
	} else {
		r, err = s.b.Op("last_row", nil, v, s.n)
	}
	if err != nil {
		return nil, err
	}
	r.Class = v.Class
	if v.IsGlobal() {
		r.Class = ir.Arena
	}
	s.single[v] = r
	return r, nil
}
