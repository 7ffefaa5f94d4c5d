package cpu

import (
	"fmt"
	goruntime "runtime"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/object"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
)

// code is the machine code of all modules of a plan.
type code struct {
	mapped *native.Code
	fns    []uintptr // entry point of each module
}

// newCode links the modules into one piece and makes it executable.
func newCode(plan *plans.Plan) (*code, error) {
	want := plans.ObjectFormat(goruntime.GOARCH)
	var list []*object.Object
	var at []int
	size := 0
	for _, m := range plan.Modules {
		if m.Format != want {
			return nil, ir.Unsupported("kernel %s is in format %s, this processor takes %s", m.Name, m.Format, want)
		}
		o, err := object.Read(m.Bytes)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", m.Name, err)
		}
		align := max(o.Align, placeAlign)
		size = (size + align - 1) / align * align
		list, at = append(list, o), append(at, size)
		if size += o.Size; size > maxCode {
			return nil, fmt.Errorf("the kernels have more than %d bytes of code", maxCode)
		}
	}
	blob := make([]byte, size)
	for i, o := range list {
		if err := o.Link(blob[at[i]:at[i]+o.Size], at[i]); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", plan.Modules[i].Name, err)
		}
	}
	mapped, err := native.MapCode(blob)
	if err != nil {
		return nil, err
	}
	c := &code{mapped: mapped}
	for i, o := range list {
		f, err := o.Func(plan.Modules[i].Interface.Entry)
		if err != nil {
			mapped.Free()
			return nil, fmt.Errorf("kernel %s: %w", plan.Modules[i].Name, err)
		}
		c.fns = append(c.fns, mapped.Address(at[i]+f.Offset))
	}
	return c, nil
}

// maxCode bounds the code of a plan.
const maxCode = 256 << 20
