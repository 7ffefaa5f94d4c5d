// Package kernels is the table of the families of kernels. A family looks at a dispatch
// group and offers candidates: a kernel, its specialization constants and its grid. Package
// strategy chooses among them. The families are in packages named after what they compute: matmul,
// attention, recurrent and rowwise. These share site (groups, rows, grids), lane (elements and sums
// in lanes), fragment (matrices) and weight (reading weights).
package kernels

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/attention"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/kernels/recurrent"
	"github.com/zincc-dev/zincc/codegen/kernels/rowwise"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// Site, Candidate, Operand, Rewrite and Tiling are the interface between families and the rest of the compiler.
type (
	Site      = site.Site
	Candidate = site.Candidate
	Operand   = site.Operand
	Rewrite   = site.Rewrite
	Tiling    = site.Tiling
)

// Family is one row of the kernel table.
type Family struct {
	Name  string
	On    Devices
	Grain Grain
	Doc   string
	work
}

// Grain says with which rows of a step a row of a prompt shares sums, a maximum or a choice of code: with those of its
// grain, which are as many neighbours, counted from the first row of the step. So steps that begin at multiples of it
// give the same bits, see plans.Entry.
type Grain int

const (
	ofTile  Grain = -1            // with rows of its tile: candidates say how many these are
	eachRow Grain = 1             // with none
	ofBlock Grain = ir.DeltaChunk // with those of its chunk of the delta rule, or its block of tokens
)

// work is how a family computes groups.
type work interface {
	// candidates returns all ways to compute the site, best guess first as far as the family can tell;
	// none if the group belongs to other families. Measurements decide nothing here:
	// package strategy ranks and drops. Entries of different widths must give the
	// same bits: at a site of few rows, candidates of the same Order add in the same order,
	// and a family offers the same orders at every width. g is the site's group if it is a linear one, else nil.
	candidates(s *Site, g *matmul.Group) []Candidate
	// wants returns the changes that the family wants in the program around the site. See the function Wants.
	wants(s *Site, g *matmul.Group) []Rewrite
}

// linear is a family of linear groups: its kernels compute those that have all of needs, and nothing but takes.
type linear struct {
	takes, needs matmul.Features
	offer        func(s *Site, g *matmul.Group) []Candidate
	// want is asked of groups that lack what rewrites bring, too; nil if the family never wants any.
	want func(s *Site, g *matmul.Group) []Rewrite
	cost cost
}

// cost is what a family of tiled products states for package strategy, which has no names of families for it.
type cost struct {
	floats bool // products are made in f32, without matrices
	most   int  // of candidates that stay at a site of many rows: each is asked about; 0: all
}

func (l linear) candidates(s *Site, g *matmul.Group) []Candidate {
	if g == nil || !g.Has(l.needs, l.takes) {
		return nil
	}
	return l.offer(s, g)
}

func (l linear) wants(s *Site, g *matmul.Group) []Rewrite {
	if g == nil || l.want == nil || !g.Has(l.needs&^matmul.Brought, l.takes) {
		return nil
	}
	return l.want(s, g)
}

// around is a family of groups of other ops: its kernels compute one of those that it is of, of the given rows, with
// nothing around it but what it takes. Where it takes nothing, others read the result.
type around struct {
	of    []string // names of ops; in a group of several, the first of this list is the one that is computed
	takes []string
	rows  rows
	offer func(s *Site, op *ir.Op) []Candidate
	want  func(s *Site, op *ir.Op) []Rewrite // nil if the family never wants any
}

// rows are those of the first operand of what a family computes.
type rows int

const (
	anyRows    rows = iota
	exactRows       // each has the bits that it has alone
	promptRows      // it need not
)

// match returns the op of the site's group that the family computes; nil if the group is none of its own.
func (a around) match(s *Site) *ir.Op {
	op, at := (*ir.Op)(nil), len(a.of)
	for _, o := range s.Group.Ops {
		switch i := slices.Index(a.of, o.Kind.Name); {
		case i < 0 && !slices.Contains(a.takes, o.Kind.Name):
			return nil
		case i >= 0 && i < at:
			op, at = o, i
		}
	}
	if op == nil || a.takes == nil && !site.Alone(s, op) {
		return nil
	}
	if a.rows != anyRows {
		if e, ok := site.ExtentOf(s, op.Args[0]); !ok || e.Exact != (a.rows == exactRows) {
			return nil
		}
	}
	return op
}

