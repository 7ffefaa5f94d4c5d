// Package matmul has the families of matrix products: projections of few and of many rows,
// of experts, and their routing.
package matmul

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// linearGroup is a dispatch group of the form
//
//	[untile] [last_row] [rmsnorm or gated_rmsnorm] [fixed12, fixed8 or bfloat16] linear... [glu or epilogue] [add]... [half [tile]]
//	unpack12 linear_parts...
//	add_parts... [glu or epilogue] [add]... [pack12 [squares]]
//
// or one linear op and the gated convolution of its result, see gatedRing, or one of experts, see routing. Match finds
// it, and Features says what of this it has.
//
// Its norm is a deferred scale: with r = 1/sqrt(mean(x^2) + eps), which is one
// number for a row, sum of w*(x*r*gain) is r * sum of w*(x*gain), so that x^2 is
// summed in the same loop as the products. A norm of runs of a row has a number for each; see normedRuns.
type linearGroup struct {
	x         *ir.Value
	n         *ir.Value // rows of the step
	last      bool      // only row n-1 of x, which is row 0 of the results
	gain      *ir.Value // of the norm; nil if there is none
	eps       float32
	runs      int         // of a row, which are normed apart; 0 if the norm is one of whole rows
	gated     *gatedHeads // of one row; nil if x is not
	half      bool        // x is f16
	tiled     *ir.Op      // takes it from tiles; nil if it lies in rows
	packed    *packedX    // x is rounded and packed; nil if it is not
	each      int         // elements of a part, of each of which there is a product; 0 if rows are whole
	parts     int         // products of parts that are added up, instead of weights; 0 if there are weights
	squares   *ir.Value   // of what these parts are products of, if that is normed
	packs     []*ir.Op    // pack12 and squares of one result
	fixed     *ir.Value   // x in fixed point or bf16, for the projections that are fixed
	bits      int         // of it: 12, 8 or 16
	k         int         // row length of x
	rows      int         // rows of the results, at most
	exact     bool        // each row has the bits that it has alone
	halves    bool        // see weight.Matrix
	projects  []*projection
	workspace *ir.Value // for the sums of split-K products; nil if there is none
	routing   *routing  // of experts; nil if there are none
}

// packedX is what op pack12 leaves of x: codes, for so many rows at a time, in layouts that products read in place.
type packedX struct {
	rows, columns int // of all tiles, of each
	lanes         []string
}

// normed reports whether rows have a scale, which follows from their squares.
func (g *linearGroup) normed() bool {
	return g.gain != nil || g.squares != nil
}

// Group is a linear group for the kernel table.
type Group = linearGroup

// projection computes one result: act(W0 x + bias0) * (W1 x + bias1), act(W0 x + bias0) * strip, act(W0 x + bias0), or
// without act W0 x + bias0, maybe times a factor, plus residuals.
type projection struct {
	matrices  []*weights // one, or gate and up
	act       string     // of glu
	strip     *strip     // what the activation of one matrix is multiplied by, or nil
	after     *ir.Op     // epilogue of one matrix, or nil
	residuals []*ir.Value
	result    *ir.Value
	// width is the row length of the result, or what each of its slots has of it.
	width int
	slots int  // experts of a row; 0 where there are none
	half  bool // the result is rounded to f16
	// tile lays out the rounded result in tiles, of these orders; nil if it lies in rows.
	tile   *ir.Op
	orders [][2]int
	fixed  bool // x is taken in fixed point
	packs  bool // the result is packed
	inner  bool // and nobody reads it otherwise
	ring   *gatedRing
	// own is what a shared expert's projection reads in the place of x, where each expert of a row has a run of x.
	own *ir.Value
}

type weights struct {
	value, bias *ir.Value
	format      *weight.Format
	rows        *weight.RowsFormat // nil if its rows are not interleaved
	from        int                // of an expert's rows, or those of parts, the first that counts
}

// hasWorkspace reports whether the group has a workspace of so many elements a row; 0: none.
func (g *linearGroup) hasWorkspace(width int) bool {
	if g.workspace == nil {
		return width == 0
	}
	return int(g.workspace.Type.Last()) == width
}

