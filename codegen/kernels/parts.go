package kernels

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// Parts does what a rewrite wants that has Pack: it takes ops out of g for two groups before it. The first one rounds
// and packs what readers of g read; a norm of g moves there, and leaves squares. The second multiplies parts of rows.
// What is left of g adds these up, finds the scales of rows from the squares, and does the rest.
func Parts(b *ir.Builder, g *ir.Group, w Rewrite) (packing, products []*ir.Op, err error) {
	add := func(to *[]*ir.Op, kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Value {
		if err != nil {
			return nil
		}
		var op *ir.Op
		if op, err = b.Make(kind, attrs, args...); err != nil {
			return nil
		}
		*to = append(*to, op)
		return op.Result
	}
	moved := []*ir.Op{w.Readers[0].Args[0].Def} // fixed12
	x := moved[0].Args
	norm := x[0].Def
	if norm != nil && slices.Contains(g.Ops, norm) {
		moved, x = append(moved, norm), norm.Args
	}
	attrs := ir.Attrs{{Name: "rows", Value: int64(w.Rows)}, {Name: "columns", Value: int64(w.Columns)}, {Name: "lanes", Value: w.Pack}}
	packed := add(&packing, "pack12", attrs, x...)
	var squares []*ir.Value
	summed := ir.Attrs{{Name: "count", Value: int64(ir.PartsOf(int(x[0].Type.Last()), w.Each))}}
	if len(moved) > 1 {
		squares = append(squares, add(&packing, "squares", nil, x[0]))
		summed = append(summed, ir.Attr{Name: "eps", Value: norm.Attrs.Float("eps")})
	}
	if x[0].Type.Shape[0] != ir.T {
		attrs = append(slices.Clip(attrs), ir.Attr{Name: "whole", Value: int64(1)})
	}
	unpacked := add(&products, "unpack12", attrs, packed)
	var sums []*ir.Op
	for _, op := range w.Readers {
		parts := add(&products, "linear_parts", ir.Attrs{{Name: "each", Value: int64(w.Each)}}, unpacked, op.Args[1])
		add(&sums, "add_parts", summed, slices.Concat([]*ir.Value{parts}, squares, op.Args[2:])...)
	}
	if err != nil {
		return nil, nil, err
	}
	for i, op := range w.Readers {
		op.Kind, op.Args, op.Attrs = sums[i].Kind, sums[i].Args, sums[i].Attrs
	}
	g.Ops = slices.DeleteFunc(g.Ops, func(op *ir.Op) bool { return slices.Contains(moved, op) })
	return packing, products, nil
}
