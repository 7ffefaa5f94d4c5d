package zincc_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/text"
	"github.com/zincc-dev/zincc/runtime/verify"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

const prompt = "// path: sort/search.go\npackage sort\n\n// Search"

// models are the models in testdata, and hybrids that are written for the tests. Their
// logits after the prompt, in testdata/peer, are llama.cpp's on the same weights
// dequantized to float32, with a float32 KV cache: llama-quantize to F32, then
// llama-debug --save-logits. For the hybrids, go test -models DIR writes the files.
var models = []string{"gopher", "gopher-moe", "tiny-qwen35moe", "tiny-qwen35moe-3-6"}

// withCache is a model with a KV cache of some type.
type withCache struct {
	model string
	kv    ir.DType
	host  bool // runs on the host alone
}

func (c withCache) name(target string) string { return c.model + "/" + c.kv.String() + "/" + target }

// cached are the models with the types of their KV caches: the dense one and a hybrid
// with q8_0, too. What the two on the host alone would have llvmpipe compile, the others have it compile.
var cached = []withCache{
	{"gopher", ir.F16, false}, {"gopher", ir.Q8_0, true}, {"gopher-moe", ir.F16, false},
	{"tiny-qwen35moe", ir.F16, false}, {"tiny-qwen35moe-3-6", ir.F16, true}, {"tiny-qwen35moe-3-6", ir.Q8_0, false},
}

// leftOut reports whether -short leaves a text to all tests: it has the model of experts, whose layers are of all
// kinds, on each device, and the dense one with a cache of q8_0 on the host.
func (c withCache) leftOut() bool {
	return testing.Short() && c.model != "gopher-moe" && !(c.model == "gopher" && c.host)
}

var modelsDir = flag.String("models", "", "write the tiny models to this directory and keep them, for other engines")

// modelPath returns the file of a model.
func modelPath(model string) string {
	if _, ok := hybrids[model]; ok {
		return filepath.Join(*modelsDir, model+".gguf")
	}
	return filepath.Join("testdata", "models", model+"-q4_k_m.gguf")
}

// devices are the targets to test and the devices to run their plans on.
var devices = []struct{ target, device string }{{"host", "host"}, {"llvmpipe", "vulkan"}}

func TestMain(m *testing.M) {
	if os.Getenv("VK_DRIVER_FILES") == "" {
		os.Setenv("VK_DRIVER_FILES", "/usr/share/vulkan/icd.d/lvp_icd.json")
	}
	os.Setenv("ZINC_VALIDATE", "1")
	flag.Parse()
	os.Exit(run(m))
}

// run runs the tests with the tiny models written.
func run(m *testing.M) int {
	if *modelsDir == "" {
		dir, err := os.MkdirTemp("", "zincc-models-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		*modelsDir = dir
	}
	for name, h := range hybrids {
		if err := h.write(modelPath(name)); err != nil {
			panic(err)
		}
	}
	defer func() {
		for _, o := range opened {
			o.close()
		}
	}()
	return m.Run()
}

// rowsOf bounds the rows of a step. Those of the hybrids are few: llvmpipe's compiler takes long for kernels of wider
// steps.
func rowsOf(model string) int {
	if _, ok := hybrids[model]; ok {
		return 64
	}
	return codegen.MaxRows
}

// compile compiles a model in memory.
func compile(t *testing.T, model, targetName string, kv ir.DType) *plans.Plan {
	t.Helper()
	tg, err := target.Lookup(targetName)
	if err != nil {
		t.Fatal(err)
	}
	return compileFor(t, model, tg, kv)
}

func compileFor(t *testing.T, model string, tg *target.Target, kv ir.DType) *plans.Plan {
	t.Helper()
	path := modelPath(model)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plan := emit(t, f, tg, frontend.Options{KV: kv, MaxRows: rowsOf(model)})
	for _, problem := range audit.Check(plan) {
		t.Error(problem)
	}
	return plan
}

// emit compiles a model that is open.
func emit(t *testing.T, f *gguf.File, tg *target.Target, o frontend.Options) *plans.Plan {
	t.Helper()
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: tg, Import: o})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

// opened are the plans that openOnce has opened, which tests share: they run one after the other.
var opened = map[string]*open{}

type open struct {
	plan *plans.Plan
	x    runtime.Executor
	src  *plans.Source
	tok  *text.Tokenizer
}

func (o *open) close() {
	o.x.Close()
	o.src.Close()
}

// load is openOnce, for tests that do without the weights.
func load(t *testing.T, model, targetName, deviceName string, kv ir.DType) (*plans.Plan, runtime.Executor, *text.Tokenizer) {
	t.Helper()
	o := openOnce(t, model, targetName, deviceName, kv)
	return o.plan, o.x, o.tok
}