// inRows reports whether rows of weights are interleaved.
func (g *linearGroup) inRows() bool {
	return slices.ContainsFunc(g.projects, func(p *projection) bool {
		return slices.ContainsFunc(p.matrices, func(w *weights) bool { return w.rows != nil })
	})
}

// fixedBits has the bits of x behind each op that rounds it where it is read.
var fixedBits = map[string]int{"fixed12": 12, "fixed8": 8, "bfloat16": bf16Bits}

// bf16Bits stands for x in bf16, which is no fixed point.
const bf16Bits = 16

// allFixed reports whether all projections read x in fixed point.
func (g *linearGroup) allFixed() bool {
	return !slices.ContainsFunc(g.projects, func(p *projection) bool { return !p.fixed })
}

func (p *projection) plain() bool {
	return p.act == "" && p.after == nil && !p.half && len(p.residuals) == 0
}

// key says all that shapes the code, but for what the family adds.
func (g *linearGroup) key() string {
	var words []string
	if g.last {
		words = append(words, "last")
	}
	if g.normed() {
		words = append(words, "norm")
	}
	if g.runs > 0 {
		words[len(words)-1] += fmt.Sprintf("/%d", g.runs)
	}
	if g.gated != nil {
		words = append(words, g.gated.key(g.k))
	}
	var results []string
	for _, p := range g.projects {
		var m []string
		for _, w := range p.matrices {
			name := "parts"
			if w.format != nil {
				name = w.format.Name
			}
			if p.fixed {
				name += fixedNames[g.bits]
				if g.halves && w.format.Bytes.Halves {
					name += "/halves"
				}
			}
			if w.bias != nil {
				name += "+bias"
			}
			m = append(m, name)
		}
		text := m[0]
		switch {
		case p.ring != nil:
			text = fmt.Sprintf("conv%d%s(%s)", p.ring.count(), p.ring.rows.Key(), strings.Join(m, ","))
		case p.act != "":
			text = p.act + "(" + strings.Join(m, ",") + ")"
		}
		if p.after != nil {
			text = epilogues[p.after.Kind.Name].key(p.after, text)
		}
		if p.strip != nil {
			text += "*rows"
		}
		if p.slots > 0 {
			text = "expert " + text
		}
		if p.own != nil {
			text = "own " + text
		}
		text += strings.Repeat("+add", len(p.residuals))
		if p.half {
			text += "+half"
		}
		if p.tile != nil {
			text += "+tile " + p.tile.Attrs.Str("lanes")
		}
		results = append(results, text)
	}
	return strings.Join(append(words, strings.Join(results, ",")), " ")
}

var fixedNames = map[int]string{12: "*fixed", 8: "*fixed8", bf16Bits: "*bf16"}

// matrixName names the j-th argument of a kind of projection i: w0, w0b, w1, ...
func matrixName(kind string, i, j int) string {
	name := kind + strconv.Itoa(i)
	if j > 0 {
		name += string(rune('a' + j))
	}
	return name
}

// firsts returns the first workgroup of every projection, if one computes tile
// elements of a row of the result.
func (g *linearGroup) firsts(tile int) []int {
	list, _ := g.workgroupsBy(func(int) int { return tile })
	return list
}

// workgroupsBy returns the first workgroup of every projection, and how many there are, if one
// computes tile(i) elements of a row of the i-th result.
func (g *linearGroup) workgroupsBy(tile func(i int) int) (firsts []int, n int) {
	for i, p := range g.projects {
		firsts = append(firsts, n)
		n += site.CeilDiv(p.width, tile(i))
	}
	return
}

// covers says what workgroups write of the results: tiles of so many rows, on grid axis rowAxis, and
// of tile(i) elements of the i-th result, on the other axis.
func (g *linearGroup) covers(rows, tileRows, rowAxis int, tile func(i int) int) []plans.Cover {
	firsts, _ := g.workgroupsBy(tile)
	var list []plans.Cover
	for i, p := range g.projects {
		list = append(list, plans.Cover{Arg: matrixName("y", i, 0), Dims: []int{rows, p.width}, Tile: []int{tileRows, tile(i)},
			Axis: []int{rowAxis, 1 - rowAxis}, First: []int{0, firsts[i]}})
	}
	return list
}

