package kerneltest

import (
	"encoding/binary"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// paths are what kernels have a lowering and a driver's compiler do: their operations, each with the types of its
// operands and which of them are constants, how it sees a buffer or an array, and the loops and ifs. The lowering looks
// at nothing else of an operation. Each has its operation.
type paths map[string]kernel.Op

// add adds the paths of a kernel and reports whether any of them is new.
func (p paths) add(f *kernel.Func) (shows bool) {
	var path []byte
	add := func(list ...uint64) {
		for _, x := range list {
			path = binary.AppendUvarint(path, x)
		}
	}
	end := func(op kernel.Op) {
		if _, is := p[string(path)]; !is {
			p[string(path)], shows = op, true
		}
		path = path[:0]
	}
	var region func(r *kernel.Region, in kernel.Op)
	region = func(r *kernel.Region, in kernel.Op) {
		for _, n := range r.Nodes() {
			add(1, uint64(n.Op()), uint64(n.Type()), uint64(n.Align()), truth(n.Ahead()), truth(n.Through() != nil))
			switch op := n.Op(); {
			case op == kernel.OpBuiltin, op == kernel.OpBarrier, op == kernel.OpPairHalves:
				add(uint64(n.Imm()))
			case op >= kernel.OpSharedLoad && op <= kernel.OpSharedAdd:
				add(uint64(f.Arrays()[n.Imm()].Elem()))
			case op == kernel.OpCopy:
				add(uint64(f.Arrays()[n.Array()].Elem()))
			}
			if _, ok := n.View(); ok && n.Through() == nil {
				add(uint64(f.Args[n.Imm()].Access))
			}
			for _, a := range n.Args() {
				add(uint64(a.Type()), truth(a.Static()), truth(a.Op() == kernel.OpConst))
			}
			end(n.Op())
			for i, inner := range n.Regions() {
				add(2, uint64(n.Op()), uint64(i), uint64(inner.Hint()), uint64(in))
				end(n.Op())
				region(inner, n.Op())
			}
		}
	}
	add(0, truth(f.Workgroup().Static()))
	end(kernel.OpConst)
	region(f.Body(), kernel.OpConst)
	return shows
}

func truth(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
