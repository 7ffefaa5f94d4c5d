package kernels

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// maxSlots bounds the slots that expert_down takes: it unrolls over them.
const maxSlots = 16

// expertDown computes, row by row, a group of the form
//
//	[route] expert_linear expert_sum [linear [gate_rows]] [add]...
//
// A team of lanes computes a few elements of a row of the result: the dot products
// of all slots, then their sum in rank order, then what is added. A lane's loads
// for all slots are under way together.
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
	extent  extent

	wave, team, perTeam, workgroup int
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

func matchExpertDown(s *Site) *expertDown {
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
		case "expert_sum":
			ok = g.result == nil && op.Args[0] == linear
			g.weights, g.result, g.width = op.Args[1], op.Result, int(op.Result.Type.Last())
		case "linear":
			k := int(op.Args[0].Type.Last())
			w := &weights{value: op.Args[1], format: formatOf(op.Args[1].Type.DType, k)}
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
	if g.extent, ok = extentOf(s, g.result); !ok {
		return nil
	}
	return g
}

func (g *expertDown) addDown(op *ir.Op) bool {
	x, w, ids := op.Args[0], op.Args[1], op.Args[2]
	g.x, g.ids, g.slots, g.k = x, ids, int(ids.Type.Shape[1]), int(w.Type.Shape[2])
	g.down = &weights{value: w, format: formatOf(w.Type.DType, g.k), from: op.Attrs.Int("first")}
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

func expertDownCandidates(s *Site) []Candidate {
	g := matchExpertDown(s)
	if g == nil {
		return nil
	}
	g.wave, g.team, g.workgroup = s.Target.Wave, 1, 128
	for g.team < g.wave && 2*g.team <= g.k/g.down.format.unit {
		g.team *= 2
	}
	var list []Candidate
	for _, perTeam := range g.rowsPerTeam(s.Target) {
		k := *g
		k.perTeam = perTeam
		list = append(list, k.candidate())
	}
	return list
}

// rowsPerTeam returns how many elements of the result a team may compute, best
// guess first: two load x once, one keeps more of the device busy.
func (g *expertDown) rowsPerTeam(t *target.Target) []int {
	if ceilDiv(g.width, 2*g.workgroup/g.team) >= 4*t.Units {
		return []int{2, 1}
	}
	return []int{1, 2}
}

func (g *expertDown) tile() int { return g.workgroup / g.team * g.perTeam }

// maxUnits is how many units of a row a lane takes without a loop.
const maxUnits = 2

// units returns how many units of a row of w each lane of a team has, if they are
// few and the same for all, so that no loop is needed; 0 otherwise.
func (g *expertDown) units(w *weights, k int) int {
	n := k / (g.team * w.format.unit)
	if n > maxUnits || n*g.team*w.format.unit != k {
		return 0
	}
	return n
}

func (g *expertDown) key() string {
	words := []string{fmt.Sprintf("expert_down %s/%d slots=%d t=%dx%d w=%d%s",
		g.down.format.name, g.units(g.down, g.k), g.slots, g.team, g.perTeam, g.wave, g.extent.key())}
	if g.route != nil {
		words = append(words, fmt.Sprintf("%s of %d", gatingOf(g.route).key(), g.route.Args[0].Type.Last()))
	}
	for _, t := range g.terms {
		word := "add"
		if t.x != nil {
			word = fmt.Sprintf("%s/%d", t.w.format.name, g.units(t.w, t.k))
		}
		if t.gate != nil {
			word = "gated " + word
		}
		words = append(words, word)
	}
	return strings.Join(words, " + ")
}

func (g *expertDown) operands() []Operand {
	list := append(g.extent.operands(), Operand{"x", g.x, kernel.Read}, Operand{"ids", g.ids, kernel.Read}, Operand{"w", g.down.value, kernel.Read})
	if g.route != nil {
		list = append(list, Operand{"scores", g.route.Args[0], kernel.Read})
	} else {
		list = append(list, Operand{"weights", g.weights, kernel.Read})
	}
	for i, t := range g.terms {
		if t.x == nil {
			list = append(list, Operand{fmt.Sprint("add", i), t.value, kernel.Read})
			continue
		}
		list = append(list, Operand{fmt.Sprint("x", i), t.x, kernel.Read}, Operand{fmt.Sprint("w", i), t.w.value, kernel.Read})
		if t.gate != nil {
			list = append(list, Operand{fmt.Sprint("gate", i), t.gate, kernel.Read})
		}
	}
	return append(list, Operand{"y", g.result, kernel.Write})
}

func (g *expertDown) candidate() Candidate {
	rows, shape := g.extent.max, g.down.value.Type.Shape
	c := Candidate{
		Kernel: g.key(), Build: g.build, Operands: g.operands(),
		Grid:  [3]int{ceilDiv(g.width, g.tile()), rows, 1},
		Cover: []plans.Cover{{Arg: "y", Dims: []int{rows, g.width}, Tile: []int{1, g.tile()}, Axis: []int{1, 0}}},
		Consts: append(g.extent.consts(),
			ir.Const{Name: "k", Value: uint32(g.k)}, ir.Const{Name: "width", Value: uint32(g.width)},
			ir.Const{Name: "from", Value: uint32(g.down.from)},
			ir.Const{Name: "height", Value: uint32(shape[1])}, ir.Const{Name: "experts", Value: uint32(shape[0])}),
	}
	for i, t := range g.terms {
		if t.x != nil {
			c.Consts = append(c.Consts, ir.Const{Name: fmt.Sprint("k", i), Value: uint32(t.k)})
		}
	}
	c.Consts = append(c.Consts, ir.Const{Name: "workgroup", Value: uint32(g.workgroup)})
	return c
}

// downRun is the kernel while it is built.
type downRun struct {
	*expertDown
	b        *kernel.Builder
	bufs     map[string]*kernel.Buffer
	row      kernel.Value   // of the result
	elements []kernel.Value // of the row: what the lane's team computes
	exists   []kernel.Value // whether the row has them; if not, they repeat its last
	lane     kernel.Value   // in the team
	width    kernel.Value
	ids      []kernel.Value
}

func (g *expertDown) build() (*kernel.Func, error) {
	return kernel.Build("expert_down", func(b *kernel.Builder) {
		r := &downRun{expertDown: g, b: b, bufs: map[string]*kernel.Buffer{}}
		bound := g.extent.bound(b)
		for _, o := range g.operands()[len(g.extent.operands()):] {
			r.bufs[o.Name] = b.Arg(o.Name, o.Access)
		}
		k := b.SpecU32("k", 512)
		r.width = b.SpecU32("width", 2048)
		from, height, experts := b.SpecU32("from", 0), b.SpecU32("height", 2048), b.SpecU32("experts", 256)
		var products []*downProduct
		for i, t := range g.terms {
			if t.x != nil {
				m := matrix{t.w.format, r.bufs[fmt.Sprint("w", i)], r.width, b.SpecU32(fmt.Sprint("k", i), 512)}
				products = append(products, &downProduct{m: m, units: g.units(t.w, t.k), x: r.bufs[fmt.Sprint("x", i)]})
			}
		}
		workgroup := b.SpecU32("workgroup", 128)
		b.Workgroup(workgroup)

		r.place(workgroup)
		weigh, terms := r.routing(), r.loadTerms()
		b.ReturnIf(b.Ge(r.row, bound))
		for _, p := range products {
			r.add(p, r.row, r.elements)
		}
		down := &downProduct{m: matrix{g.down.format, r.bufs["w"], b.Mul(height, experts), k}, units: g.units(g.down, g.k), x: r.bufs["x"]}
		for i, id := range r.ids {
			var rows []kernel.Value
			for _, n := range r.elements {
				rows = append(rows, b.Add(b.Mul(id, height), from, n))
			}
			r.add(down, b.Add(b.Mul(r.row, g.slots), i), rows)
		}
		r.run(append(products, down))
		r.finish(weigh(), down, products, terms)
	})
}

// place computes which elements of the result are the lane's.
func (r *downRun) place(workgroup kernel.Value) {
	b := r.b
	r.row, r.lane = b.WorkgroupID(1), b.Mod(b.SubgroupLane(), r.team)
	subgroup := b.Add(b.Mul(b.WorkgroupID(0), b.Div(workgroup, r.wave)), b.SubgroupID())
	team := b.Add(b.Mul(subgroup, r.wave/r.team), b.Div(b.SubgroupLane(), r.team))
	for i := range r.perTeam {
		n := b.Add(b.Mul(team, r.perTeam), i)
		r.elements = append(r.elements, b.Min(n, b.Sub(r.width, 1)))
		r.exists = append(r.exists, b.Lt(n, r.width))
	}
}

// routing loads what the slots' weights depend on and returns what computes them.
func (r *downRun) routing() func() []kernel.Value {
	b := r.b
	first := b.Mul(r.row, r.slots)
	for i := range r.slots {
		r.ids = append(r.ids, r.bufs["ids"].Load(kernel.U32, b.Add(first, i)))
	}
	list := make([]kernel.Value, r.slots)
	if r.route == nil {
		for i := range list {
			list[i] = r.bufs["weights"].Load(kernel.F32, b.Add(first, i))
		}
		return func() []kernel.Value { return list }
	}
	g, experts := gatingOf(r.route), int(r.route.Args[0].Type.Last())
	var row *scoreRow
	if g.all() {
		row = loadScores(b, r.bufs["scores"], r.row, experts, r.wave)
	}
	for i, id := range r.ids {
		list[i] = r.bufs["scores"].Load(kernel.F32, b.Add(b.Mul(r.row, experts), id))
	}
	return func() []kernel.Value { return g.weights(b, row, list) }
}

// loadTerms loads, by term and element, what is added, and in place of it the gate
// of a projection that has one.
func (r *downRun) loadTerms() [][]kernel.Value {
	b := r.b
	list := make([][]kernel.Value, len(r.terms))
	for i, t := range r.terms {
		for _, n := range r.elements {
			switch {
			case t.x == nil:
				list[i] = append(list[i], r.bufs[fmt.Sprint("add", i)].Load(kernel.F32, b.Add(b.Mul(r.row, r.width), n)))
			case t.gate != nil:
				list[i] = append(list[i], r.bufs[fmt.Sprint("gate", i)].Load(kernel.F32, r.row))
			}
		}
	}
	return list
}

// downProduct is a matrix with what it is multiplied with.
type downProduct struct {
	m     matrix
	x     *kernel.Buffer
	units int         // of each lane; 0 if a loop has to go through them
	tiles []*gemvTile // by slot
}

// add adds rows of p's matrix times row x of its operand.
func (r *downRun) add(p *downProduct, x kernel.Value, rows []kernel.Value) {
	b := r.b
	t := &gemvTile{b: b, a: &linearArgs{group: &linearGroup{}, x: p.x}, p: &projectArgs{matrices: []matrix{p.m}},
		columns: []kernel.Value{b.Mul(x, b.Div(p.m.cols, 4))}, rows: [][]kernel.Value{rows}, sums: make([][][]*kernel.Var, 1)}
	for range rows {
		t.sums[0] = append(t.sums[0], []*kernel.Var{b.Var(kernel.F32, 0.0)})
	}
	p.tiles = append(p.tiles, t)
}

// run sums up the products of the lane's units. All loads of a unit come before
// any use, those of all matrices if no loop is needed.
func (r *downRun) run(products []*downProduct) {
	b, pass := r.b, []int{0}
	var pending []func()
	flush := func() {
		for _, use := range pending {
			use()
		}
		pending = nil
	}
	for _, p := range products {
		load := func(u kernel.Value) {
			for _, t := range p.tiles {
				loaded := t.load(u, pass)
				pending = append(pending, func() { t.unit(u, loaded, pass, false) })
			}
		}
		if p.units > 0 {
			for i := range p.units {
				load(b.Add(r.lane, i*r.team))
			}
			continue
		}
		flush()
		b.For(r.lane, b.Div(p.m.cols, p.m.format.unit), r.team, func(u kernel.Value) {
			load(u)
			flush()
		})
	}
	flush()
}

// dot returns the dot product of element i with a slot, in all lanes of the team.
func (r *downRun) dot(t *gemvTile, i int) kernel.Value {
	return xorLanes(r.b, t.sums[0][i][0].Get(), 1, r.team, func(x, y kernel.Value) kernel.Value { return r.b.Add(x, y) })
}

func (r *downRun) finish(weights []kernel.Value, down *downProduct, products []*downProduct, terms [][]kernel.Value) {
	b := r.b
	for i, n := range r.elements {
		y := b.Mul(weights[0], r.dot(down.tiles[0], i))
		for s := 1; s < r.slots; s++ {
			y = b.FMA(weights[s], r.dot(down.tiles[s], i), y)
		}
		left := products
		for j, t := range r.terms {
			if t.x == nil {
				y = b.Add(y, terms[j][i])
				continue
			}
			v := r.dot(left[0].tiles[0], i)
			left = left[1:]
			if t.gate != nil {
				v = logistic(b, v, terms[j][i])
			}
			y = b.Add(y, v)
		}
		b.If(b.And(b.Eq(r.lane, i%r.team), r.exists[i]), func() { r.bufs["y"].Store(b.Add(b.Mul(r.row, r.width), n), y) })
	}
}
