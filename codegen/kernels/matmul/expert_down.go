package matmul

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// maxSlots bounds the slots that expert_down takes: it unrolls over them.
const maxSlots = 16

// expertDown computes, row by row, a group of the form
//
//	[route] expert_linear [expert_bias] expert_sum [linear [gate_rows]] [add]...
//
// A workgroup computes a tile of a row of the result. Each of its subgroups, the
// members, has the dot products of one slot, or of one projection that is added, and
// keeps its part of x; one more has the slots' weights. Then lanes sum up in rank order.
type expertDown struct {
	route   *ir.Op // of the group, or nil
	weights *ir.Value
	ids, x  *ir.Value
	down    *weights
	slots   int
	k       int // row length of down
	width   int // of the result
	terms   []*downTerm
	result  *ir.Value
	extent  site.Extent

	wave, tile int
	alone      bool // a workgroup is one subgroup
}

// downTerm is what is added to the sum: a value, or a projection of another x,
// gated or not.
type downTerm struct {
	value *ir.Value // the result
	x     *ir.Value // of the projection, nil if value is an operand
	w     *weights
	gate  *ir.Value // f32[rows, 1] or nil
	k     int
}

func matchExpertDown(s *site.Site) *expertDown {
	g := &expertDown{}
	made := map[*ir.Value]*downTerm{}
	var linear *ir.Value
	for _, op := range s.Group.Ops {
		ok := false
		switch op.Kind.Name {
		case "route":
			ok = g.route == nil
			g.route = op
		case "expert_linear":
			ok = g.down == nil && g.addDown(op)
			linear = op.Result
		case "expert_bias":
			if ok = op.Args[0] == linear && op.Args[2] == g.ids && g.down.bias == nil; ok {
				g.down.bias, linear = op.Args[1], op.Result
			}
		case "expert_sum":
			ok = g.result == nil && op.Args[0] == linear
			g.weights, g.result, g.width = op.Args[1], op.Result, int(op.Result.Type.Last())
		case "linear":
			k := int(op.Args[0].Type.Last())
			w := &weights{value: op.Args[1], format: weight.FormatOf(op.Args[1].Type.DType, k)}
			ok = len(op.Args) == 2 && w.format != nil
			made[op.Result] = &downTerm{value: op.Result, x: op.Args[0], w: w, k: k}
		case "gate_rows":
			t := made[op.Args[0]]
			if ok = t != nil && t.gate == nil; ok {
				t.gate, t.value = op.Args[1], op.Result
				made[op.Result] = t
			}
		case "add":
			ok = g.add(op, made)
		}
		if !ok {
			return nil
		}
	}
	if g.result == nil || len(s.Outputs) != 1 || s.Outputs[0] != g.result || !g.consistent(s.Group.Ops, made) {
		return nil
	}
	var ok bool
	if g.extent, ok = site.ExtentOf(s, g.result); !ok {
		return nil
	}
	return g
}

func (g *expertDown) addDown(op *ir.Op) bool {
	x, w, ids := op.Args[0], op.Args[1], op.Args[2]
	g.x, g.ids, g.slots, g.k = x, ids, int(ids.Type.Shape[1]), int(w.Type.Shape[2])
	g.down = &weights{value: w, format: weight.FormatOf(w.Type.DType, g.k), from: op.Attrs.Int("first")}
	perSlot := int(x.Type.Last()) == g.k*g.slots
	return g.down.format != nil && perSlot && g.slots <= maxSlots && len(op.Args) == 3 && indexable(w)
}

// add takes an add of the result so far and a term.
func (g *expertDown) add(op *ir.Op, made map[*ir.Value]*downTerm) bool {
	other := op.Args[1]
	if other == g.result {
		other = op.Args[0]
	}
	if g.result == nil || !slices.Contains(op.Args, g.result) || other == g.result {
		return false
	}
	t := made[other]
	if t == nil {
		t = &downTerm{value: other}
	} else if t.value != other {
		return false // read before the gate
	}
	g.terms, g.result = append(g.terms, t), op.Result
	return true
}

// consistent reports whether the parts belong together and every term is either
// an operand of the group or one of its projections, each read once.
func (g *expertDown) consistent(ops []*ir.Op, made map[*ir.Value]*downTerm) bool {
	for _, t := range g.terms {
		if t.x == nil && t.value.Def != nil && slices.Contains(ops, t.value.Def) {
			return false
		}
	}
	for _, t := range made {
		if !slices.Contains(g.terms, t) {
			return false
		}
	}
	return g.route == nil || g.route.Result == g.weights && g.route.Args[1] == g.ids
}

