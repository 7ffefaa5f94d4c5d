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

// downMatch is such a group as far as its ops have been read.
type downMatch struct {
	*expertDown
	t      *target.Target
	made   map[*ir.Value]*downTerm // projections
	rounds map[*ir.Value]bool      // values in fixed point
	all    *ir.Value               // the experts' results so far
}

func matchExpertDown(s *site.Site) *expertDown {
	m := &downMatch{expertDown: &expertDown{halves: s.Target.Thresholds.LoadsEarly}, t: s.Target, made: map[*ir.Value]*downTerm{}, rounds: map[*ir.Value]bool{}}
	for _, op := range s.Group.Ops {
		if !downOps[op.Kind.Name](m, op) {
			return nil
		}
	}
	g := m.expertDown
	if g.result == nil || len(s.Outputs) != 1 || s.Outputs[0] != g.result || !m.consistent(s.Group.Ops) {
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

var downOps = map[string]func(m *downMatch, op *ir.Op) bool{
	"route":         (*downMatch).takeRoute,
	"fixed12":       (*downMatch).takeRounded,
	"expert_linear": (*downMatch).takeDown,
	"expert_bias":   (*downMatch).takeBias,
	"expert_sum":    (*downMatch).takeSum,
	"linear":        (*downMatch).takeTerm,
	"gate_rows":     (*downMatch).takeGate,
	"add":           (*downMatch).takeAdd,
}

func (m *downMatch) takeRoute(op *ir.Op) bool {
	first := m.route == nil
	m.route = op
	return first
}

func (m *downMatch) takeRounded(op *ir.Op) bool {
	m.rounds[op.Result] = true
	return true
}

func (m *downMatch) takeDown(op *ir.Op) bool {
	x, w, ids := op.Args[0], op.Args[1], op.Args[2]
	if m.down != nil || len(op.Args) != 3 || !indexable(w) {
		return false
	}
	if m.rounds[x] {
		m.fixed, x = x, x.Def.Args[0]
	}
	m.x, m.ids, m.slots, m.k = x, ids, int(ids.Type.Shape[1]), int(w.Type.Shape[2])
	m.down = &weights{value: w, format: weight.FormatOf(m.t, w.Type.DType, m.k), from: op.Attrs.Int("first")}
	m.linear, m.all = op, op.Result
	perSlot := int(x.Type.Last()) == m.k*m.slots
	return m.down.format != nil && (m.fixed == nil || m.down.format.Bytes != nil) && perSlot && m.slots <= maxSlots
}

func (m *downMatch) takeBias(op *ir.Op) bool {
	if op.Args[0] != m.all || op.Args[2] != m.ids || m.down.bias != nil {
		return false
	}
	m.down.bias, m.all = op.Args[1], op.Result
	return true
}

func (m *downMatch) takeSum(op *ir.Op) bool {
	if m.result != nil || op.Args[0] != m.all {
		return false
	}
	m.weights, m.result, m.width = op.Args[1], op.Result, int(op.Result.Type.Last())
	return true
}

// takeTerm takes a projection without a bias.
func (m *downMatch) takeTerm(op *ir.Op) bool {
	k := int(op.Args[0].Type.Last())
	w := &weights{value: op.Args[1], format: weight.FormatOf(m.t, op.Args[1].Type.DType, k)}
	t := &downTerm{value: op.Result, x: op.Args[0], w: w, op: op, k: k, parts: 1}
	if t.fixed = m.rounds[t.x]; t.fixed {
		t.x = t.x.Def.Args[0]
	}
	m.made[op.Result] = t
	return len(op.Args) == 2 && w.format != nil && (!t.fixed || w.format.Bytes != nil)
}

func (m *downMatch) takeGate(op *ir.Op) bool {
	t := m.made[op.Args[0]]
	if t == nil || t.gate != nil {
		return false
	}
	t.gate, t.value = op.Args[1], op.Result
	m.made[op.Result] = t
	return true
}

// takeAdd takes an add of the result so far and a term.
func (m *downMatch) takeAdd(op *ir.Op) bool {
	other := op.Args[1]
	if other == m.result {
		other = op.Args[0]
	}
	if m.result == nil || !slices.Contains(op.Args, m.result) || other == m.result {
		return false
	}
	t := m.made[other]
	if t == nil {
		t = &downTerm{value: other}
	} else if t.value != other {
		return false // read before the gate
	}
	m.terms, m.result = append(m.terms, t), op.Result
	return true
}

// consistent reports whether the parts belong together and every term is either
// an operand of the group or one of its projections, each read once.
func (m *downMatch) consistent(ops []*ir.Op) bool {
	for _, t := range m.terms {
		if t.x == nil && t.value.Def != nil && slices.Contains(ops, t.value.Def) {
			return false
		}
	}
	for _, t := range m.made {
		if !slices.Contains(m.terms, t) {
			return false
		}
	}
	return m.route == nil || m.route.Result == m.weights && m.route.Args[1] == m.ids
}

func ExpertDownCandidates(s *site.Site, _ *ir.Op) []site.Candidate {
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
		Work:  site.Work{Items: g.tile * g.k * g.slots},
		Grid:  [3]int{site.CeilDiv(g.width, g.tile), rows, 1},
		Cover: []plans.Cover{{Arg: "y", Dims: []int{rows, g.width}, Tile: []int{1, g.tile}, Axis: []int{1, 0}}},
	}, "expert_down", g.kernel)
}
