package frontend_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/ir/oracle"
)

var (
	update = flag.Bool("update", false, "write the golden programs")
	models = flag.String("models", "", "also write the tiny models to this directory, for other engines")
)

// options are small; a step holds the whole prompt.
var options = frontend.Options{Ctx: 64, KV: ir.F16, MaxRows: 32}

func TestEveryArchitectureHasATinyModel(t *testing.T) {
	if len(tinyModels) != len(frontend.Archs()) {
		t.Errorf("%d tiny models for %d architectures", len(tinyModels), len(frontend.Archs()))
	}
	for _, arch := range frontend.Archs() {
		if tinyModels[arch] == nil {
			t.Errorf("no tiny model of %s", arch)
		}
	}
}

// allModels are those of all architectures and their variants.
func allModels() map[string]func() *tinyModel {
	all := maps.Clone(tinyModels)
	maps.Copy(all, variants)
	return all
}

// TestPrograms compares the programs with testdata/ARCH.zir.
func TestPrograms(t *testing.T) {
	for arch, build := range allModels() {
		t.Run(arch, func(t *testing.T) {
			p, err := frontend.Load(build().open(t), options)
			if err != nil {
				t.Fatal(err)
			}
			p.Path = "model.gguf"
			text := ir.Print(p)
			golden := filepath.Join("testdata", arch+".zir")
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("program differs from %s (-update to accept):\n%s", golden, text)
			}
			for _, op := range p.Funcs[0].Ops() {
				if op.Kind.Name == "argmax" && op.Args[0].Class != ir.IO {
					t.Error("the device compares other logits than the host reads")
				}
			}
		})
	}
}

// prompt and start are what testdata/ARCH.logits was computed for. What is short in tiny models, windows, contexts of
// training and lengths of temperature, ends between them.
const (
	prompt = "package sort // Search"
	start  = "pac"
)

type weights struct{ f *gguf.File }

func (w weights) Weight(name string) ([]byte, error) {
	t, ok := w.f.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("no tensor %q", name)
	}
	return w.f.Data(t), nil
}

// TestLogits holds the logits behind the prompt and behind its start against those that llama.cpp computes, whatever
// steps the prompt is fed in. To renew them: go test -models DIR, then llama-debug -m DIR/ARCH.gguf -p PROMPT -fa off
// -ctk f32 -ctv f32 --save-logits for both, whose .txt have an index and a logit a line; ARCH.logits has one behind the
// other. (With its flash attention, llama.cpp sums values in float16 on the CPU.)
func TestLogits(t *testing.T) {
	for arch, build := range allModels() {
		t.Run(arch, func(t *testing.T) {
			m := build()
			if *models != "" {
				m.write(t, filepath.Join(*models, arch+".gguf"))
			}
			all := readLogits(t, arch)
			f := m.open(t)
			ones := slices.Repeat([]int{1}, len(prompt))
			first := feed(t, f, ones...)
			near(t, prompt, first, all[:tinyVocab])
			near(t, start, feed(t, f, ones[:len(start)]...), all[tinyVocab:])
			for _, chunks := range [][]int{{len(prompt)}, {5, len(prompt) - 5}, append([]int{len(prompt) - 3}, ones[:3]...)} {
				if got := feed(t, f, chunks...); !slices.Equal(got, first) {
					t.Errorf("steps of %v rows give other logits than steps of one row", chunks)
				}
			}
		})
	}
}

// near wants logits within 1e-5 of llama.cpp's, by their norms.
func near(t *testing.T, behind string, got []float32, want []float64) {
	t.Helper()
	var off, length float64
	for i, w := range want {
		d := float64(got[i]) - w
		off, length = off+d*d, length+w*w
	}
	if r := math.Sqrt(off / length); !(r <= 1e-5) {
		t.Errorf("behind %q the logits are %.2g of their norm away from llama.cpp's", behind, r)
	} else {
		t.Logf("behind %q: %.2g", behind, r)
	}
}

