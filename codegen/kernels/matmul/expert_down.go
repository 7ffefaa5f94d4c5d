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
//	[route] [fixed12] expert_linear [expert_bias] expert_sum [[fixed12] linear [gate_rows]] [add]...
//
// A workgroup computes a tile of a row of the result. Each of its subgroups, the
// members, has the dot products of one slot, or of one projection that is added, or of a part of its rows if these are
// longer, and keeps its part of x; one more has the slots' weights. Then lanes sum up in rank order.
type expertDown struct {
	route   *ir.Op // of the group, or nil
	weights *ir.Value
	ids, x  *ir.Value
	fixed   *ir.Value // x in fixed point, or nil
	linear  *ir.Op    // expert_linear
	down    *weights
	slots   int
	k       int // row length of down
	width   int // of the result
	terms   []*downTerm
	result  *ir.Value
	extent  site.Extent
	halves  bool // see weight.Matrix

	wave, tile int
	alone      bool // a workgroup is one subgroup
	atOnce     bool // see memberAtOnce
}

// downTerm is what is added to the sum: a value, or a projection of another x,
// gated or not.
type downTerm struct {
	value *ir.Value // the result
	x     *ir.Value // of the projection, nil if value is an operand
	w     *weights
	gate  *ir.Value // f32[rows, 1] or nil
	fixed bool      // x is taken in fixed point
	op    *ir.Op    // linear
	k     int
	parts int // members that have its rows
}

