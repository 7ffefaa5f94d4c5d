package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// rowsOf is the number of rows that v can have in f.
func rowsOf(f *ir.Func, v *ir.Value) int {
	if v.Type.Shape[0] == ir.T {
		return f.Rows
	}
	return int(v.Type.Shape[0])
}

// merge joins the groups of the ops into one, at the place of one of them. It
// reports whether it could join all.
func merge(f *ir.Func, ops ...*ir.Op) bool {
	var all []*ir.Group
	for _, g := range f.Groups {
		if slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return slices.Contains(ops, op) }) {
			all = append(all, g)
		}
	}
	done := true
	for _, g := range all[1:] {
		i, j := slices.Index(f.Groups, all[0]), slices.Index(f.Groups, g)
		if !mergeUp(f, i, j) {
			if !mergeDown(f, i, j) {
				done = false
				continue
			}
			all[0] = g
		}
	}
	return done
}

// only returns the single reader of v if it is of that kind, else nil.
func only(uses map[*ir.Value][]*ir.Op, v *ir.Value, kind string) *ir.Op {
	if u := uses[v]; len(u) == 1 && u[0].Kind.Name == kind {
		return u[0]
	}
	return nil
}

// fuseExperts groups the ops of the experts of a layer. In exact steps it makes two dispatches:
// one for top-k, gate, up and GLU (or up and its square) of the routed and the shared experts,
// one for route weights, down, the sum in rank order, the shared expert's
// gate and the residual. At many rows projections are tiles over rows sorted
// by expert, and only GLU and sums are fused. The same holds on devices where projections stay
// apart, if gate and up have one type. Where the device unites the rows of an expert in exact steps, top-k comes before
// all, since every part of an expert would choose for all rows, and down, with the shared expert's, comes before the
// dispatch of weights and sums.
func fuseExperts(f *ir.Func, d Device) error {
	apart := d.Apart
	uses := f.Uses()
	for _, top := range f.Ops() {
		if top.Kind.Name != "topk" {
			continue
		}
		x := findExperts(f, top, uses)
		if x == nil {
			continue
		}
		if apart || !f.Exact(top.Result) {
			if !apart || len(x.up) > 1 && oneType(x.up[:2]...) {
				merge(f, append(x.up, x.biases...)...)
			}
			merge(f, append(x.down, x.downBias...)...)
			if len(x.shared) > 1 && (!apart || oneType(x.shared[:2]...)) {
				merge(f, x.shared...)
			}
			merge(f, append([]*ir.Op{x.sum}, x.tail...)...)
			continue
		}
		up := slices.Concat(x.up, x.biases, x.shared, x.squares)
		if len(x.downBias) == 0 && f.Class == ir.ExactStep && d.Kernels.Unites(f, x.down[0], x.sharedDown) {
			merge(f, up...)
			x.joinDown(f)
			merge(f, slices.Concat([]*ir.Op{x.route, x.sum}, x.tail)...)
			continue
		}
		merge(f, append(up, top)...)
		group := slices.Concat([]*ir.Op{x.route}, x.down, []*ir.Op{x.sum}, x.downBias)
		if x.sharedDown != nil {
			group = append(group, x.sharedDown)
		}
		merge(f, append(group, x.tail...)...)
	}
	return nil
}

// experts are the ops behind one top-k.
type experts struct {
	up, down         []*ir.Op // of the routed experts: gate, up and GLU, or up alone where there is no gate; the down projection
	route, sum       *ir.Op
	biases, downBias []*ir.Op // of gate and up, and of down
	shared           []*ir.Op // what up is, of the shared expert
	sharedDown       *ir.Op   // its down projection; nil where there is none
	tail             []*ir.Op // what adds it and the residual to the sum
	squares          []*ir.Op // what activates up where there is no gate
}