// tiles returns the workgroups that all results take together.
func (g *linearGroup) tiles(tile int) int {
	_, n := g.workgroupsBy(func(int) int { return tile })
	return n
}

// linearArgs are the arguments and constants of a linearGroup in its kernel.
type linearArgs struct {
	group      *linearGroup
	x, gain, n *kernel.Buffer
	squares    *kernel.Buffer // of x, in the place of gain
	gated      *gatedArgs     // nil if x is not
	k, eps     kernel.Value
	projects   []projectArgs
}

type projectArgs struct {
	spec      *projection
	matrices  []weight.Matrix
	bias      []*kernel.Buffer // nil where there is none
	residuals []*kernel.Buffer
	strip     *stripArgs // what the activation is multiplied by, or nil
	after     epilogueArgs
	out       *kernel.Buffer
	own       *kernel.Buffer // what it reads in the place of x, or nil
	width     kernel.Value
	first     kernel.Value // the first workgroup that works on it
	// begin is the first workgroup of the first of the projections that join has made one.
	begin kernel.Value
	ring  *ringArgs // of the convolution behind it, if there is one

	// Of an expert's projection: whose rows count; how many rows an expert has, which is the
	// first that counts, and how many experts there are, by matrix.
	expert                 *kernel.Value
	heights, from, experts []kernel.Value
}

// row returns where row n of matrix j is in its weight.
func (p *projectArgs) row(b *kernel.Builder, j int, n kernel.Value) kernel.Value {
	switch {
	case p.ring != nil:
		return b.Add(p.from[j], n)
	case p.expert == nil:
		return n
	}
	return b.Add(b.Mul(*p.expert, p.heights[j]), p.from[j], n)
}

// declare declares what the kernels of a linear group take. It declares n for last, and where the
// family asks for it; firsts are the first workgroups of the projections.
func (g *linearGroup) declare(s *site.Signature, n bool, firsts []int) *linearArgs {
	a := &linearArgs{group: g}
	if g.parts == 0 {
		a.x = s.Read("x", g.x)
	}
	a.k = s.U32("k", g.k, 4096, "elements of a row of x")
	if g.gain != nil {
		a.gain = s.Read("gain", g.gain)
	}
	if g.squares != nil {
		a.squares = s.Read("squares", g.squares)
	}
	if g.normed() {
		a.eps = s.F32("eps", float64(g.eps), 1e-6, "added to the mean square of a row of x")
	}
	if g.gated != nil {
		a.gated = g.gated.declare(s)
	}
	if n {
		a.n = s.Read("n", g.n)
	}
	for i, p := range g.projects {
		pa := projectArgs{spec: p, width: s.U32(matrixName("n", i, 0), p.width, 4096, "elements of a row of the result, or of a slot's part of it"),
			first: s.U32(matrixName("first", i, 0), firsts[i], 0, "first workgroup of the projection")}
		pa.begin = pa.first
		if p.ring != nil {
			pa.declareParts(s, g, a)
			a.projects = append(a.projects, pa)
			continue
		}
		if p.own != nil {
			pa.own = s.Read(matrixName("x", i, 0), p.own)
		}
		for j, w := range p.matrices {
			m := weight.Matrix{Format: w.format, Buf: s.Read(matrixName("w", i, j), w.value), Rows: pa.width, Cols: a.k, Halves: g.halves}
			pa.matrices = append(pa.matrices, m)
			var bias *kernel.Buffer
			if w.bias != nil {
				bias = s.Read(matrixName("bias", i, j), w.bias)
			}
			pa.bias = append(pa.bias, bias)
			if p.slots > 0 {
				shape := w.value.Type.Shape
				pa.heights = append(pa.heights, s.U32(matrixName("rows", i, j), int(shape[1]), 4096, "rows of an expert's matrix"))
				pa.from = append(pa.from, s.U32(matrixName("from", i, j), w.from, 0, "first row that counts"))
				pa.experts = append(pa.experts, s.U32(matrixName("experts", i, j), int(shape[0]), 8, "experts"))
			}
		}
		if p.after != nil && epilogues[p.after.Kind.Name].declare != nil {
			pa.after = epilogues[p.after.Kind.Name].declare(s, p.after, i)
		}
		if p.strip != nil {
			pa.strip = p.strip.declare(s, i)
		}
		for j, r := range p.residuals {
			pa.residuals = append(pa.residuals, s.Read(matrixName("add", i, j), r))
		}
		if !p.inner {
			pa.out = s.Write(matrixName("y", i, 0), p.result)
		}
		a.projects = append(a.projects, pa)
	}
	return a
}

