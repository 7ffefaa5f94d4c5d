package matmul

import (
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// match is a linear group as far as its ops have been read.
type match struct {
	*linearGroup
	s    *site.Site
	from *ir.Value // what projections read: x, behind the prologue
	own  *ir.Op    // rounds what a shared expert's projection reads in the place of x, or nil
	cuts []*ir.Op  // slices that nothing has read yet
}

// Match returns the site's group as a linear group, with all that it has; nil if it is none. Families read what it
// returns and change nothing there.
func Match(s *site.Site) *Group {
	m := &match{s: s, linearGroup: &linearGroup{rows: s.Func.Rows, exact: s.Func.Class == ir.ExactStep, n: s.Program.Global(ir.StepN), halves: s.Target.Thresholds.LoadsEarly}}
	ops := s.Group.Ops
	if !m.begin(ops) {
		return nil
	}
	for len(ops) > 0 && prologue[ops[0].Kind.Name] != nil {
		if op := ops[0]; op.Args[0] != m.from || !prologue[op.Kind.Name](m, op) {
			return nil
		}
		m.from, ops = ops[0].Result, ops[1:]
	}
	if !m.readsRows() {
		return nil
	}
	if i := slices.IndexFunc(ops, func(op *ir.Op) bool { return fixedBits[op.Kind.Name] != 0 }); i >= 0 {
		if ops[i].Args[0] != m.from {
			return nil
		}
		m.fixed, m.bits, ops = ops[i].Result, fixedBits[ops[i].Kind.Name], slices.Delete(slices.Clone(ops), i, i+1)
	}
	if !m.body(ops) || !m.finish() {
		return nil
	}
	return m.linearGroup
}

// begin finds x, the first operand of the first op that does not choose experts.
func (m *match) begin(ops []*ir.Op) bool {
	i := slices.IndexFunc(ops, func(op *ir.Op) bool { return op.Kind.Name != "topk" })
	if i < 0 || len(ops[i].Args) == 0 {
		return false
	}
	m.x = ops[i].Args[0]
	m.from = m.x
	return true
}

// prologue has the ops before the projections: each reads what the one before it makes.
var prologue = map[string]func(m *match, op *ir.Op) bool{
	"untile":        (*match).untile,
	"unpack12":      (*match).unpack,
	"last_row":      (*match).lastRow,
	"rmsnorm":       (*match).norm,
	"gated_rmsnorm": (*match).gatedNorm,
	"head_cut":      (*match).headCut,
}

func (m *match) untile(op *ir.Op) bool {
	m.tiled = op
	return m.from == m.x
}

func (m *match) unpack(op *ir.Op) bool {
	m.packed = &packedX{rows: op.Attrs.Int("rows"), columns: op.Attrs.Int("columns"), lanes: strings.Fields(op.Attrs.Str("lanes"))}
	m.fixed, m.bits = op.Result, fixedBits["fixed12"]
	return m.from == m.x
}

func (m *match) lastRow(op *ir.Op) bool {
	if m.last || m.gain != nil || m.gated != nil {
		return false
	}
	m.n, m.last = op.Args[1], true
	return true
}

func (m *match) norm(op *ir.Op) bool {
	if m.gain != nil || m.gated != nil || !isWeighted(op) && !isWeightedRuns(op) {
		return false
	}
	if !isWeighted(op) {
		m.runs = int(op.Result.Type.Last()) / op.Attrs.Int("group")
	}
	m.gain, m.eps = op.Args[1], float32(op.Attrs.Float("eps"))
	return true
}

func (m *match) gatedNorm(op *ir.Op) bool {
	if m.gated != nil || m.gain != nil || m.last {
		return false
	}
	m.gated = gatedOf(op, m.rows)
	return m.gated != nil
}

// isWeighted reports whether a norm is one of whole rows, with a weight of f32.
func isWeighted(norm *ir.Op) bool {
	return ir.Dim(norm.Attrs.Int("group")) == norm.Result.Type.Last() && len(norm.Args) == 2 && norm.Args[1].Type.DType == ir.F32
}

// isWeightedRuns reports whether a norm is one of runs of a row, with a weight of f32 for each element of the row.
func isWeightedRuns(norm *ir.Op) bool {
	return len(norm.Args) == 2 && norm.Args[1].Type.Equal(ir.MakeType(ir.F32, norm.Result.Type.Last()))
}

// readsRows looks at what projections read.
func (m *match) readsRows() bool {
	t := m.from.Type
	if m.half = t.DType == ir.F16; !m.half && t.DType != ir.F32 || len(t.Shape) != 2 {
		return false
	}
	if rows := t.Shape[0]; rows != ir.T {
		m.rows, m.exact = int(rows), true
	}
	return true
}

// body reads the projections and what is behind them.
func (m *match) body(ops []*ir.Op) bool {
	if slices.ContainsFunc(ops, func(op *ir.Op) bool { return op.Kind.Name == "conv1d" }) {
		return m.takeRing(ops)
	}
	for _, op := range ops {
		take := steps[op.Kind.Name]
		if Finishes(op) {
			take = (*match).epilogue
		}
		if take == nil || !take(m, op) {
			return false
		}
	}
	return true
}

// steps are the projections and the ops behind them, but for epilogues.
var steps = map[string]func(m *match, op *ir.Op) bool{
	"topk":          (*match).topK,
	"fixed12":       (*match).roundOwn,
	"linear":        (*match).linear,
	"linear_parts":  (*match).linearParts,
	"add_parts":     (*match).addParts,
	"pack12":        (*match).pack,
	"squares":       (*match).pack,
	"expert_linear": (*match).expertLinear,
	"expert_bias":   (*match).expertBias,
	"slice":         (*match).slice,
	"glu":           (*match).glu,
	"workspace":     (*match).sums,
	"half":          (*match).round,
	"tile":          (*match).tile,
	"add":           (*match).add,
}

// project adds a projection of one matrix, which reads x by k elements of a row.
func (m *match) project(x *ir.Value, k int, p *projection) bool {
	w := p.matrices[0]
	w.format, w.rows = weight.FormatOf(m.s.Target, w.value.Type.DType, k), weight.RowsOf(m.s.Target, w.value)
	p.fixed = m.fixed != nil && x == m.fixed
	if x != m.from && !p.fixed && !m.readsOwn(p, x) || m.k != 0 && m.k != k || w.format == nil || p.fixed && w.format.Bytes == nil {
		return false
	}
	m.k, m.projects = k, append(m.projects, p)
	return true
}

// roundOwn rounds, as x is rounded, what a shared expert's projection reads in its place.
func (m *match) roundOwn(op *ir.Op) bool {
	if m.own != nil || m.fixed == nil || fixedBits[op.Kind.Name] != m.bits {
		return false
	}
	m.own = op
	return true
}

// readsOwn reports whether a projection is that of a shared expert which reads another x than experts that have a run
// of it for each slot.
func (m *match) readsOwn(p *projection, x *ir.Value) bool {
	if m.routing == nil || !m.routing.perSlot || p.slots > 0 {
		return false
	}
	if m.own != nil && x == m.own.Result {
		p.fixed, x = true, m.own.Args[0]
	}
	p.own = x
	return x.Type.Equal(ir.MakeType(ir.F32, x.Type.Shape[0], ir.Dim(p.matrices[0].value.Type.Last()))) && p.fixed == (m.fixed != nil)
}

func (m *match) linear(op *ir.Op) bool {
	w := &weights{value: op.Args[1]}
	if len(op.Args) == 3 {
		w.bias = op.Args[2]
	}
	return m.project(op.Args[0], int(op.Args[0].Type.Last()), &projection{matrices: []*weights{w}, result: op.Result, width: int(op.Result.Type.Last())})
}

// linearParts multiplies parts of x.
func (m *match) linearParts(op *ir.Op) bool {
	each, w := op.Attrs.Int("each"), &weights{value: op.Args[1]}
	if m.each != 0 && m.each != each || m.parts != 0 {
		return false
	}
	m.each = each
	return m.project(op.Args[0], int(op.Args[0].Type.Last()), &projection{matrices: []*weights{w}, result: op.Result, width: int(w.value.Type.Shape[0])})
}

// addParts adds up such products, which stand for those of a matrix.
func (m *match) addParts(op *ir.Op) bool {
	squares, bias := ir.AddedTo(op)
	count := op.Attrs.Int("count")
	if len(m.projects) > 0 && (m.parts != count || m.squares != squares) || m.each != 0 {
		return false
	}
	m.parts = count
	if squares != nil {
		m.squares, m.eps, m.k = squares, float32(op.Attrs.Float("eps")), ir.SquaresEach*int(squares.Type.Last())
	}
	w := &weights{value: op.Args[0], bias: bias}
	m.projects = append(m.projects, &projection{matrices: []*weights{w}, result: op.Result, width: int(op.Result.Type.Last())})
	return true
}

// pack packs a result, behind all else.
func (m *match) pack(op *ir.Op) bool {
	p := m.making(op.Args[0])
	if m.parts == 0 || p == nil || len(m.packs) > 0 && m.packs[0].Args[0] != op.Args[0] {
		return false
	}
	p.packs = true
	m.packs = append(m.packs, op)
	return true
}

// glu joins two projections, or multiplies the activation of one by rows.
func (m *match) glu(op *ir.Op) bool {
	gate, up := m.making(op.Args[0]), m.making(op.Args[1])
	if gate != nil && up == nil {
		return m.gateRows(gate, op)
	}
	if gate == nil || gate == up || !gate.plain() || !up.plain() || gate.fixed != up.fixed || gate.slots != up.slots {
		return false
	}
	gate.matrices = append(gate.matrices, up.matrices...)
	gate.act, gate.result = op.Attrs.Str("act"), op.Result
	m.projects = slices.DeleteFunc(m.projects, func(p *projection) bool { return p == up })
	return true
}

// ofExact reports whether the rows of v are few, which kernels of many rows rely on: they do not look behind products.
func (m *match) ofExact(v *ir.Value) bool {
	rows, ok := site.ExtentOf(m.s, v)
	return ok && rows.Exact
}

// sums takes room for those of split-K products.
func (m *match) sums(op *ir.Op) bool {
	if m.workspace != nil || op.Args[0] != m.x && op.Args[0] != m.from {
		return false
	}
	m.workspace = op.Result
	return true
}

func (m *match) round(op *ir.Op) bool {
	p := m.making(op.Args[0])
	if p == nil || p.half {
		return false
	}
	p.half, p.result = true, op.Result
	return true
}

// tile lays out a result as x is.
func (m *match) tile(op *ir.Op) bool {
	p := m.making(op.Args[0])
	orders, err := ir.TileOrders(op.Attrs.Str("lanes"))
	if err != nil || p == nil || !p.half || p.tile != nil || m.tiled == nil || op.Attrs.Int("rows") != m.rows {
		return false
	}
	p.tile, p.orders, p.result = op, orders, op.Result
	return true
}

func (m *match) add(op *ir.Op) bool {
	p, other := m.making(op.Args[0]), op.Args[1]
	if p == nil {
		p, other = m.making(op.Args[1]), op.Args[0]
	}
	if p == nil || p.half || m.inside(other) { // x + x has both inside
		return false
	}
	p.residuals, p.result = append(p.residuals, other), op.Result
	return true
}

// making returns the projection that has made v so far.
func (m *match) making(v *ir.Value) *projection {
	for _, p := range m.projects {
		if p.result == v {
			return p
		}
	}
	return nil
}

// inside reports whether v is made in the group and not written.
func (m *match) inside(v *ir.Value) bool {
	return m.making(v) != nil || v == m.from && m.from != m.x || v == m.fixed
}

// finish holds that others read the results of all projections, and maybe the chosen experts, but nothing else.
func (m *match) finish() bool {
	if len(m.projects) == 0 || len(m.cuts) > 0 {
		return false
	}
	results := len(m.projects) + len(m.packs)
	for _, op := range m.packs {
		if !slices.Contains(m.s.Outputs, op.Result) {
			return false
		}
	}
	for _, p := range m.projects {
		if slices.Contains(m.s.Outputs, p.result) {
			continue
		}
		if !p.packs {
			return false
		}
		p.inner = true
		results--
	}
	if e := m.routing; e != nil {
		if !m.finishExperts() {
			return false
		}
		if e.top != nil && slices.Contains(m.s.Outputs, e.ids) {
			results++
		}
	}
	return len(m.s.Outputs) == results
}
