package kernel

import "fmt"

// The body of a kernel as lowerings and analyses read it: regions of nodes, which
// only the Builder makes and nobody changes.

// Body returns the outermost region.
func (f *Func) Body() *Region { return f.body }

// Arrays returns the shared arrays; Imm of an access is the index.
func (f *Func) Arrays() []*Array { return f.arrays }

// Workgroup returns the static node of the number of invocations of a workgroup.
func (f *Func) Workgroup() *Node { return f.workgroup }

// Constant returns the node of specialization constant i of Spec.
func (f *Func) Constant(i int) *Node { return f.specNodes[i] }

// Eval computes a static scalar under the given specialization, by id; constants
// that spec lacks have their default. Division by zero, a shift by more than 31 and
// the like are errors.
func (f *Func) Eval(n *Node, spec map[uint32]uint32) (uint32, error) {
	v, err := f.eval(n, spec)
	if err != nil {
		return 0, fmt.Errorf("kernel %s: %w", f.Name, err)
	}
	return v, nil
}

// Op returns the operation.
func (n *Node) Op() Op { return n.op }

// Type returns the type of the result, Void if there is none.
func (n *Node) Type() Type { return n.typ }

// Imm returns the operation's immediate; the list of operations
// says what it means for each.
func (n *Node) Imm() uint32 { return n.imm }

// Args returns the operands. They are nodes before this one, or static.
func (n *Node) Args() []*Node { return n.args }

// Regions returns the regions of OpIf (then, else if there is one) and OpFor
// (body).
func (n *Node) Regions() []*Region { return n.regions }

// Static reports whether the node is known at specialization time: a constant, a
// specialization constant, or an expression of them. Static nodes stand in no region;
// a lowering meets them as operands.
func (n *Node) Static() bool { return n.static() }

// Align returns the bytes to which a buffer access is aligned.
func (n *Node) Align() int { return n.align }

// Layout returns the layout in which OpMatLoad and OpMatStore access the array.
func (n *Node) Layout() Layout { return Layout(n.align) }

// Through returns the address, a U32.Vec(2), that a buffer access goes through; nil
// if it is that of argument Imm.
func (n *Node) Through() *Node { return n.through() }

// Ahead reports whether a load does not wait for writers (Buffer.Ahead), whether no access needs a
// subgroup barrier (Builder.SubgroupHint), whether the first workgroup of a line may run an if
// for all (Builder.Line), and whether a workgroup index is that of a later workgroup
// (Builder.WorkgroupAhead).
func (n *Node) Ahead() bool { return n.ahead }

// WholeLine reports whether a copy is that of Buffer.CopyLine.
func (n *Node) WholeLine() bool { return n.line }

// Distance returns n of Builder.WorkgroupAhead.
func (n *Node) Distance() int { return n.align }

// View returns the element type with which a buffer access sees the buffer: U16
// for 16-bit accesses, Void for OpAddress. Other nodes access no buffer.
func (n *Node) View() (elem Type, ok bool) {
	switch n.op {
	case OpAddress:
		return Void, true
	case OpLoad:
		return n.typ, true
	case OpBulk:
		return U32.Vec(4), true
	case OpStore:
		return n.args[1].typ, true
	case OpLoad16, OpStore16:
		return U16, true
	case OpAtomicAdd, OpPrefetch:
		return U32, true
	case OpCopy:
		return U32.Vec(n.align / 4), true
	}
	return Void, false
}

// Array returns the number of the array that an OpCopy or OpBulk copies to.
func (n *Node) Array() int { return n.array.index }

// Place returns the position in the source of an access or a barrier.
func (n *Node) Place() string { return n.place() }

// Nodes returns the operations, in order.
func (r *Region) Nodes() []*Node { return r.nodes }

// Param returns the counter, an OpParam, of the body of an OpFor, else nil.
func (r *Region) Param() *Node { return r.param }

// Hint returns the kernel's request for the loop whose body is the region.
func (r *Region) Hint() Hint { return r.hint }

// Walk calls visit for every node of the region and of those inside, in order.
func (r *Region) Walk(visit func(n *Node)) { r.walk(visit) }

// Elem returns the type of the elements.
func (a *Array) Elem() Type { return a.elem }

// Length returns the static node of the number of elements.
func (a *Array) Length() *Node { return a.length }

// Fold computes an operation on scalars of type t, if static nodes may have it:
// it must be on integers or truth values, and defined.
func Fold(o Op, t Type, args []uint32) (bits uint32, ok bool) {
	if !ops[o].fold || t == F32 || o == OpSelect {
		return 0, false
	}
	bits, err := foldOp(o, t, args)
	return bits, err == nil
}