func (a around) candidates(s *Site, _ *matmul.Group) []Candidate {
	if op := a.match(s); op != nil {
		return a.offer(s, op)
	}
	return nil
}

func (a around) wants(s *Site, _ *matmul.Group) []Rewrite {
	if a.want == nil {
		return nil
	}
	if op := a.match(s); op != nil {
		return a.want(s, op)
	}
	return nil
}

// Devices says where the kernels of a family run.
type Devices int

const (
	everywhere Devices = iota
	gpus
	processors
)

// has reports whether t is one of them.
func (d Devices) has(t *target.Target) bool {
	return d == everywhere || (d == processors) == t.Processor()
}

// Families returns those whose kernels run on t.
func Families(t *target.Target) iter.Seq[*Family] {
	return func(yield func(*Family) bool) {
		for i := range families {
			if f := &families[i]; f.On.has(t) && !yield(f) {
				return
			}
		}
	}
}

// Wants asks every family what must change around s so that its kernels can take it. Passes
// apply what they accept and ask again, since further wants may depend on it.
func Wants(s *Site) []Rewrite {
	g := matmul.Match(s)
	var all []Rewrite
	for f := range Families(s.Target) {
		for _, w := range f.wants(s, g) {
			w.Family = f.Name
			all = append(all, w)
		}
	}
	return all
}

// Candidates asks every family, or the named ones, for its ways to compute s. It leaves out candidates that take the
// rows of a step as one sequence where they may belong to several, and those that read from memory what the group
// itself makes. If the target leaves the subgroup size open, it offers candidates of few rows for each size, the
// target's own first.
func Candidates(s *Site, of ...string) []Candidate { return candidates(s, nextWeights, of...) }

func candidates(s *Site, next prefetched, of ...string) []Candidate {
	var all []Candidate
	for _, wave := range s.Waves() {
		on := *s.Target
		on.Wave = wave
		at := *s
		at.Target = &on
		g := matmul.Match(&at)
		for f := range Families(s.Target) {
			if len(of) > 0 && !slices.Contains(of, f.Name) {
				continue
			}
			for _, c := range f.candidates(&at, g) {
				if s.Mixes() && s.Group.UsesSlots() && !c.Mixes(s.Func) {
					continue
				}
				if slices.ContainsFunc(c.Operands, func(o Operand) bool { return o.Access == kernel.Read && slices.Contains(s.Group.Ops, o.Value.Def) }) {
					continue
				}
				c.Family, c.Wave = f.Name, wave
				if f.Grain != ofTile {
					c.Grain = int(f.Grain)
				}
				if c.Order == "" {
					c.Order = fmt.Sprintf("%s w%d", f.Name, wave)
				}
				c.Sums = sumsOf(s, &c)
				all = append(all, c)
			}
		}
	}
	return withForms(s, all, next)
}

// sumsOf names what the bits of a row depend on: where rows are exact the order, else what the family says besides.
func sumsOf(s *Site, c *Candidate) string {
	prompt := func(op *ir.Op) bool { return op.Result != nil && !s.Func.Exact(op.Result) }
	switch {
	case !slices.ContainsFunc(s.Group.Ops, prompt):
		return c.Order
	case c.Sums != "":
		return c.Order + " " + c.Sums
	}
	return c.Base()
}

// followParts are the ops with slots whose kernels follow those of steps with parts.
var followParts = names("kvwrite attention conv1d conv_write deltanet ssd")

// followPartsOfChunks are those where delta rules go chunk by chunk, run after run: with a workgroup for each part and
// head, one run of 2,048 rows took delta_tf32x3 343 us instead of 220 on an H200.
var followPartsOfChunks = names("kvwrite attention conv1d conv_write deltanet")

// FollowParts reports whether there are kernels for steps with parts for all ops of p that use slots.
func FollowParts(t *target.Target, p *ir.Program) bool {
	followParts := followParts
	if t.Chunks {
		followParts = followPartsOfChunks
	}
	return !t.Processor() && !slices.ContainsFunc(p.Funcs, func(f *ir.Func) bool {
		return slices.ContainsFunc(f.Ops(), func(op *ir.Op) bool {
			return op.Kind.Slots != ir.Slotless && !slices.Contains(followParts, op.Kind.Name)
		})
	})
}

