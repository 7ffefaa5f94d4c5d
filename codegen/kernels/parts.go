package kernels

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// Parts does what a rewrite wants that has Pack: it takes ops out of g for two groups before it. The first one rounds
// and packs what readers of g read; a norm of g moves there, and leaves squares. The second multiplies parts of rows.
// What is left of g adds these up, finds the scales of rows from the squares, and does the rest.
func Parts(b *ir.Builder, g *ir.Group, w Rewrite) (packing, products []*ir.Op, err error) {
	make := func(kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Op {
		if err != nil {
			return &ir.Op{}
		}
		var op *ir.Op
		if op, err = b.Make(kind, attrs, args...); err != nil {
			op = &ir.Op{}
		}
		return op
	}
	moved := []*ir.Op{w.Readers[0].Args[0].Def} // fixed12
	x := moved[0].Args
	var squares []*ir.Value
	summed := ir.Attrs{{Name: "count", Value: int64(ir.PartsOf(int(x[0].Type.Last()), w.Each))}}
	if norm := x[0].Def; norm != nil && slices.Contains(g.Ops, norm) {
		moved, x = append(moved, norm), norm.Args
		summed = append(summed, ir.Attr{Name: "eps", Value: norm.Attrs.Float("eps")})
		packing = append(packing, make("squares", nil, x[0]))
		squares = append(squares, packing[0].Result)
	}
	attrs := ir.Attrs{{Name: "rows", Value: int64(w.Rows)}, {Name: "columns", Value: int64(w.Columns)}, {Name: "lanes", Value: w.Pack}}
	packing = slices.Insert(packing, 0, make("pack12", attrs, x...))
	if x[0].Type.Shape[0] != ir.T {
		attrs = append(slices.Clip(attrs), ir.Attr{Name: "whole", Value: int64(1)})
	}
	products = append(products, make("unpack12", attrs, packing[0].Result))
	for _, op := range w.Readers {
		parts := make("linear_parts", ir.Attrs{{Name: "each", Value: int64(w.Each)}}, products[0].Result, op.Args[1])
		sum := make("add_parts", summed, slices.Concat([]*ir.Value{parts.Result}, squares, op.Args[2:])...)
		if err != nil {
			return nil, nil, err
		}
		products = append(products, parts)
		op.Kind, op.Args, op.Attrs = sum.Kind, sum.Args, sum.Attrs
	}
	g.Ops = slices.DeleteFunc(g.Ops, func(op *ir.Op) bool { return slices.Contains(moved, op) })
	return packing, products, nil
}
