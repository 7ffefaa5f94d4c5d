package codegen

import (
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/layout"
)

// cost counts the bytes and floating-point operations of a group at full rows
// and one visible KV position.
func cost(p *ir.Program, f *ir.Func, g *ir.Group, outputs []*ir.Value) (plans.Cost, error) {
	var c plans.Cost
	for _, v := range g.Inputs() {
		n, err := inputBytes(p, f, g, v)
		if err != nil {
			return c, err
		}
		c.ReadBytes += n
	}
	for _, v := range outputs {
		n, err := v.Type.Bytes(f.Rows, p.Ctx)
		if err != nil {
			return c, err
		}
		c.WriteBytes += n
	}
	for _, op := range g.Ops {
		rows := rowsOf(f, op.Args[0].Type)
		switch op.Kind.Name {
		case "expert_linear":
			c.FLOPs += 2 * rows * int64(op.Result.Type.Last()) * int64(op.Args[1].Type.Last())
		case "linear":
			c.FLOPs += 2 * rows * int64(op.Args[1].Type.Shape[0]) * int64(op.Args[1].Type.Shape[1])
		case "kvwrite":
			t := op.Args[3].Type
			c.WriteBytes += rows * t.DType.Bytes(int64(t.Last()))
		}
	}
	return c, nil
}

// inputBytes is what g reads of v.
func inputBytes(p *ir.Program, f *ir.Func, g *ir.Group, v *ir.Value) (int64, error) {
	switch v.Class {
	case ir.Weight:
		w, err := weightLayout(v)
		if err != nil {
			return 0, err
		}
		if g.Ops[0].Kind.Name == "embed" {
			return w.Bytes / w.Rows * int64(f.Rows), nil
		}
		return w.Bytes * expertsRead(f, g, v) / int64(v.Type.Shape[0]), nil
	case ir.Table:
		return int64(f.Rows) * v.Type.DType.Bytes(int64(v.Type.Last())), nil
	case ir.KV, ir.State:
		if len(g.Writes()) > 0 {
			return 0, nil
		}
		return int64(f.Rows) * v.Type.DType.Bytes(int64(v.Type.Last())), nil
	}
	return v.Type.Bytes(f.Rows, p.Ctx)
}

// expertsRead is how many of the outermost parts of a weight g reads: of experts
// as many as the rows can choose, of others all.
func expertsRead(f *ir.Func, g *ir.Group, v *ir.Value) int64 {
	all := int64(v.Type.Shape[0])
	for _, op := range g.Ops {
		if op.Kind.Name == "expert_linear" && op.Args[1] == v {
			ids := op.Args[2].Type
			return min(all, rowsOf(f, ids)*int64(ids.Last()))
		}
	}
	return all
}

func rowsOf(f *ir.Func, t ir.Type) int64 {
	if t.Shape[0] == ir.T {
		return int64(f.Rows)
	}
	return int64(t.Shape[0])
}

// weightLayout is the device layout of a weight global.
func weightLayout(v *ir.Value) (*layout.Tensor, error) {
	shape := make([]int64, len(v.Type.Shape))
	for i, d := range v.Type.Shape {
		shape[i] = int64(d)
	}
	return layout.New(v.Type.DType, shape...)
}
