package main

import "fmt"

// mutant is one way to break the source, and what has to notice.
type mutant struct {
	what     string
	file     string
	old, new string // old is in the file once
	pkg      string // of the test
	test     string // pattern
}

func (m mutant) String() string { return fmt.Sprintf("%s (%s, %s)", m.what, m.file, m.test) }

var mutants = []mutant{
	{"no barrier where the step changes", "runtime/vulkan/executor.go",
		"\t\t\tc.Barrier(Compute, Compute)\n", "", "runtime/vulkan", "TestBarriers"},
	{"no barrier before chosen ids are read back", "runtime/vulkan/executor.go",
		"\tc.Barrier(Compute, Transfer)\n\tc.Copy(m.back, 0, m.step", "\tc.Copy(m.back, 0, m.step", "runtime/vulkan", "TestBarriers"},
	{"no barrier before logits are read back", "runtime/vulkan/executor.go",
		"\tc.Barrier(Compute, Transfer)\n\tc.Copy(x.memory.back", "\tc.Copy(x.memory.back", "runtime/vulkan", "TestBarriers"},
	{"no barrier against what was submitted before", "runtime/vulkan/executor.go",
		"\tc.Barrier(Compute|Transfer, Compute)\n", "", "runtime/vulkan", "TestBarriers"},
	{"numbers of 64 bits are cut to 32", "plans/fields.go",
		"binary.AppendVarint(b, v.Int())", "binary.AppendVarint(b, int64(int32(v.Int())))", "plans", "TestLargeNumbers"},
	{"the schema does without names of fields", "plans/fields.go",
		`"%s %s;", f.Name, schema(f.Type)`, `"%s;", schema(f.Type)`, "plans", "TestSchemaTellsStructs"},
	{"the state of slot 0 is kept for all", "plans/state.go",
		"base := int64(slot) * bytes", "base := int64(0)", "plans", "TestStateSpans"},
	{"what was scored is not in the sequence", "runtime/session.go",
		"\t\ts.pos += len(part)\n\t\tall, err", "\t\tall, err", "runtime", "TestDecodeBehindScores"},
	{"answers go on behind the end", "runtime/engine/seq.go",
		"\tif !r.IgnoreEOG {", "\tif r.IgnoreEOG {", "runtime/engine", "TestEndOfGeneration"},
	{"perplexity scores a token too few", "runtime/perplexity.go",
		"i > len(part)-2", "i > len(part)-3", "cmd/zincrun", "TestScripts/score"},
	{"perplexity scores early tokens", "runtime/perplexity.go",
		"i < len(part)/2 ||", "i < len(part)/4 ||", "cmd/zincrun", "TestScripts/score"},
	{"top-p keeps a token too few", "runtime/sample/stages.go",
		"left <= 0 {\n\t\t\ts.set.keep(i + 1)\n", "left <= 0 {\n\t\t\ts.set.keep(max(1, i))\n", "runtime/sample", "TestStages"},
	{"temperature leaves top-p the sum of before", "runtime/sample/stages.go",
		"maxScale)\n\ts.set.total = 0\n", "maxScale)\n", "runtime/sample", "TestTail"},
	{"the fingerprint is that of the first file", "ir/gguf/file.go",
		"for _, s := range f.shards {\n\t\tsum.Write", "for _, s := range f.shards[:1] {\n\t\tsum.Write", "ir/gguf", "TestOpenSplit"},
	{"argmax: rows overwrite what others still read", "codegen/kernels/rowwise/argmax.go",
		"\tb.Barrier() // the next row takes the same shared memory\n", "", "codegen/kernels/rowwise", "TestArgmax"},
	{"argmax: the step block changes under readers", "codegen/kernels/rowwise/argmax.go",
		"\t\tb.BarrierBuffers() // all have read the step block\n", "", "codegen/kernels/rowwise", "TestArgmax"},
	{"heads: no eps", "codegen/kernels/attention/heads.go",
		"b.InverseSqrt(b.Add(mean, k.epsilon))", "b.InverseSqrt(mean)", "codegen/kernels/attention", "TestHeads$"},
	{"x + x is a residual for a pass", "passes/fuse.go",
		"len(made) == 1 && op.Args[0] != op.Args[1]", "len(made) == 1", "passes", "Golden"},
	{"a kernel reads what its group makes", "codegen/kernels/table.go",
		"kernel.Read && slices.Contains(s.Group.Ops, o.Value.Def)", "kernel.Read && o.Value == nil", "codegen/kernels/matmul", "TestOwnResults"},
	{"last-block reduction: no fence before the count", "codegen/kernels/site/lastblock.go",
		"\t\t\tb.Fence()\n\t\t\tnow.Set", "\t\t\tnow.Set", "codegen/kernels/attention", "TestAttentionMatrices"},
	{"last-block reduction: no barrier before the count", "codegen/kernels/site/lastblock.go",
		"\tb.BarrierBuffers()\n\tb.If(b.Eq(b.LocalID(), 0)", "\tb.If(b.Eq(b.LocalID(), 0)", "codegen/kernels/attention", "TestAttentionMatrices"},
	{"sorted rows are read behind the list's end", "codegen/kernels/matmul/gemm.go",
		"t.sorted.target(b.Min(r, b.Sub(t.rows, 1)))", "t.sorted.target(r)", "codegen/kernels/matmul", "TestExpertGemm/f16"},
	{"subgroups without a block store sums of squares", "codegen/kernels/matmul/gemm_fixed_x.go",
		"b.And(b.Lt(r.place, r.columns), r.real)", "b.Lt(r.place, r.columns)", "codegen/kernels/matmul", "TestGemmFixed/q4_k_19"},
	{"tiles without a row keep what was there", "codegen/kernels/matmul/gemm_fragment.go",
		"\t\t\tk.clearTiles(b, a, none)\n", "", "codegen/kernels/matmul", "TestGemmWgmmaTile"},
	{"norms: pieces are read before all rows are there", "codegen/kernels/rowwise/rownorm_tile.go",
		"\tb.Barrier()\n\tb.For(b.LocalID(), ", "\tb.For(b.LocalID(), ", "codegen/kernels/rowwise", "TestNormTile"},
	{"a step's largest dispatch is the first", "passes/fillsteps.go",
		"cmp.Compare(workOf(f, a), workOf(f, b))", "cmp.Compare(workOf(f, b), workOf(f, a))", "codegen", "TestGateBesideRule"},
	{"a prompt's step is launched as a token's", "runtime/cuda/graph.go",
		"n, e.Rows <= ir.DecodeRows,", "n, e.Rows <= 8*ir.DecodeRows,", "runtime/cuda", "TestGraph"},
}