// TestPackedProjections has a file of an early converter give the bits of today's.
func TestPackedProjections(t *testing.T) {
	m := tinyModels["qwen3next"]()
	want := feed(t, m.open(t), len(prompt))
	m.packed("blk.0.")
	if got := feed(t, m.open(t), len(prompt)); !slices.Equal(got, want) {
		t.Error("logits differ")
	}
}

// TestFactors: numbers beside matrices, as files of NVFP4 have them, are factors of these.
func TestFactors(t *testing.T) {
	names := []string{"blk.0.attn_q", "blk.0.attn_output", "blk.0.ffn_gate", "blk.1.ffn_up", "blk.1.ffn_down"}
	times := func(b []byte, x float32) {
		for i := 0; i < len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(x*math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))))
		}
	}
	whole, apart := tinyModels["llama"](), tinyModels["llama"]()
	for i, name := range names {
		factor := float32(i+2) / 4
		times(whole.tensor(name+".weight").Data, factor)
		apart.add(name+".scale", 1)
		binary.LittleEndian.PutUint32(apart.tensor(name+".scale").Data, math.Float32bits(factor))
	}
	want, got := feed(t, whole.open(t), len(prompt)), feed(t, apart.open(t), len(prompt))
	for i := range want {
		if d := math.Abs(float64(want[i] - got[i])); !(d <= 1e-5) {
			t.Fatalf("logit %d is %g, want %g", i, got[i], want[i])
		}
	}
	apart.add("blk.0.attn_q.bias", apart.tensor("blk.0.attn_q.weight").Shape[1])
	if _, err := frontend.Load(apart.open(t), options); err == nil || !strings.Contains(err.Error(), `tensor "blk.0.attn_q.scale" beside blk.0.attn_q.bias is not supported`) {
		t.Errorf("a factor and a bias: %v", err)
	}
}

func readLogits(t *testing.T, arch string) []float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", arch+".logits"))
	if err != nil {
		t.Fatal(err)
	}
	var logits []float64
	for line := range strings.Lines(string(text)) {
		var i int
		var v float64
		if _, err := fmt.Sscanf(line, "%d: %g", &i, &v); err != nil || i != len(logits)%tinyVocab {
			t.Fatalf("%s.logits: line %q: %v", arch, line, err)
		}
		logits = append(logits, v)
	}
	if len(logits) != 2*tinyVocab {
		t.Fatalf("%s.logits: %d logits", arch, len(logits))
	}
	return logits
}

// promptIDs are the tokens of the prompt.
func promptIDs() []int32 {
	var ids []int32
	for _, b := range []byte(prompt) {
		ids = append(ids, 1+int32(b))
	}
	return ids
}

// feed returns the logits of the last row of the prompt, fed in steps of the given
// numbers of rows.
func feed(t *testing.T, f *gguf.File, chunks ...int) []float32 {
	t.Helper()
	all := feedIDs(t, f, promptIDs(), chunks...)
	last := chunks[len(chunks)-1] - 1
	return all[last*tinyVocab:][:tinyVocab]
}