// Find returns the candidate of s that the call names, in its form and with what it prefetches, or nil. Names are
// unique at a site (TestCandidatesHaveNames), and the first word of a kernel's name is its family.
func Find(s *Site, call *ir.Call) *Candidate {
	family, _, _ := strings.Cut(call.Kernel, " ")
	all := candidates(s, argumentsOf(call), family)
	if i := slices.IndexFunc(all, func(c Candidate) bool { return c.Base() == call.Candidate && c.Form == call.Form }); i >= 0 {
		return &all[i]
	}
	return nil
}

// lookup returns the row of a family, nil if there is none.
func lookup(family string) *Family {
	if i := slices.IndexFunc(families, func(f Family) bool { return f.Name == family }); i >= 0 {
		return &families[i]
	}
	return nil
}

// OnFloats reports whether a family makes products in f32, without matrices.
func OnFloats(family string) bool { return costOf(family).floats }

// Most is how many candidates of a family are worth asking a compiler or a device about at a site of many rows; 0: all.
func Most(family string) int { return costOf(family).most }

func costOf(family string) cost {
	if f := lookup(family); f != nil {
		if l, ok := f.work.(linear); ok {
			return l.cost
		}
	}
	return cost{}
}

// names are those of ops.
func names(list string) []string { return strings.Fields(list) }

// What stands around attention, around the heads before it, and around a delta rule.
var (
	gated      = names("head_slice gate half")
	ofHeads    = names("head_slice rmsnorm rope hadamard kvwrite head_join head_cut half")
	ofDelta    = names("conv1d conv_write slice l2norm decay sigmoid gated_rmsnorm")
	ofProducts = names("last_row rmsnorm gated_rmsnorm fixed12 linear") // up to the first product
)

// several are projections with what all kernels do behind a product, ofExperts the same of experts.
const (
	several   = matmul.Several | matmul.Bias | matmul.GLU | matmul.Residual
	ofExperts = matmul.Several | matmul.Bias | matmul.GLU | matmul.Experts | matmul.Sorted | matmul.Slotwise
)

// gemv is also what stands beside a delta rule.
var gemv = linear{
	takes: matmul.Exact | matmul.LastRow | matmul.Norm | matmul.NormRuns | matmul.NormGated | matmul.Fixed12 | several | matmul.Epilogue | matmul.GateRows | matmul.Conv,
	offer: matmul.GemvCandidates, want: matmul.GemvWants,
}