// openOnce compiles a model and opens it.
func openOnce(t *testing.T, model, targetName, deviceName string, kv ir.DType) *open {
	t.Helper()
	key := fmt.Sprint(model, " ", targetName, " ", kv)
	o := opened[key]
	if o == nil {
		o = &open{plan: compile(t, model, targetName, kv)}
		var err error
		if o.src, err = plans.OpenSource(o.plan, "", modelPath(model)); err != nil {
			t.Fatal(err)
		}
		if o.x, err = device.Open(context.Background(), deviceName, o.plan, o.src, device.Options{}); err != nil {
			t.Fatal(err)
		}
		if o.tok, err = text.New(o.plan.Vocab); err != nil {
			t.Fatal(err)
		}
		opened[key] = o
	}
	t.Cleanup(func() {
		if v, ok := o.x.(*vulkan.Executor); ok {
			for _, m := range v.Underlying().ValidationMessages() {
				t.Error(m)
			}
		}
	})
	return o
}

// peerLogits is the golden of a model.
func peerLogits(model string) string {
	return filepath.Join("testdata", "peer", strings.TrimSuffix(filepath.Base(modelPath(model)), ".gguf")+".logits.f32")
}

// TestLogitsArePeers holds the logits against llama.cpp's. On llvmpipe, whose compiler takes long, are one model of
// experts and a hybrid, with caches of f32, which other tests do without; -short has the host alone, whose texts
// TestOneText has llvmpipe write.
func TestLogitsArePeers(t *testing.T) {
	for _, model := range models {
		want := readFloats(t, peerLogits(model))
		for _, d := range devices {
			if d.target != "host" && (testing.Short() || model != "gopher-moe" && model != "tiny-qwen35moe-3-6") {
				continue
			}
			t.Run(model+"/"+d.target, func(t *testing.T) {
				plan, x, tok := load(t, model, d.target, d.device, ir.F32)
				s := runtime.NewSession(plan, x)
				if _, err := s.Prefill(t.Context(), encode(tok, prompt), 0); err != nil {
					t.Fatal(err)
				}
				got, err := s.Logits()
				if err != nil {
					t.Fatal(err)
				}
				if e := relativeError(got, want); !(e < 1e-5) {
					t.Errorf("logits differ from llama.cpp's by %.2g of their norm", e)
				}
			})
		}
	}
}

// TestOneText checks that the continuation is the same on every device, that
// decode entries of every width give the same bits, and that a prompt may be cut
// into chunks of any size.
func TestOneText(t *testing.T) {
	for _, c := range cached {
		var want []int32
		for _, d := range devices {
			if c.host && d.target != "host" || c.leftOut() {
				continue
			}
			t.Run(c.name(d.target), func(t *testing.T) {
				plan, x, tok := load(t, c.model, d.target, d.device, c.kv)
				ids := encode(tok, prompt)
				s := runtime.NewSession(plan, x)
				next, err := s.Prefill(t.Context(), ids, 0)
				if err != nil {
					t.Fatal(err)
				}
				rest, err := s.Decode(t.Context(), next, 63)
				if err != nil {
					t.Fatal(err)
				}
				got := append([]int32{next}, rest...)
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Fatalf("continues with %q, host with %q", tok.Decode(got, true), tok.Decode(want, true))
				}
				checkChunks(t.Context(), t, s, append(ids, got...), roundings[c.kv])
			})
		}
	}
}

// TestCheckpoint goes back to checkpoints taken anywhere and continues to the same
// text. Models without recurrent state need no memory for them.
func TestCheckpoint(t *testing.T) {
	for _, c := range cached {
		for _, d := range devices {
			if c.host && d.target != "host" || c.leftOut() {
				continue
			}
			t.Run(c.name(d.target), func(t *testing.T) {
				plan, x, tok := load(t, c.model, d.target, d.device, c.kv)
				ids := encode(tok, prompt)
				s := runtime.NewSession(plan, x)
				next, err := s.Prefill(t.Context(), ids, 0)
				if err != nil {
					t.Fatal(err)
				}
				text := []int32{next}
				var saved []*runtime.Checkpoint
				for range 5 {
					c, err := s.Save(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer c.Free()
					if (c.Bytes() > 0) != (len(plan.Memory.State) > 0) {
						t.Errorf("checkpoint of %d bytes, plan has %d states", c.Bytes(), len(plan.Memory.State))
					}
					saved = append(saved, c)
					more, err := s.Decode(t.Context(), text[len(text)-1], 3)
					if err != nil {
						t.Fatal(err)
					}
					text = append(text, more...)
				}
				for _, i := range []int{4, 2, 0} {
					if err := s.Restore(t.Context(), saved[i]); err != nil {
						t.Fatal(err)
					}
					again, err := s.Decode(t.Context(), text[3*i], 3*(5-i))
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(again, text[3*i+1:]) {
						t.Errorf("from checkpoint %d: %q, before %q", i, tok.Decode(again, true), tok.Decode(text[3*i+1:], true))
					}
				}
			})
		}
	}
}

// TestHybridsVerify runs every dispatch of the hybrids on the device and on the
// oracle, those of one with a cache of q8_0. -short has a decode entry of that one.
func TestHybridsVerify(t *testing.T) {
	if testing.Short() {
		t.Skip("TestArchitectures and TestSequences of runtime/verify compare dispatches of hybrids")
	}
	for model, h := range hybrids {
		t.Run(model, func(t *testing.T) {
			kv := ir.F16
			if h.merged {
				kv = ir.Q8_0
			}
			o := openOnce(t, model, "llvmpipe", "vulkan", kv)
			compareDispatches(t, o.plan, o.src, o.x.(*vulkan.Executor), verify.Options{Context: 20, Rows: 20}, 480)
		})
	}
}

// TestFixedPoint runs what only other targets have: inputs in fixed point.
func TestFixedPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("TestGemvFixed of codegen/kernels/matmul runs kernels that read fixed point")
	}
	llvmpipe, err := target.Lookup("llvmpipe")
	if err != nil {
		t.Fatal(err)
	}
	tg := *llvmpipe
	tg.Dot = true
	plan := compileFor(t, "gopher", &tg, ir.F16)
	checkDispatches(t, "gopher", plan, verify.Options{Entry: "decode/1"}, 25)
}

