package zincc_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/report"
)

// maxPlan bounds the bytes of a plan without weights.
const maxPlan = 8 << 20

// published are models in the sizes in which they are published, without data.
var published = map[string]func() ([]gguf.KV, []gguf.TensorData){
	"qwen35moe-35b-a3b": func() ([]gguf.KV, []gguf.TensorData) {
		return hybrid{
			layers: 40, interval: 4, embd: 2048, vocab: 248320, heads: 16, kv: 2, dim: 256, rope: 64,
			kHeads: 16, vHeads: 32, experts: 256, used: 8, ff: 512, shared: 512, predict: true,
		}.model(nil)
	},
	"qwen3-8b": qwen3,
}

// qwen3 is the 8B model with the types of a file in Q4_K_M.
func qwen3() ([]gguf.KV, []gguf.TensorData) {
	const layers, embd, ff, heads, kv, dim, vocab = 36, 4096, 12288, 32, 8, 128, 151936
	w := weightWriter{}
	w.weight("token_embd.weight", ir.Q4_K, embd, vocab)
	w.scales("output_norm.weight", 1, embd)
	w.weight("output.weight", ir.Q6_K, embd, vocab)
	for i := range layers {
		blk, more := fmt.Sprintf("blk.%d.", i), ir.Q4_K
		if i%2 == 0 {
			more = ir.Q6_K
		}
		w.scales(blk+"attn_norm.weight", 1, embd)
		w.weight(blk+"attn_q.weight", ir.Q4_K, embd, heads*dim)
		w.weight(blk+"attn_k.weight", ir.Q4_K, embd, kv*dim)
		w.weight(blk+"attn_v.weight", more, embd, kv*dim)
		w.weight(blk+"attn_output.weight", ir.Q4_K, heads*dim, embd)
		w.scales(blk+"attn_q_norm.weight", 1, dim)
		w.scales(blk+"attn_k_norm.weight", 1, dim)
		w.scales(blk+"ffn_norm.weight", 1, embd)
		w.weight(blk+"ffn_gate.weight", ir.Q4_K, embd, ff)
		w.weight(blk+"ffn_up.weight", ir.Q4_K, embd, ff)
		w.weight(blk+"ffn_down.weight", more, ff, embd)
	}
	tokens, types := byteTokens(vocab)
	return []gguf.KV{
		{Key: "general.architecture", Value: "qwen3"}, {Key: "general.name", Value: "qwen3 8b"},
		{Key: "qwen3.block_count", Value: uint32(layers)}, {Key: "qwen3.context_length", Value: uint32(40960)},
		{Key: "qwen3.embedding_length", Value: uint32(embd)}, {Key: "qwen3.feed_forward_length", Value: uint32(ff)},
		{Key: "qwen3.attention.head_count", Value: uint32(heads)}, {Key: "qwen3.attention.head_count_kv", Value: uint32(kv)},
		{Key: "qwen3.attention.key_length", Value: uint32(dim)}, {Key: "qwen3.attention.value_length", Value: uint32(dim)},
		{Key: "qwen3.attention.layer_norm_rms_epsilon", Value: float32(1e-6)}, {Key: "qwen3.rope.freq_base", Value: float32(1e6)},
		{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: "qwen2"},
		{Key: "tokenizer.ggml.tokens", Value: tokens}, {Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: []string{"[ 2"}},
	}, w.tensors
}

// wordy gives the model a vocabulary of words and one merge for each, as long as
// those of published files and of random letters, which deflate less well.
func wordy(meta []gguf.KV) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, 2+r.IntN(6))
		for i := range b {
			b[i] = 'a' + byte(r.IntN(26))
		}
		return string(b)
	}
	for i := range meta {
		words, ok := meta[i].Value.([]string)
		if ok && meta[i].Key == "tokenizer.ggml.tokens" {
			for k := 257; k < len(words); k++ {
				words[k] = fmt.Sprintf("%s%d", word(), k)
			}
		}
	}
	for i := range meta {
		if meta[i].Key == "tokenizer.ggml.merges" {
			var merges []string
			for range 150000 {
				merges = append(merges, word()+" "+word())
			}
			slices.Sort(merges)
			meta[i].Value = slices.Compact(merges)
		}
	}
}

