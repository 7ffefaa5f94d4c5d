// Package kernels is the table of the families of kernels. A family looks at a dispatch
// group and offers candidates: a kernel, its specialization constants and its grid. Package
// strategy chooses among them. The families lie in packages named after what they compute.
// They share site (groups, rows, grids), lane (what lanes do with elements and sums),
// fragment (matrices) and weight (how weights are read).
package kernels

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels/attention"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/kernels/recurrent"
	"github.com/zincc-dev/zincc/codegen/kernels/rowwise"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// Site, Candidate, Operand, Rewrite and Tiling are what the rest of the compiler knows of a family.
type (
	Site      = site.Site
	Candidate = site.Candidate
	Operand   = site.Operand
	Rewrite   = site.Rewrite
	Tiling    = site.Tiling
)

// Family is one row of the kernel table.
type Family struct {
	Name string
	Doc  string
	// Candidates returns all ways to compute the site, best guess first as far as the family can tell;
	// none when the group is not of this family. What was measured on a device decides nothing here:
	// package strategy ranks and drops. Entries of different widths have to give the
	// same bits: at a site of few rows, candidates of the same Order add in the same order,
	// and a family offers the same orders at every width.
	Candidates func(s *Site) []Candidate
	// Wants returns what the family asks of the program around the site; nil where it never
	// asks. See Wants.
	Wants func(s *Site) []Rewrite
}

// Wants asks every family what would have to change around s for its kernels to take it. Passes
// apply what they accept, and ask again: what a family wants may depend on that.
func Wants(s *Site) []Rewrite {
	var all []Rewrite
	for _, f := range families {
		if f.Wants != nil {
			for _, w := range f.Wants(s) {
				w.Family = f.Name
				all = append(all, w)
			}
		}
	}
	return all
}

// Candidates asks every family, or those of the names, for its ways to compute s, and leaves out those that take the
// rows of a step as one sequence where they may not be. Where the target leaves the
// subgroup size open, those of few rows are offered for each, that of the target first.
func Candidates(s *Site, of ...string) []Candidate {
	var all []Candidate
	for _, wave := range s.Waves() {
		on := *s.Target
		on.Wave = wave
		at := *s
		at.Target = &on
		for _, f := range families {
			if len(of) > 0 && !slices.Contains(of, f.Name) {
				continue
			}
			for _, c := range f.Candidates(&at) {
				if c.Sequences == ir.OneSequence && s.Mixes() && s.Group.UsesSlots() {
					continue
				}
				c.Family, c.Wave = f.Name, wave
				if c.Order == "" {
					c.Order = fmt.Sprintf("%s w%d", f.Name, wave)
				}
				all = append(all, c)
			}
		}
	}
	return withForms(s, all)
}

// Find returns the candidate of s that the call names, nil if there is none. No two of a site have one name
// (TestCandidatesHaveNames), and a kernel's first word is its family.
func Find(s *Site, call *ir.Call) *Candidate {
	family, _, _ := strings.Cut(call.Kernel, " ")
	all := Candidates(s, family)
	if i := slices.IndexFunc(all, func(c Candidate) bool { return c.Name() == call.Candidate }); i >= 0 {
		return &all[i]
	}
	return nil
}