// countRows tells the experts' matrices how many rows all of them have.
func (a *linearArgs) countRows(b *kernel.Builder) {
	for _, p := range a.projects {
		for j := range p.experts {
			p.matrices[j].Rows = b.Mul(p.heights[j], p.experts[j])
		}
	}
}

// adds reports whether something besides the products is loaded for a result.
func (g *linearGroup) adds() bool {
	return slices.ContainsFunc(g.projects, func(p *projection) bool { return p.loads() > 0 || p.ring != nil })
}

// join makes one projection of neighbours that have the same code, so that the kernel has
// this code once: a workgroup takes the arguments of the projection that it works on.
// It comes before each, outside of loops and ifs, with the same workgroup.
func (a *linearArgs) join(b *kernel.Builder, workgroup kernel.Value) {
	var joined []projectArgs
	for i := 0; i < len(a.projects); {
		n := i + 1
		for n < len(a.projects) && a.projects[n].spec.sameCode(a.projects[i].spec) {
			n++
		}
		joined = append(joined, choose(b, a.projects[i:n], workgroup))
		i = n
	}
	a.projects = joined
}

// sameCode reports whether both projections have the same code but for their arguments.
func (p *projection) sameCode(o *projection) bool {
	same := func(a, b *weights) bool { return a.format == b.format && (a.bias == nil) == (b.bias == nil) }
	return p.slots == 0 && o.slots == 0 && p.strip == nil && o.strip == nil && p.sameEpilogue(o) && p.tile == nil && o.tile == nil && p.act == o.act && p.half == o.half && p.fixed == o.fixed &&
		len(p.residuals) == len(o.residuals) && slices.EqualFunc(p.matrices, o.matrices, same)
}

// choose returns that of some projections that the workgroup works on.
func choose(b *kernel.Builder, list []projectArgs, workgroup kernel.Value) projectArgs {
	p := list[0]
	if len(list) == 1 {
		return p
	}
	which := b.U32(0)
	for i, o := range list[1:] {
		inside := b.Ge(workgroup, o.first)
		which = b.Select(inside, i+1, which)
		p.width, p.first = b.Select(inside, o.width, p.width), b.Select(inside, o.first, p.first)
	}
	among := func(of func(p *projectArgs) *kernel.Buffer) *kernel.Buffer {
		var bufs []*kernel.Buffer
		for i := range list {
			bufs = append(bufs, of(&list[i]))
		}
		if bufs[0] == nil {
			return nil
		}
		return b.Among(bufs, which)
	}
	p.matrices, p.bias, p.residuals = slices.Clone(p.matrices), slices.Clone(p.bias), slices.Clone(p.residuals)
	for j := range p.matrices {
		p.matrices[j].Buf = among(func(p *projectArgs) *kernel.Buffer { return p.matrices[j].Buf })
		p.matrices[j].Rows = p.width
		p.bias[j] = among(func(p *projectArgs) *kernel.Buffer { return p.bias[j] })
	}
	for j := range p.residuals {
		p.residuals[j] = among(func(p *projectArgs) *kernel.Buffer { return p.residuals[j] })
	}
	p.out = among(func(p *projectArgs) *kernel.Buffer { return p.out })
	return p
}

