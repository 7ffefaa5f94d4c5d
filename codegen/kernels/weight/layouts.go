package weight

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// Lay gives every weight of a program the layout that kernels of the target read.
func Lay(t *target.Target, p *ir.Program) error {
	layouts, err := Layouts(t, p)
	for w, name := range layouts {
		w.Layout = name
	}
	return err
}

// Layouts returns which layout each weight of a program is to have on the target.
func Layouts(t *target.Target, p *ir.Program) (map[*ir.Value]string, error) {
	experts := map[*ir.Value]bool{} // of which rows choose matrices; not those of which each head has one
	for _, f := range p.Funcs {
		for _, op := range f.Ops() {
			if op.Kind.Name == "expert_linear" {
				ids := op.Args[2].Def
				experts[op.Args[1]] = ids == nil || ids.Kind.Name != "head_ids"
			}
		}
	}
	layouts := map[*ir.Value]string{}
	for _, w := range p.Globals {
		if w.Class != ir.Weight {
			continue
		}
		l, err := layout.New(w.Type.DType, sizes(w)...)
		if err == nil && interleaves(t, w, experts[w]) {
			l, err = layout.NewRows16(w.Type.DType, sizes(w)...)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", w.Name, err)
		}
		layouts[w] = l.Name
	}
	return layouts, nil
}

// interleaves reports whether kernels of the target read the rows of a weight interleaved. Parts of experts may begin
// at half of the rows, so half of them must be whole groups of 16, and a run of x must be whole super-blocks.
func interleaves(t *target.Target, w *ir.Value, experts bool) bool {
	f, shape := rowsFormats[w.Type.DType], w.Type.Shape
	switch {
	case !t.LaneRows, f == nil, len(shape) < 2, len(shape) > 3, int(w.Type.Last())%f.Cols != 0:
		return false
	case len(shape) == 3:
		return experts && shape[1]%32 == 0 && w.Type.Last()%SuperElements == 0
	}
	return true
}

// LayoutOf returns how a weight lies on the device.
func LayoutOf(w *ir.Value) (*layout.Tensor, error) {
	return layout.Named(w.Layout, w.Type.DType, sizes(w)...)
}

func sizes(w *ir.Value) []int64 {
	var list []int64
	for _, d := range w.Type.Shape {
		list = append(list, int64(d))
	}
	return list
}
