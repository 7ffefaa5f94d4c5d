package kernels_test

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// addPaths adds what a kernel has a lowering and a driver's compiler do: its operations, each with the types of its operands and which of
// them are constants, how it sees a buffer or an array, and the loops and ifs. The lowering looks at nothing else of an operation.
func addPaths(paths map[string]bool, f *kernel.Func) {
	paths[fmt.Sprint("workgroup ", f.Workgroup().Static())] = true
	var region func(r *kernel.Region, in kernel.Op)
	region = func(r *kernel.Region, in kernel.Op) {
		for _, n := range r.Nodes() {
			path := fmt.Sprint(n.Op(), " ", n.Type(), n.Align(), n.Ahead(), n.Through() != nil)
			switch op := n.Op(); {
			case op == kernel.OpBuiltin, op == kernel.OpBarrier, op == kernel.OpPairHalves:
				path += fmt.Sprint(" ", n.Imm())
			case op >= kernel.OpSharedLoad && op <= kernel.OpSharedMax:
				path += fmt.Sprint(" ", f.Arrays()[n.Imm()].Elem())
			case op == kernel.OpCopy:
				path += fmt.Sprint(" ", f.Arrays()[n.Array()].Elem())
			}
			if _, ok := n.View(); ok && n.Through() == nil {
				path += fmt.Sprint(" ", f.Args[n.Imm()].Access)
			}
			for _, a := range n.Args() {
				path += fmt.Sprint(" ", a.Type(), a.Static(), a.Op() == kernel.OpConst)
			}
			paths[path] = true
			for i, inner := range n.Regions() {
				paths[fmt.Sprint(n.Op(), i, inner.Hint(), " in ", in)] = true
				region(inner, n.Op())
			}
		}
	}
	region(f.Body(), kernel.OpConst)
}