func ExpertDownCandidates(s *site.Site) []site.Candidate {
	g := matchExpertDown(s)
	if g == nil {
		return nil
	}
	g.wave = s.Target.Wave
	var list []site.Candidate
	for _, tile := range g.tiles(s.Target) {
		k := *g
		k.alone = s.Target.Workgroup == k.wave
		if k.tile = tile; k.subgroups()*k.wave <= s.Target.Workgroup && tile <= k.subgroups()*k.wave {
			list = append(list, k.candidate())
		}
	}
	return list
}

// tiles returns how many elements of the result a workgroup may compute, best guess
// first: more of them load x less often, fewer keep more of the device busy.
func (g *expertDown) tiles(t *target.Target) []int {
	if g.width < 16*t.Units {
		return []int{8, 16, 4}
	}
	return []int{16, 8, 32}
}

// subgroups returns those of a workgroup: the members, and one for the weights; or one that takes
// all in turn.
func (g *expertDown) subgroups() int {
	if g.alone {
		return 1
	}
	return g.members() + 1
}

// members returns how many products there are: of the slots, and those that are added.
func (g *expertDown) members() int {
	n := g.slots
	for _, t := range g.terms {
		if t.x != nil {
			n++
		}
	}
	return n
}

func (g *expertDown) key() string {
	words := []string{fmt.Sprintf("expert_down %s slots=%d w=%d%s", newDownShape(g.down, g.k, g.wave).key(), g.slots, g.wave, g.extent.Key())}
	if g.alone {
		words = append(words, "alone")
	}
	if g.down.bias != nil {
		words = append(words, "bias")
	}
	if g.route != nil {
		words = append(words, fmt.Sprintf("%s of %d", gatingOf(g.route).key(), g.route.Args[0].Type.Last()))
	}
	for _, t := range g.terms {
		word := "add"
		if t.x != nil {
			word = newDownShape(t.w, t.k, g.wave).key()
		}
		if t.gate != nil {
			word = "gated " + word
		}
		words = append(words, word)
	}
	return strings.Join(words, " + ")
}

func (g *expertDown) operands() []site.Operand {
	list := append(g.extent.Operands(), site.Operand{Name: "x", Value: g.x, Access: kernel.Read}, site.Operand{Name: "ids", Value: g.ids, Access: kernel.Read}, site.Operand{Name: "w", Value: g.down.value, Access: kernel.Read})
	if g.route != nil {
		list = append(list, site.Operand{Name: "scores", Value: g.route.Args[0], Access: kernel.Read})
		if len(g.route.Args) > 2 {
			list = append(list, site.Operand{Name: "scales", Value: g.route.Args[2], Access: kernel.Read})
		}
	} else {
		list = append(list, site.Operand{Name: "weights", Value: g.weights, Access: kernel.Read})
	}
	if g.down.bias != nil {
		list = append(list, site.Operand{Name: "bias", Value: g.down.bias, Access: kernel.Read})
	}
	for i, t := range g.terms {
		if t.x == nil {
			list = append(list, site.Operand{Name: fmt.Sprint("add", i), Value: t.value, Access: kernel.Read})
			continue
		}
		list = append(list, site.Operand{Name: fmt.Sprint("x", i), Value: t.x, Access: kernel.Read}, site.Operand{Name: fmt.Sprint("w", i), Value: t.w.value, Access: kernel.Read})
		if t.gate != nil {
			list = append(list, site.Operand{Name: fmt.Sprint("gate", i), Value: t.gate, Access: kernel.Read})
		}
	}
	return append(list, site.Operand{Name: "y", Value: g.result, Access: kernel.Write})
}

func (g *expertDown) candidate() site.Candidate {
	rows, shape := g.extent.Max, g.down.value.Type.Shape
	c := site.Candidate{
		Kernel: g.key(), Shape: fmt.Sprintf("tile %d", g.tile), Build: g.build, Operands: g.operands(),
		Grid:  [3]int{site.CeilDiv(g.width, g.tile), rows, 1},
		Cover: []plans.Cover{{Arg: "y", Dims: []int{rows, g.width}, Tile: []int{1, g.tile}, Axis: []int{1, 0}}},
		Consts: append(g.extent.Consts(),
			ir.Const{Name: "k", Value: uint32(g.k)}, ir.Const{Name: "width", Value: uint32(g.width)},
			ir.Const{Name: "from", Value: uint32(g.down.from)},
			ir.Const{Name: "height", Value: uint32(shape[1])}, ir.Const{Name: "experts", Value: uint32(shape[0])}),
	}
	for i, t := range g.terms {
		if t.x != nil {
			c.Consts = append(c.Consts, ir.Const{Name: fmt.Sprint("k", i), Value: uint32(t.k)})
		}
	}
	c.Consts = append(c.Consts, ir.Const{Name: "tile", Value: uint32(g.tile)})
	return c
}