func findExperts(f *ir.Func, top *ir.Op, uses map[*ir.Value][]*ir.Op) *experts {
	x := &experts{}
	for _, u := range uses[top.Result] {
		switch {
		case u.Kind.Name == "route":
			x.route = u
		case u.Kind.Name == "expert_linear":
			x.up = append(x.up, u)
		}
	}
	last := len(x.up) - 1
	if x.route == nil || last != 1 && last != 2 {
		return nil
	}
	x.up, x.down = x.up[:last:last], x.up[last:]
	act := activationOf(x.up, uses, func(op *ir.Op) *ir.Value { return biased(uses, op, &x.biases) })
	x.sum = only(uses, biased(uses, x.down[0], &x.downBias), "expert_sum")
	if act == nil || x.sum == nil || x.down[0].Args[0] != act.Result {
		return nil
	}
	if len(x.up) == 2 {
		x.up = append(x.up, act)
	} else {
		x.squares = []*ir.Op{act}
	}
	x.findTail(uses)
	x.findShared(f, uses)
	return x
}

// activationOf returns the only reader of projections if it is their activation: the GLU of two, or the activation of
// one; else nil.
func activationOf(up []*ir.Op, uses map[*ir.Value][]*ir.Op, made func(op *ir.Op) *ir.Value) *ir.Op {
	kind := "relu2"
	if len(up) == 2 {
		kind = "glu"
	}
	act := only(uses, made(up[0]), kind)
	for _, op := range up[1:] {
		if only(uses, made(op), kind) != act {
			return nil
		}
	}
	return act
}

// biased returns the result of an expert_linear after its bias, and appends the bias op to biases.
func biased(uses map[*ir.Value][]*ir.Op, linear *ir.Op, biases *[]*ir.Op) *ir.Value {
	bias := only(uses, linear.Result, "expert_bias")
	if bias == nil {
		return linear.Result
	}
	*biases = append(*biases, bias)
	return bias.Result
}

// joinDown joins the shared expert's down projection with that of the experts, if their rows are as long.
func (x *experts) joinDown(f *ir.Func) {
	if x.sharedDown == nil || x.sharedDown.Args[1].Type.Last() != x.down[0].Args[1].Type.Last() || !merge(f, x.down[0], x.sharedDown) {
		return
	}
	i := slices.IndexFunc(f.Groups, func(g *ir.Group) bool { return slices.Contains(g.Ops, x.sharedDown) })
	f.Groups[i].Ops = []*ir.Op{x.down[0], x.sharedDown}
}

// findTail follows the sum through the adds that are its only readers.
func (x *experts) findTail(uses map[*ir.Value][]*ir.Op) {
	for v := x.sum.Result; ; {
		add := only(uses, v, "add")
		if add == nil || len(x.tail) >= 3 {
			return
		}
		other := add.Args[0]
		if other == v {
			other = add.Args[1]
		}
		if g := other.Def; g != nil && g.Kind.Name == "gate_rows" && only(uses, other, "add") == add && len(x.tail) == 0 {
			x.tail = append(x.tail, g)
		}
		x.tail = append(x.tail, add)
		v = add.Result
	}
}

// findShared follows the shared expert back from its gate or, if it has none, from the add.
func (x *experts) findShared(f *ir.Func, uses map[*ir.Value][]*ir.Op) {
	if len(x.tail) == 0 {
		return
	}
	first := x.tail[0]
	shared := first.Args[0]
	if first.Kind.Name == "add" && shared == x.sum.Result {
		shared = first.Args[1]
	}
	down := shared.Def
	if down == nil || down.Kind.Name != "linear" || only(uses, shared, first.Kind.Name) == nil {
		return
	}
	act := down.Args[0].Def
	if act == nil || only(uses, act.Result, "linear") == nil {
		return
	}
	var up []*ir.Op
	for _, v := range act.Args {
		if v.Def == nil || v.Def.Kind.Name != "linear" || v.Def.Args[0] != x.up[0].Args[0] {
			return
		}
		up = append(up, v.Def)
	}
	gated := len(x.up) > 1
	if gated != (len(up) == 2) || activationOf(up, uses, func(op *ir.Op) *ir.Value { return op.Result }) != act {
		return
	}
	if x.shared, x.sharedDown = up, down; gated {
		x.shared = append(x.shared, act)
	} else {
		x.squares = append(x.squares, act)
	}
}

// isExpertUp reports whether g computes the activations of an exact step's experts, with top-k or behind it.
func isExpertUp(f *ir.Func, g *ir.Group) bool {
	first, last := g.Ops[0].Kind.Name, g.Ops[len(g.Ops)-1].Kind.Name
	return len(g.Ops) > 1 && (first == "topk" || f.Class == ir.ExactStep && first == "expert_linear" && last != "expert_sum")
}