// checkDispatches runs dispatches, least or more, on the device and on the oracle.
func checkDispatches(t *testing.T, model string, plan *plans.Plan, options verify.Options, least int) {
	t.Helper()
	src, err := plans.OpenSource(plan, "", modelPath(model))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	x, err := vulkan.NewExecutor(t.Context(), 0, plan, src, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	compareDispatches(t, plan, src, x, options, least)
}

// compareDispatches is checkDispatches of a plan that is open.
func compareDispatches(t *testing.T, plan *plans.Plan, src *plans.Source, x *vulkan.Executor, options verify.Options, least int) {
	t.Helper()
	dev, err := x.Inspect()
	if err != nil {
		t.Fatal(err)
	}
	r, err := verify.Plan(t.Context(), plan, src, dev, options)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed > 0 || len(r.Results) < least {
		var text strings.Builder
		r.Print(&text)
		t.Errorf("%d of %d dispatches differ from the oracle's\n%s", r.Failed, len(r.Results), text.String())
	}
	for _, m := range x.Underlying().ValidationMessages() {
		t.Error(m)
	}
}

// roundings are how far logits may be apart, relative to their norm, if what the KV cache
// rounds differs in its last bit.
var roundings = map[ir.DType]float64{ir.F16: 1e-3, ir.Q8_0: 8e-3}

// checkChunks feeds the tokens in chunks of many sizes, the last one excepted, which must be what all sizes predict.
// Sizes that decode entries have take turns: a bit that one of them changes shows in all that follows. -short has 1, 8
// and 7 rows and one wide step.
func checkChunks(ctx context.Context, t *testing.T, s *runtime.Session, ids []int32, rounding float64) {
	ids, last := ids[:len(ids)-1], ids[len(ids)-1]
	var first []float32
	turns := [][]int{{1}, {2, 4, 8, 7}, {64}, {256}}
	if testing.Short() {
		turns = [][]int{{1}, {8, 7}, {256}}
	}
	for _, sizes := range turns {
		s.Reset()
		var next int32
		for turn := 0; s.Len() < len(ids); turn++ {
			rest := ids[s.Len():]
			var err error
			if next, err = s.Prefill(ctx, rest[:min(sizes[turn%len(sizes)], len(rest))], 0); err != nil {
				t.Fatal(err)
			}
		}
		logits, err := s.Logits()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = slices.Clone(logits)
		}
		if next != last {
			t.Errorf("chunks of %d: next token is %d, want %d", sizes, next, last)
		}
		if sizes[0] <= 8 && !slices.Equal(logits, first) {
			t.Errorf("chunks of %d: logits are not those of single rows to the bit", sizes)
		}
		if e := relativeError(logits, first); !(e < rounding) {
			t.Errorf("chunks of %d: logits differ from those of single rows by %.2g of their norm", sizes, e)
		}
	}
}

func encode(tok *text.Tokenizer, s string) []int32 {
	return tok.Encode(s, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
}

func readFloats(t *testing.T, path string) []float32 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, len(data)/4)
	if _, err := binary.Decode(data, binary.LittleEndian, x); err != nil {
		t.Fatal(err)
	}
	return x
}

// relativeError is the norm of got-want over the norm of want.
func relativeError(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var diff, norm float64
	for i := range got {
		d := float64(got[i]) - float64(want[i])
		diff += d * d
		norm += float64(want[i]) * float64(want[i])
	}
	return math.Sqrt(diff / norm)
}