func matchExpertDown(s *site.Site) *expertDown {
	g := &expertDown{halves: s.Target.LoadsEarly()}
	made, fixed := map[*ir.Value]*downTerm{}, map[*ir.Value]bool{}
	var linear *ir.Value
	for _, op := range s.Group.Ops {
		ok := false
		switch op.Kind.Name {
		case "route":
			ok = g.route == nil
			g.route = op
		case "fixed12":
			ok, fixed[op.Result] = true, true
		case "expert_linear":
			if fixed[op.Args[0]] {
				g.fixed = op.Args[0]
			}
			ok = g.down == nil && g.addDown(s.Target, op)
			linear, g.linear = op.Result, op
		case "expert_bias":
			if ok = op.Args[0] == linear && op.Args[2] == g.ids && g.down.bias == nil; ok {
				g.down.bias, linear = op.Args[1], op.Result
			}
		case "expert_sum":
			ok = g.result == nil && op.Args[0] == linear
			g.weights, g.result, g.width = op.Args[1], op.Result, int(op.Result.Type.Last())
		case "linear":
			k := int(op.Args[0].Type.Last())
			w := &weights{value: op.Args[1], format: weight.FormatOf(s.Target, op.Args[1].Type.DType, k)}
			t := &downTerm{value: op.Result, x: op.Args[0], w: w, op: op, k: k, parts: 1}
			if t.fixed = fixed[t.x]; t.fixed {
				t.x = t.x.Def.Args[0]
			}
			ok = len(op.Args) == 2 && w.format != nil && (!t.fixed || w.format.Bytes != nil)
			made[op.Result] = t
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
	g.wave = s.Target.Wave
	g.alone = s.Target.Workgroup == g.wave
	g.share(s.Target.Workgroup, func(t *downTerm) bool { return t.fixed })
	return g
}

func (g *expertDown) addDown(t *target.Target, op *ir.Op) bool {
	x, w, ids := op.Args[0], op.Args[1], op.Args[2]
	if g.fixed != nil {
		x = g.fixed.Def.Args[0]
	}
	g.x, g.ids, g.slots, g.k = x, ids, int(ids.Type.Shape[1]), int(w.Type.Shape[2])
	g.down = &weights{value: w, format: weight.FormatOf(t, w.Type.DType, g.k), from: op.Attrs.Int("first")}
	perSlot := int(x.Type.Last()) == g.k*g.slots
	return g.down.format != nil && (g.fixed == nil || g.down.format.Bytes != nil) && perSlot && g.slots <= maxSlots && len(op.Args) == 3 && indexable(w)
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
	var list, atOnce []site.Candidate
	for _, tile := range g.tiles(s.Target) {
		k := *g
		if k.tile = tile; k.subgroups()*k.wave > s.Target.Workgroup || tile > k.subgroups()*k.wave {
			continue
		}
		list = append(list, k.candidate())
		if once := k; k.fitsAtOnce() {
			once.atOnce = true
			atOnce = append(atOnce, once.candidate())
		}
	}
	slices.SortStableFunc(atOnce, func(a, b site.Candidate) int { // one workgroup for each unit at best
		return max(a.Grid[0], s.Target.Units) - max(b.Grid[0], s.Target.Units)
	})
	return append(atOnce, list...)
}

// tiles returns how many elements of the result a workgroup may compute, best guess
// first: larger tiles load x less often, but the device needs enough subgroups to stay busy, since each
// waits for the row that it has loaded.
func (g *expertDown) tiles(t *target.Target) []int {
	best := 32
	for best > 4 && site.CeilDiv(g.width, best)*g.subgroups()*g.wave < gemvLanes*t.Units {
		best /= 2
	}
	list := []int{best, 2 * best, best / 2}
	once := best
	if !t.FewShapes() { // whose compiler has not been asked about it
		once = max(once, site.CeilDiv(g.width, 2*t.Units)) // no more than two workgroups for each unit, which all run at once
	}
	for _, tile := range []int{8, 16, once} {
		if !slices.Contains(list, tile) {
			list = append(list, tile)
		}
	}
	return list
}

// subgroups returns how many a workgroup has: the members, and one for the weights; or one that
// does everything in turn.
func (g *expertDown) subgroups() int {
	if g.alone {
		return 1
	}
	return g.members() + 1
}

// members returns how many products there are: of the slots, and those that are added or parts of them.
func (g *expertDown) members() int {
	n := g.slots
	for _, t := range g.terms {
		if t.x != nil {
			n += t.parts
		}
	}
	return n
}

func (g *expertDown) key() string {
	words := []string{fmt.Sprintf("expert_down %s slots=%d w=%d%s", g.downShape().key(g.halves), g.slots, g.wave, g.extent.Key())}
	if g.alone {
		words = append(words, "alone")
	}
	if g.atOnce {
		words[0] += fmt.Sprintf(" at once %d", g.tile)
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
			word = g.termShape(t).key(g.halves)
			if t.parts > 1 {
				word += fmt.Sprintf(" of %d", t.parts)
			}
		}
		if t.gate != nil {
			word = "gated " + word
		}
		words = append(words, word)
	}
	return strings.Join(words, " + ")
}

// downArgs are the arguments and constants of a kernel.
type downArgs struct {
	x, ids, w       *kernel.Buffer
	scores, scales  *kernel.Buffer // of route; scales may be nil
	weights, bias   *kernel.Buffer // weights without route; bias may be nil
	y               *kernel.Buffer
	terms           []downTermArgs
	k, width        kernel.Value
	first           kernel.Value // row of an expert's matrix that counts
	height, experts kernel.Value
}

// downTermArgs are those of a term: what is added, or x, w, k and maybe gate of a product.
type downTermArgs struct {
	add, x, w, gate *kernel.Buffer
	k               kernel.Value
}

func (g *expertDown) declare(s *site.Signature) downArgs {
	shape := g.down.value.Type.Shape
	a := downArgs{x: s.Read("x", g.x), ids: s.Read("ids", g.ids), w: s.Read("w", g.down.value), terms: make([]downTermArgs, len(g.terms)),
		k: s.U32("k", g.k, 512, "elements of a row of x"), width: s.U32("width", g.width, 2048, "elements of a row of the result"),
		first:  s.U32("from", g.down.from, 0, "first row of an expert's matrix that counts"),
		height: s.U32("height", int(shape[1]), 2048, "rows of an expert's matrix"), experts: s.U32("experts", int(shape[0]), 256, "experts")}
	if g.route != nil {
		a.scores = s.Read("scores", g.route.Args[0])
		if len(g.route.Args) > 2 {
			a.scales = s.Read("scales", g.route.Args[2])
		}
	} else {
		a.weights = s.Read("weights", g.weights)
	}
	if g.down.bias != nil {
		a.bias = s.Read("bias", g.down.bias)
	}
	for i, t := range g.terms {
		to := &a.terms[i]
		if t.x == nil {
			to.add = s.Read(fmt.Sprint("add", i), t.value)
			continue
		}
		to.x, to.w = s.Read(fmt.Sprint("x", i), t.x), s.Read(fmt.Sprint("w", i), t.w.value)
		to.k = s.U32(fmt.Sprint("k", i), t.k, 512, "elements of a row of the term's x")
		if t.gate != nil {
			to.gate = s.Read(fmt.Sprint("gate", i), t.gate)
		}
	}
	a.y = s.Write("y", g.result)
	return a
}

func (g *expertDown) candidate() site.Candidate {
	rows := g.extent.Max
	shape := fmt.Sprintf("tile %d", g.tile)
	if g.atOnce {
		shape += " at once"
	}
	return site.Implement(site.Candidate{
		Kernel: g.key(), Shape: shape, AtOnce: g.atOnce,
		Grid:  [3]int{site.CeilDiv(g.width, g.tile), rows, 1},
		Cover: []plans.Cover{{Arg: "y", Dims: []int{rows, g.width}, Tile: []int{1, g.tile}, Axis: []int{1, 0}}},
	}, "expert_down", g.kernel)
}