// TestPlanSize compiles the published models for a target of each kind with kernels that we lower ourselves; others of
// a kind differ in little. -short has one target for each model.
func TestPlanSize(t *testing.T) {
	for model, build := range published {
		f := writeHeader(t, model, build)
		for _, tg := range target.All() {
			if !slices.Contains([]string{"host", "llvmpipe", "sm_90", "sm_90-cuda", "gfx1201", "generic"}, tg.Name) {
				continue
			}
			if testing.Short() && tg.Name != map[string]string{"qwen3-8b": "sm_90-cuda", "qwen35moe-35b-a3b": "gfx1201"}[model] {
				continue
			}
			t.Run(model+"/"+tg.Name, func(t *testing.T) {
				t.Parallel()
				plan := emit(t, f, tg, frontend.Options{KV: ir.F16, MaxRows: codegen.MaxRows})
				if i := slices.Index(reportTargets, tg.Name); i >= 0 && model == reportModel {
					reportPlans[i] = plan
				}
				var n counter
				if err := plans.Write(&n, plan); err != nil {
					t.Fatal(err)
				}
				if n > maxPlan {
					t.Errorf("plan has %d bytes, more than %d", n, maxPlan)
				}
			})
		}
	}
}

// writeHeader writes the header of a model and opens it.
func writeHeader(t *testing.T, model string, build func() ([]gguf.KV, []gguf.TensorData)) *gguf.File {
	t.Helper()
	meta, tensors := build()
	wordy(meta)
	path := filepath.Join(t.TempDir(), model+".gguf")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := gguf.WriteHeader(out, meta, tensors); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenHeader(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// maxReport bounds the bytes of a report: browsers open it at once, and people send it.
const maxReport = 6 << 20

// TestReportSize's model and targets, and their plans if TestPlanSize has compiled them.
const reportModel = "qwen35moe-35b-a3b"

var (
	reportTargets = []string{"gfx1201", "sm_90"}
	reportPlans   = make([]*plans.Plan, len(reportTargets))
)

// TestReportSize writes the report of the largest published model with all passes, and
// that of the difference between two targets.
func TestReportSize(t *testing.T) {
	if testing.Short() {
		t.Skip("TestPage of plans/report opens smaller reports in a browser")
	}
	const model = reportModel
	f := writeHeader(t, model, published[model])
	compiled := slices.Clone(reportPlans)
	var options [2]report.Options
	for i, name := range reportTargets {
		tg, err := target.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if compiled[i] == nil {
			compiled[i] = emit(t, f, tg, frontend.Options{KV: ir.F16, MaxRows: codegen.MaxRows})
		}
		trace, same, err := codegen.Trace(t.Context(), compiled[i], f, tg, codegen.Choice{})
		if err != nil || !same {
			t.Fatalf("%s for %s: compiled again, the same program: %v, %v", model, name, same, err)
		}
		options[i] = report.Options{Trace: trace, Candidates: codegen.Offered(compiled[i].Program, tg)}
	}
	for name, build := range map[string]func() (*report.Report, error){
		"report": func() (*report.Report, error) { return report.New(compiled[0], options[0]) },
		"diff":   func() (*report.Report, error) { return report.Diff(compiled[0], compiled[1], options[0], options[1]) },
	} {
		r, err := build()
		if err != nil {
			t.Fatal(err)
		}
		var n counter
		if err := r.WriteHTML(&n); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s of %s: %d bytes", name, model, n)
		if n > maxReport {
			t.Errorf("%s of %s has %d bytes, more than %d", name, model, n, maxReport)
		}
	}
}

// counter counts the bytes written to it.
type counter int

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}