// families is the kernel table. The order is that of the listing, not of
// preference: the strategy ranks the candidates of all of them.
var families = []Family{
	{"embed", "rows of a table, dequantized", rowwise.EmbedCandidates, nil},
	{"rows", "the same on processors: a row of the weights in each lane", matmul.RowsCandidates, matmul.RowsWants},
	{"gemm_fixed", "projections of 3 to 8 rows in fixed point: norm, weights, bias, GLU, residual, with cooperative matrices of f16 into which lanes put the weights themselves", matmul.GemmFixedCandidates, matmul.GemmFixedWants},
	{"gemv", "projections of few rows: norm, weights of any format, bias, GLU, residual", matmul.GemvCandidates, matmul.GemvWants},
	{"gemm_wgmma", "projections of many rows: what gemm_fragment computes, with products of four subgroups (wgmma)", matmul.GemmWgmmaCandidates, matmul.GemmWgmmaWants},
	{"gemm_fragment", "the same of more rows, with cooperative matrices of f16 into which lanes put the weights themselves", matmul.GemmFragmentCandidates, matmul.GemmFragmentWants},
	{"gemm_coop", "the same of many rows, with cooperative matrices of f16", matmul.GemmCoopCandidates, matmul.GemmCoopWants},
	{"gemm_float", "the same of many rows, with weights of f32, in tiles through shared memory: subgroups share the elements of a row", matmul.GemmFloatCandidates, nil},
	{"gemm_lanes", "the same of many rows, with weights of f32: the lanes of a subgroup share the elements of a row", matmul.GemmLanesCandidates, nil},
	{"gemm", "the same of many rows, in tiles through shared memory", matmul.GemmCandidates, nil},
	{"gemm_dot", "the same of many rows, with x in 8-bit fixed point and dot products of bytes, in tiles through shared memory", matmul.GemmDotCandidates, matmul.GemmDotWants},
	{"expert_gemv", "projections of the experts that a router chooses, row by row: top-k, norm, weights of any format, GLU, shared experts", matmul.ExpertGemvCandidates, matmul.ExpertGemvWants},
	{"expert_gemm", "the same for rows sorted by expert, in tiles through shared memory", matmul.ExpertGemmCandidates, nil},
	{"expert_dot", "expert_gemm with x in 8-bit fixed point and dot products of bytes", matmul.ExpertDotCandidates, matmul.ExpertDotWants},
	{"expert_fragment", "expert_gemm with cooperative matrices of f16 into which lanes put the weights themselves", matmul.ExpertFragmentCandidates, nil},
	{"expert_coop", "expert_gemm with cooperative matrices of f16", matmul.ExpertCoopCandidates, matmul.ExpertCoopWants},
	{"expert_sort", "rows and slots in the order of their experts: one workgroup an expert", matmul.ExpertSortCandidates, nil},
	{"expert_down", "the experts' results, weighted and summed in rank order, with a shared expert's and the residual: one row at a time", matmul.ExpertDownCandidates, matmul.ExpertDownWants},
	{"router", "top-k or the weights of the chosen on its own: one subgroup a row", matmul.RouterCandidates, nil},
	{"router_lanes", "the same on processors: over any number of experts, a slot in each lane", matmul.RouterLanesCandidates, nil},
	{"expert_sum", "the experts' results, summed in rank order, with a gated shared expert's and the residual, element by element", matmul.ExpertSumCandidates, nil},
	{"heads", "slices, norm and rotary embedding of the heads of q and k, their turn for caches of few bits, and the writes of k and v into their caches", attention.HeadsCandidates, nil},
	{"attention_split", "attention of a few rows with what makes q, k and v and writes the caches, each row over parts of the cache that the last part merges: one workgroup a row, KV head and split", attention.AttentionSplitCandidates, nil},
	{"attention_merge", "the splits of attention of many rows combined, and gated: one workgroup a row and head", attention.AttentionMergeCandidates, nil},
	{"attention_wgmma", "attention of many rows of one sequence with products of four subgroups (wgmma): one workgroup a tile of rows and heads that share a KV head", attention.AttentionWgmmaCandidates, attention.AttentionWgmmaWants},
	{"attention_coop", "the same of many rows of one sequence, with cooperative matrices of f16: one workgroup a tile of rows and heads that share a KV head", attention.AttentionCoopCandidates, attention.AttentionCoopWants},
	{"attention_lanes", "causal attention of many rows of one sequence on processors: one workgroup a tile of rows and head, a position or a dim in each lane", attention.AttentionLanesCandidates, nil},
	{"attention_tiled", "causal attention of many rows of one sequence: one workgroup a tile of rows and head, the cache in tiles through shared memory", attention.AttentionTiledCandidates, nil},
	{"delta", "gated DeltaNet: convolution, norms, recurrence and gated norm, one workgroup a value head", recurrent.DeltaCandidates, nil},
	{"delta_chunk", "gated DeltaNet of many rows: what chunks of 8 rows need but the state, one workgroup a chunk and key head", recurrent.DeltaChunkCandidates, nil},
	{"delta_thrice", "delta_chunked with products of matrices: three of TF32 for one of f32", recurrent.DeltaThriceCandidates, nil},
	{"delta_chunked", "gated DeltaNet of many rows: the state from chunk to chunk, one workgroup a part of a value head", recurrent.DeltaChunkedCandidates, nil},
	{"conv", "causal convolution over positions and the ring of past rows, each on its own", recurrent.ConvCandidates, nil},
	{"ssd", "Mamba2: the state of some columns of a head, token by token, one workgroup each", recurrent.SSDCandidates, nil},
	{"argmax", "the choice of the largest logit and what it does to the step block: one workgroup, or several that share a row, of which the last goes on", rowwise.ArgmaxCandidates, nil},
	{"rownorm", "a norm of its own, as f32, f16 or both: one workgroup a row and group, or several groups", rowwise.RowNormCandidates, nil},
	{"tile", "rows of f16 in tiles, in the order in which gemm_wgmma multiplies them", rowwise.TileCandidates, nil},
	{"elementwise", "an add, a gate, a slice and the like on its own", rowwise.ElementwiseCandidates, nil},
}