// families is the kernel table. Its order is that of the listing, not of
// preference: package strategy ranks the candidates of all families.
var families = []Family{
	{"embed", everywhere, eachRow, "embedding: rows of a table, dequantized", around{of: names("embed"), offer: rowwise.EmbedCandidates}},
	{"rows", processors, eachRow, "projections of any number of rows, also of experts, a row of the weights in each lane", linear{
		takes: matmul.Rows | matmul.LastRow | matmul.Norm | matmul.Fixed12 | matmul.Fixed8 | matmul.Bfloat16 | matmul.Bias | matmul.GLU | matmul.Residual | matmul.Experts | matmul.Sorted | matmul.Slotwise,
		offer: matmul.RowsCandidates, want: matmul.RowsWants,
	}},
	{"gemm_wide", gpus, eachRow, "projections of 16 to 64 rows in fixed point, of super-blocks and of runs with a scale: as gemm_fixed, with products of four subgroups (wgmma)", linear{
		takes: matmul.Exact | matmul.Norm | matmul.Fixed12 | matmul.Packed | matmul.OfParts | matmul.Workspace | several | matmul.Epilogue,
		needs: matmul.Fixed12,
		offer: matmul.GemmWideCandidates, want: matmul.GemmWideWants,
	}},
	{"gemm_fixed", gpus, eachRow, "projections of 3 to 8 rows in fixed point: norm, weights, bias, GLU, residual, on matrices of f16 whose fragments the lanes fill", linear{
		takes: matmul.Rows | matmul.Norm | matmul.Fixed12 | matmul.Workspace | several | matmul.Epilogue,
		needs: matmul.Fixed12,
		offer: matmul.GemmFixedCandidates, want: matmul.GemmFixedWants,
	}},
	{"gemv", gpus, eachRow, "projections of few rows: norm, weights of any format, bias, GLU, residual", gemv},
	{"gemm_wgmma", gpus, eachRow, "projections of many rows: as gemm_fragment, with products of four subgroups (wgmma); products of gate and up also in tiles", linear{
		takes: matmul.Prompt | matmul.HalfX | matmul.Tiles | matmul.Workspace | several | matmul.HalfY | matmul.TileY,
		needs: matmul.Tiles,
		offer: matmul.GemmWgmmaCandidates, want: matmul.GemmWgmmaWants,
	}},
	{"gemm_fragment", gpus, eachRow, "projections of many rows, on matrices of f16 whose fragments the lanes fill with weights", linear{
		takes: matmul.Prompt | matmul.HalfX | matmul.Workspace | several | matmul.HalfY,
		needs: matmul.HalfX,
		offer: matmul.GemmFragmentCandidates, want: matmul.GemmFragmentWants,
		cost: cost{most: 1},
	}},
	{"gemm_coop", gpus, eachRow, "projections of many rows, on cooperative matrices of f16 loaded from shared memory", linear{
		takes: matmul.Prompt | matmul.HalfX | several | matmul.HalfY,
		needs: matmul.HalfX,
		offer: matmul.GemmCoopCandidates, want: matmul.GemmCoopWants,
		cost: cost{most: 4},
	}},
	{"gemm_float", gpus, eachRow, "projections of many rows with weights of f32, in tiles through shared memory; subgroups share the elements of a row", linear{
		takes: matmul.Prompt | matmul.Several | matmul.Bias | matmul.Epilogue | matmul.Residual,
		offer: matmul.GemmFloatCandidates,
		cost:  cost{floats: true},
	}},
	{"gemm_lanes", gpus, eachRow, "projections of many rows with weights of f32; the lanes of a subgroup share the elements of a row", linear{
		takes: matmul.Prompt | matmul.Several | matmul.Bias | matmul.Epilogue | matmul.Residual,
		offer: matmul.GemmLanesCandidates,
		cost:  cost{floats: true},
	}},
	{"gemm", gpus, eachRow, "projections of many rows, in tiles through shared memory", linear{
		takes: matmul.Prompt | matmul.Norm | several | matmul.Epilogue,
		offer: matmul.GemmCandidates,
	}},
	{"gemm_dot", gpus, eachRow, "projections of many rows, with x in 8-bit fixed point and int8 dot products, in tiles through shared memory", linear{
		takes: matmul.Prompt | matmul.Norm | matmul.Fixed8 | several | matmul.Epilogue,
		needs: matmul.Fixed8,
		offer: matmul.GemmDotCandidates, want: matmul.GemmDotWants,
	}},
	{"expert_wide", gpus, eachRow, "projections of the experts that 16 rows and more of an exact step choose: as expert_gemv, but the weights of an expert are read once, on matrices of f16 or of bytes whose fragments the lanes fill", linear{
		takes: matmul.Exact | matmul.Norm | matmul.Fixed12 | matmul.Several | matmul.Bias | matmul.GLU | matmul.Experts | matmul.Shared | matmul.TopK | matmul.Slotwise | matmul.OwnX,
		needs: matmul.Experts | matmul.Fixed12,
		offer: matmul.ExpertWideCandidates, want: matmul.ExpertWideWants,
	}},
	{"expert_gemv", gpus, eachRow, "projections of the experts that a router chooses, row by row: top-k, norm, weights of any format, GLU, shared experts", linear{
		takes: matmul.Rows | matmul.Norm | matmul.Fixed12 | matmul.Several | matmul.Bias | matmul.GLU | matmul.Epilogue | matmul.Experts | matmul.Shared | matmul.TopK | matmul.Slotwise | matmul.HeadCut,
		needs: matmul.Experts,
		offer: matmul.ExpertGemvCandidates, want: matmul.ExpertGemvWants,
	}},
	{"expert_gemm", gpus, eachRow, "projections of experts, for rows sorted by expert, in tiles through shared memory", linear{
		takes: matmul.Rows | matmul.Norm | ofExperts | matmul.Epilogue,
		needs: matmul.Sorted,
		offer: matmul.ExpertGemmCandidates,
	}},
	{"expert_dot", gpus, eachRow, "expert_gemm with x in 8-bit fixed point and int8 dot products", linear{
		takes: matmul.Prompt | matmul.Norm | matmul.Fixed8 | ofExperts | matmul.Epilogue,
		needs: matmul.Sorted | matmul.Fixed8,
		offer: matmul.ExpertDotCandidates, want: matmul.GemmDotWants,
	}},
	{"expert_fragment", gpus, eachRow, "expert_gemm on matrices of f16 whose fragments the lanes fill with weights", linear{
		takes: matmul.Rows | matmul.HalfX | ofExperts | matmul.HalfY,
		needs: matmul.Sorted | matmul.HalfX,
		offer: matmul.ExpertFragmentCandidates,
	}},
	{"expert_coop", gpus, eachRow, "expert_gemm on cooperative matrices of f16", linear{
		takes: matmul.Rows | matmul.HalfX | ofExperts | matmul.HalfY,
		needs: matmul.Sorted | matmul.HalfX,
		offer: matmul.ExpertCoopCandidates, want: matmul.GemmCoopWants,
		cost: cost{most: 4},
	}},
	{"expert_sort", everywhere, eachRow, "sorts rows and slots by expert: one workgroup an expert", around{of: names("expert_offsets"), takes: names("expert_order"), offer: matmul.ExpertSortCandidates}},
	{"expert_down", gpus, eachRow, "down projections of experts, weighted and summed in rank order, with a shared expert's result and the residual: one row at a time", around{
		of: names("expert_sum"), takes: names("route fixed12 expert_linear expert_bias linear gate_rows add"),
		offer: matmul.ExpertDownCandidates, want: matmul.ExpertDownWants,
	}},
	{"expert_weigh", gpus, eachRow, "the sums of expert_down over the experts' results that others made, in exact steps: weights, a gated shared expert's result, the residual", around{of: names("route"), takes: names("expert_sum gate_rows add"), offer: matmul.ExpertWeighCandidates}},
	{"router", everywhere, eachRow, "top-k, or the weights of the chosen experts, as a dispatch of its own: one subgroup a row", around{of: names("topk route"), offer: matmul.RouterCandidates}},
	{"router_lanes", processors, eachRow, "router for any number of experts, a slot in each lane", around{of: names("topk route"), offer: matmul.RouterLanesCandidates}},
	{"expert_sum", everywhere, eachRow, "the experts' results, summed in rank order, with a gated shared expert's result and the residual, element by element", around{of: names("expert_sum gate_rows"), takes: names("add"), offer: matmul.ExpertSumCandidates}},
	{"heads", everywhere, eachRow, "heads of q and k: slices, norm, rotary embedding, Hadamard transform for quantized caches; writes k and v into their caches", around{of: ofHeads[:6], takes: ofHeads[6:], offer: attention.HeadsCandidates}},
	{"attention_split", everywhere, eachRow, "attention of few rows, with what makes q, k and v and writes the caches; split over the cache, the last workgroup merges: one workgroup a row, KV head and split", around{
		of: names("attention_split attention"), takes: slices.Concat(names("attention_merge gate"), ofHeads), rows: exactRows,
		offer: attention.AttentionSplitCandidates,
	}},
	{"attention_merge", everywhere, eachRow, "merges the splits of attention of many rows, and gates the result: one workgroup a row and head", around{of: names("attention_merge"), takes: gated, offer: attention.AttentionMergeCandidates}},
	{"attention_wgmma", everywhere, ofTile, "attention of many rows of one sequence with products of four subgroups (wgmma), also into tiles: one workgroup a tile of rows and heads that share a KV head", around{
		of: names("attention attention_split"), takes: slices.Concat(gated, names("attention_merge tile")), rows: promptRows,
		offer: attention.AttentionWgmmaCandidates, want: attention.AttentionWgmmaWants,
	}},
	{"attention_coop", everywhere, ofTile, "attention of many rows of one sequence on cooperative matrices of f16: one workgroup a tile of rows and heads that share a KV head", around{
		of: names("attention attention_split"), takes: gated, rows: promptRows,
		offer: attention.AttentionCoopCandidates, want: attention.AttentionCoopWants,
	}},
	{"attention_lanes", processors, ofTile, "causal attention of many rows of one sequence, one workgroup a tile of rows and head, a position or a dim in each lane", around{of: names("attention"), takes: gated, rows: promptRows, offer: attention.AttentionLanesCandidates}},
	{"attention_tiled", everywhere, ofTile, "causal attention of many rows of one sequence: one workgroup a tile of rows and head, the cache in tiles through shared memory", around{of: names("attention"), takes: gated, rows: promptRows, offer: attention.AttentionTiledCandidates}},
	{"delta", everywhere, ofBlock, "gated DeltaNet: convolution, norms, recurrence and gated norm, one workgroup a value head", around{of: names("deltanet"), takes: ofDelta, offer: recurrent.DeltaCandidates}},
	{"horizontal", gpus, eachRow, "gated DeltaNet of one row beside the projection that gates its result: workgroups of delta, then those of gemv", around{of: names("deltanet"), takes: slices.Concat(ofDelta, ofProducts), offer: horizontalCandidates, want: horizontalWants}},
	{"delta_chunk", everywhere, ofBlock, "gated DeltaNet of many rows: for each chunk of 8 rows, what does not need the state, one workgroup a chunk and key head", around{of: names("delta_chunk"), takes: names("slice decay sigmoid"), offer: recurrent.DeltaChunkCandidates}},
	{"delta_tf32x3", everywhere, ofBlock, "delta_chunked with matrix products, three of TF32 for one of f32", around{of: names("deltanet_chunked"), takes: names("slice"), offer: recurrent.DeltaTF32x3Candidates}},
	{"delta_chunked", everywhere, ofBlock, "gated DeltaNet of many rows: the state from chunk to chunk, one workgroup a part of a value head", around{of: names("deltanet_chunked"), takes: names("slice"), offer: recurrent.DeltaChunkedCandidates}},
	{"conv", everywhere, eachRow, "causal convolution over positions and the ring of past rows, each on its own", around{of: names("conv1d conv_write"), takes: names("slice mul"), offer: recurrent.ConvCandidates}},
	{"ssd", everywhere, ofBlock, "Mamba2: the state of some columns of a head, token by token, one workgroup each", around{of: names("ssd"), takes: names("slice conv1d conv_write glu"), offer: recurrent.SSDCandidates}},
	{"argmax", everywhere, eachRow, "chooses the largest logit and advances the step block: one workgroup, or several that share a row and end in a last-block reduction", around{of: names("argmax argmax_split advance"), takes: names("argmax_merge"), offer: rowwise.ArgmaxCandidates}},
	{"candidates", gpus, eachRow, "leaves the likeliest tokens of each part of a row of logits, and the sum of their weights: one workgroup a row and part", around{of: names("candidates"), offer: rowwise.CandidatesCandidates}},
	{"rownorm", everywhere, eachRow, "a norm as a dispatch of its own, as f32, f16, in tiles, or several of these: one workgroup a row and group, or several groups; for tiles several rows", around{of: names("rmsnorm gated_rmsnorm l2norm"), takes: names("half tile add scale"), offer: rowwise.RowNormCandidates}},
	{"add_parts", gpus, eachRow, "adds up what gemm_wide makes of parts of rows, does what stands behind products, and rounds results for the next ones", linear{
		takes: matmul.Exact | matmul.Parts | several | matmul.Epilogue,
		needs: matmul.Parts,
		offer: matmul.AddPartsCandidates,
	}},
	{"pack12", gpus, eachRow, "rounds rows to 12-bit fixed point, in the layouts in which gemm_wide multiplies them", around{
		of: names("pack12"), takes: names("squares"), rows: exactRows, offer: matmul.Pack12Candidates,
	}},
	{"tile", everywhere, eachRow, "lays out rows of f16 in tiles, in the order in which gemm_wgmma multiplies them", around{of: names("tile"), offer: rowwise.TileCandidates}},
	{"elementwise", everywhere, eachRow, "an add, a gate, a slice and the like as a dispatch of its own", around{of: rowwise.ElementwiseOps(), takes: names("slice"), offer: rowwise.ElementwiseCandidates}},
}