// each emits body once for every projection, for the workgroups between its first
// and the next one's. at counts workgroups from the projection's first.
func (a *linearArgs) each(b *kernel.Builder, workgroup kernel.Value, body func(p *projectArgs, at kernel.Value)) {
	for i := range a.projects {
		p := &a.projects[i]
		if len(a.projects) == 1 {
			if p.first != p.begin {
				workgroup = b.Sub(workgroup, p.first)
			}
			body(p, workgroup)
			continue
		}
		inside := b.Ge(workgroup, p.begin)
		if i+1 < len(a.projects) {
			inside = b.And(inside, b.Lt(workgroup, a.projects[i+1].begin))
		}
		b.If(inside, func() { body(p, b.Sub(workgroup, p.first)) })
	}
}

// passes splits the matrices into those that go through x together, because they
// take its elements in the same order.
func (p *projection) passes() [][]int {
	var all []int
	var each [][]int
	for i, w := range p.matrices {
		if w.format == p.matrices[0].format {
			all = append(all, i)
		}
		each = append(each, []int{i})
	}
	if len(all) == len(each) {
		return [][]int{all}
	}
	return each
}

// rstd returns the scale of a row from the sum of its squares, or that of a run of it.
func (a *linearArgs) rstd(b *kernel.Builder, squares kernel.Value) kernel.Value {
	n := a.k
	if a.group.runs > 0 {
		n = b.Div(n, a.group.runs)
	}
	mean := b.Div(squares, b.Convert(kernel.F32, n))
	return b.InverseSqrt(b.Add(mean, a.eps))
}

// store computes element col of a row of the result and writes it. sums has the
// row's product with each matrix; rstd is the norm's scale, nil without norm;
// residuals are what loadResiduals returns.
func (p *projectArgs) store(b *kernel.Builder, sums []kernel.Value, rstd *kernel.Value, residuals []kernel.Value, row, col kernel.Value) {
	y, residuals := p.result(b, sums, rstd, residuals, col)
	at := b.Add(b.Mul(row, p.width), col)
	for _, r := range residuals {
		y = b.Add(y, r)
	}
	p.out.Store(at, y)
}

// result is the element that store writes but for what is added to it.
func (p *projectArgs) result(b *kernel.Builder, sums []kernel.Value, rstd *kernel.Value, residuals []kernel.Value, col kernel.Value) (y kernel.Value, added []kernel.Value) {
	v := make([]kernel.Value, len(sums))
	for i, s := range sums {
		if rstd != nil {
			s = b.Mul(s, *rstd)
		}
		if p.bias[i] != nil {
			s = b.Add(s, p.bias[i].Load(kernel.F32, p.biasAt(b, p.width, col)))
		}
		v[i] = s
	}
	y = v[0]
	switch {
	case len(v) > 1:
		y = lane.GLU(b, p.spec.act, y)(v[1])
	case p.strip != nil:
		y = lane.GLU(b, p.spec.act, y)(residuals[0])
		residuals = residuals[1:]
	case p.spec.after != nil:
		y = epilogues[p.spec.after.Kind.Name].apply(b, y, p.after)
	}
	return y, residuals
}

// biasAt returns where the bias of element col is, in units of which a row has width.
func (p *projectArgs) biasAt(b *kernel.Builder, width, col kernel.Value) kernel.Value {
	if p.expert == nil {
		return col
	}
	return b.Add(b.Mul(*p.expert, width), col)
}

// loadResiduals loads what element col of a row of the result is multiplied by and what is added to it, or what its
// convolution takes.
func (p *projectArgs) loadResiduals(b *kernel.Builder, row, col kernel.Value) []kernel.Value {
	if p.ring != nil {
		return p.ring.load(b, p.width, row, col)
	}
	var values []kernel.Value
	if p.strip != nil {
		values = append(values, p.strip.load(b, row, col))
	}
	for _, r := range p.residuals {
		values = append(values, r.Load(kernel.F32, b.Add(b.Mul(row, p.width), col)))
	}
	return values
}

// tables returns the bytes of shared memory of the tables that codes of the weights point into.
func (g *linearGroup) tables() (bytes int) {
	seen := map[*weight.Layout]bool{}
	for _, p := range g.projects {
		for _, w := range p.matrices {
			if !seen[w.format.Layout] {
				seen[w.format.Layout] = true
				bytes += w.format.Table
			}
		}
	}
	return bytes
}