// feedIDs returns what the model gives of the rows of the last step, fed with tokens in steps of the given
// numbers of rows.
func feedIDs(t *testing.T, f *gguf.File, ids []int32, chunks ...int) []float32 {
	t.Helper()
	p, err := frontend.Load(f, frontend.Options{Ctx: 64, KV: ir.F32, MaxRows: 32})
	if err != nil {
		t.Fatal(err)
	}
	m, err := oracle.New(t.Context(), p, weights{f}, oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fn, at := p.Func("forward"), 0
	var logits *ir.Value
	for _, op := range fn.Ops() {
		if op.Result != nil && op.Result.Class == ir.IO && op.Result.Type.DType == ir.F32 {
			logits = op.Result
		}
	}
	for _, n := range chunks {
		for i := range n {
			m.Ints(p.Global("token"))[i] = ids[at]
			m.Ints(p.Global("pos"))[i] = int32(at)
			m.Ints(p.Global("slot"))[i] = 0
			at++
		}
		m.Ints(p.Global("n"))[0] = int32(n)
		if err := m.Run(context.Background(), fn); err != nil {
			t.Fatal(err)
		}
	}
	rows := 1
	if logits.Type.Shape[0] == ir.T {
		rows = chunks[len(chunks)-1]
	}
	return m.Floats(logits)[:rows*int(logits.Type.Last())]
}

// TestGopherMoE runs a trained model with block formats in its experts: it goes on
// as it does on llama.cpp.
func TestGopherMoE(t *testing.T) {
	f, err := gguf.Open("../../testdata/models/gopher-moe-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	p, err := frontend.Load(f, options)
	if err != nil {
		t.Fatal(err)
	}
	m, err := oracle.New(t.Context(), p, weights{f}, oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// "// path: sort/search.go\npackage sort\n\n// Search"
	ids := []int32{262, 635, 26, 3644, 15, 277, 1144, 793, 199, 997, 3644, 411, 262, 4002, 1144}
	// " returns the sort of the source location\n// that"
	want := []int32{620, 287, 3644, 354, 287, 1814, 3821, 199, 262, 468}
	token, pos, n, out := m.Ints(p.Global("token")), m.Ints(p.Global("pos")), m.Ints(p.Global("n")), m.Ints(p.Global("out"))
	for i, id := range ids {
		token[0], pos[0], n[0] = id, int32(i), 1
		if err := m.Run(context.Background(), p.Func("forward")); err != nil {
			t.Fatal(err)
		}
	}
	for range want[1:] { // the loop is closed: the step left the next one's input
		if err := m.Run(context.Background(), p.Func("forward")); err != nil {
			t.Fatal(err)
		}
	}
	if got := out[len(ids)-1:][:len(want)]; !slices.Equal(got, want) {
		t.Errorf("goes on with %v, want %v", got, want)
	}
}

func TestLoadErrors(t *testing.T) {
	for _, c := range []struct {
		arch        string
		change      func(m *tinyModel)
		want        string
		unsupported bool
	}{
		{"qwen3", func(m *tinyModel) { m.meta[0].Value = "mamba" }, `architecture "mamba" is not supported`, true},
		{"qwen3", func(m *tinyModel) { m.drop("blk.1.attn_q_norm.weight") }, `tensor "blk.1.attn_q_norm.weight" is missing`, false},
		{"qwen3", func(m *tinyModel) { m.tensor("output_norm.weight").Shape = []int64{32, 2} }, "want f32[64]", false},
		{"qwen3", func(m *tinyModel) { m.add("blk.0.attn_sinks.weight", 4) }, `tensor "blk.0.attn_sinks.weight" is not known in architecture qwen3`, true},
		{"qwen3", func(m *tinyModel) { m.set("expert_count", uint32(8)) }, "mixture-of-experts qwen3", true},
		{"qwen3", func(m *tinyModel) { m.set("feed_forward_length", nil) }, "feed_forward_length is missing", false},
		{"qwen3", func(m *tinyModel) { m.set("block_count", uint32(1<<20)) }, "block_count: 1048576 is out of range", false},
		{"qwen3", func(m *tinyModel) { m.set("attention.head_count_kv", uint32(3)) }, "4 query heads over 3 KV heads", false},
		{"qwen3", func(m *tinyModel) { m.set("attention.key_length", uint32(1<<30)); m.set("attention.value_length", nil) }, "key_length: 1073741824 is out of range", false},
		{"qwen3", func(m *tinyModel) { m.set("rope.scaling.type", "dynamic") }, `"dynamic" is not supported`, true},
		{"qwen3", func(m *tinyModel) { m.set("rope.scaling.type", "longrope") }, `tensor "rope_factors_short.weight" is missing`, false},
		{"qwen3moe", func(m *tinyModel) { m.set("expert_count", nil) }, "expert_count is missing", false},
		{"qwen3moe", func(m *tinyModel) { m.set("expert_used_count", uint32(9)) }, "9 of 8 experts", false},
		{"qwen3moe", func(m *tinyModel) { m.set("expert_gating_func", uint32(4)) }, "expert_gating_func: 4 is not supported", true},
		{"qwen3moe", func(m *tinyModel) { m.drop("blk.0.ffn_up_exps.weight") }, `tensor "blk.0.ffn_up_exps.weight" is missing`, false},
		{"qwen3moe", func(m *tinyModel) { m.set("expert_feed_forward_length", uint32(16)) }, "want f32[8, 16, 64]", false},
		{"qwen35moe", func(m *tinyModel) { m.set("expert_shared_feed_forward_length", uint32(32)) }, "want f32[32, 64]", false},
		{"qwen35moe", func(m *tinyModel) { m.tensor("blk.0.ffn_gate_inp_shexp.weight").Shape = []int64{1, 64} }, "want f32[1, 64]", false},
		{"qwen35moe", func(m *tinyModel) { m.drop("blk.0.ssm_a") }, `tensor "blk.0.ssm_a" is missing`, false},
		{"qwen35", func(m *tinyModel) { m.set("ssm.group_count", uint32(3)) }, "do not fit an inner size", false},
		{"qwen35", func(m *tinyModel) { m.set("ssm.state_size", nil) }, "ssm.state_size is missing", false},
		{"qwen35", func(m *tinyModel) { m.set("ssm.conv_kernel", uint32(10)) }, "ssm.conv_kernel: 10 is above 9", true},
		{"qwen35", func(m *tinyModel) { m.set("ssm.conv_kernel", uint32(3)) }, "want f32[128, 3]", false},
		{"qwen35", func(m *tinyModel) { m.set("attention.recurrent_layers", []bool{true}) }, "1 entries for 2 layers", false},
		{"qwen35", func(m *tinyModel) { m.set("attention.recurrent_layers", uint32(1)) }, "not a list of bools", false},
		{"qwen35", func(m *tinyModel) { m.set("nextn_predict_layers", uint32(2)) }, "block_count: 2 is out of range", false},
		{"deepseek2", func(m *tinyModel) { m.set("attention.kv_lora_rank", nil) }, "attention.kv_lora_rank is missing", false},
		{"deepseek2", func(m *tinyModel) { m.set("attention.key_length_mla", uint32(8)) }, "do not fit a latent vector", false},
		{"deepseek2", func(m *tinyModel) { m.set("attention.head_count_kv", uint32(4)) }, "4 heads over 4 KV heads", true},
		{"deepseek2", func(m *tinyModel) { m.set("expert_group_count", uint32(2)) }, "expert_group_used_count is missing", false},
		{"deepseek2", func(m *tinyModel) {
			m.set("expert_group_count", uint32(4))
			m.set("expert_group_used_count", uint32(1))
		}, "1 of 4 groups of 8 experts, of which 3", false},
		{"glm4moe", func(m *tinyModel) {
			m.drop("blk.1.exp_probs_b.bias")
			m.set("expert_group_count", uint32(4))
			m.set("expert_group_used_count", uint32(2))
			m.set("expert_gating_func", uint32(3))
		}, "expert_gating_func: topk_softmax with groups of experts", true},
		{"qwen3vl", func(m *tinyModel) { m.set("rope.dimension_sections", []int32{4, 4}) }, "[4 4] are not four numbers", false},
		{"nemotron_h", func(m *tinyModel) { m.set("ssm.time_step_rank", uint32(3)) }, "3 heads in 2 groups", false},
		{"nemotron_h", func(m *tinyModel) { m.set("ssm.conv_kernel", uint32(10)) }, "ssm.conv_kernel: 10 is above 9", true},
		{"nemotron_h", func(m *tinyModel) { m.drop("blk.0.ssm_d") }, `tensor "blk.0.ssm_d" is missing`, false},
		{"granitehybrid", func(m *tinyModel) { m.tensor("blk.0.ssm_norm.weight").Shape = []int64{64, 2} }, "want f32[1, 128]", false},
		{"nemotron_h_moe", func(m *tinyModel) { m.set("moe_latent_size", uint32(24)) }, `tensor "blk.1.ffn_latent_down.weight" is missing`, false},
		{"qwen3next", func(m *tinyModel) { m.add("blk.0.ssm_in.weight", 64, 192) }, `tensor "blk.0.ssm_in.weight" is not known`, true},
		{"qwen3next", func(m *tinyModel) {
			m.packed("blk.0.")
			m.tensor("blk.0.ssm_in.weight").Shape = []int64{128, 96}
		}, `tensor "blk.0.attn_qkv.weight" is missing`, false},
	} {
		m := tinyModels[c.arch]()
		c.change(m)
		p, err := frontend.Load(m.open(t), options)
		if err == nil || !strings.Contains(err.Error(), c.want) || p != nil {
			t.Errorf("%s: error %v, want %q", c.arch, err, c.want)
		}
		if errors.Is(err, errors.ErrUnsupported) != c.unsupported {
			t.Errorf("%s: %v: unsupported is not %t", c.arch, err, c.unsupported)
		}
	}
}

// TestHeadsOfWholeBlocks holds that a cache of q8_0 is refused where a head is no whole
// blocks, in a dense model and in a hybrid.
func TestHeadsOfWholeBlocks(t *testing.T) {
	o := options
	o.KV = ir.Q8_0
	for _, arch := range []string{"qwen3", "qwen35moe"} { // heads of 16
		p, err := frontend.Load(tinyModels[arch]().open(t), o)
		if p != nil || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "q8_0 holds heads of whole blocks of 32, not of 16") {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

// TestTurned holds what is turned for which cache: keys and queries of q4_0, never values. Latent attention, whose keys
// are values, is refused.
func TestTurned(t *testing.T) {
	f, err := gguf.OpenHeader("../../testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := options
	for _, kv := range ir.CacheTypes {
		o.KV = kv
		p, err := frontend.Load(f, o)
		if err != nil {
			t.Fatal(err)
		}
		turned := func(v *ir.Value) bool { return v.Def != nil && v.Def.Kind.Name == "hadamard" }
		for _, op := range p.Funcs[0].Ops() {
			want := kv == ir.Q4_0
			switch op.Kind.Name {
			case "attention":
			case "kvwrite":
				want = want && strings.HasSuffix(op.Args[3].Name, ".k")
			default:
				continue
			}
			if turned(op.Args[0]) != want {
				t.Errorf("%s: operand of %s is turned: %t", kv, op.Kind.Name, !want)
			}
		}
	}
	o.KV = ir.Q4_0
	if _, err := frontend.Load(tinyModels["deepseek2"]().open(t), o); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "latent attention") {
		t.Errorf("latent attention: %v", err)
	}
}

// TestLoadNeverPanics holds that damaged metadata and shapes give an error or a program that the verifier takes.
func TestLoadNeverPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	rapid.Check(t, func(rt *rapid.T) {
		m := tinyModels[rapid.SampledFrom(frontend.Archs()).Draw(rt, "arch")]()
		value := rapid.OneOf(
			rapid.Just[any](nil), rapid.Just[any]("text"), rapid.Just[any](true),
			rapid.Map(rapid.SampledFrom([]uint32{0, 1, 2, 3, 5, 64, 1 << 16, 1<<31 - 1, 1<<32 - 1}), func(v uint32) any { return v }),
			rapid.Map(rapid.Int32(), func(v int32) any { return v }),
			rapid.Map(rapid.Uint64(), func(v uint64) any { return v }),
			rapid.Map(rapid.Float32(), func(v float32) any { return v }),
			rapid.Map(rapid.SliceOfN(rapid.Uint32(), 0, 4), func(v []uint32) any { return v }),
			rapid.Map(rapid.SliceOfN(rapid.Float32(), 0, 4), func(v []float32) any { return v }),
			rapid.Map(rapid.SliceOfN(rapid.Bool(), 0, 4), func(v []bool) any { return v }),
		)
		keys := []string{"rope.scaling.type", "rope.scaling.factor", "expert_gating_func", "nextn_predict_layers", "attention.recurrent_layers", "attention.scale", "expert_count"}
		for _, e := range m.meta {
			if key, ours := strings.CutPrefix(e.Key, m.prefix); ours {
				keys = append(keys, key)
			}
		}
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			if rapid.Bool().Draw(rt, "tensor") {
				dims := m.tensors[rapid.IntRange(0, len(m.tensors)-1).Draw(rt, "which")].Shape
				if len(dims) > 1 {
					dims[0], dims[1] = dims[1], dims[0]
				}
			} else {
				m.set(rapid.SampledFrom(keys).Draw(rt, "key"), value.Draw(rt, "value"))
			}
		}
		m.write(t, path)
		f, err := gguf.Open(path)
		if err != nil {
			return
		}
		defer f.Close()
		p, err := frontend.Load(f, options)
		if err == nil {
			err = ir.Verify(p)
		} else if strings.Contains(err.Error(), "\n") {
			rt.Fatalf("error of several lines: %v", err)
		} else {
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// kinds tells the layers with a DeltaNet, d, from those that attend, a.
func kinds(p *ir.Program) string {
	s := ""
	for i := range p.Layers {
		k, delta := p.Global(fmt.Sprintf("blk.%d.k", i)), p.Global(fmt.Sprintf("blk.%d.delta", i))
		switch {
		case k != nil && delta == nil:
			s += "a"
		case k == nil && delta != nil:
			s += "d"
		default:
			s += "?"
		}
	}
	return s
}

func TestLayerKinds(t *testing.T) {
	for _, c := range []struct {
		list     any
		interval uint32
		want     string
	}{
		{nil, 2, "da"},
		{[]bool{true, false, true}, 1, "da"}, // the list goes before the interval
	} {
		m := tinyModels["qwen35"]()
		m.set("attention.recurrent_layers", c.list)
		m.set("full_attention_interval", c.interval)
		p, err := frontend.Load(m.open(t), options)
		if err != nil {
			t.Errorf("%v: %v", c, err)
		} else if kinds(p) != c.want {
			t.Errorf("%v: kinds %q", c, kinds(p))
		}
	}
}

// The layers that predict further tokens, and what is of images, are left out, and listed.
func TestPredictingLayersAreLeftOut(t *testing.T) {
	m := tinyModels["qwen35"]()
	m.set("block_count", uint32(3))
	m.set("nextn_predict_layers", uint32(1))
	m.attention("blk.2.", 2*tinyHeads*tinyDim)
	m.add("blk.2.nextn.eh_proj.weight", 2*tinyEmbd, tinyEmbd)
	m.add("v.blk.0.attn_q.weight", tinyEmbd, tinyEmbd)
	m.add("mm.0.weight", tinyEmbd, tinyEmbd)
	f := m.open(t)
	p, err := frontend.Load(f, options)
	if err != nil || p.Layers != 2 || kinds(p) != "da" {
		t.Fatalf("program %v, %v", p, err)
	}
	ignored := frontend.Ignored(f)
	for _, tensor := range f.Tensors {
		used := p.Global(tensor.Name) != nil
		if used == slices.Contains(ignored, tensor.Name) {
			t.Errorf("tensor %s: used and ignored are both %t", tensor.Name, used)
		}
	}
	if len(ignored) != 8 {
		t.Errorf("ignored %q", ignored)
	}
	if names := frontend.Ignored(tinyModels["llama"]().open(t)); names != nil {
		t.Errorf("llama: ignored %q", names)
	}
}
