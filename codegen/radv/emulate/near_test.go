package emulate_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/text"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// TestNearChoice looks at a step where the oracle finds two tokens nearly as likely. There every dispatch agrees within
// its tolerance, and what the emulated device moves logits by is what one last place of the first norm moves them by in
// the oracle itself: another order of sums may choose the other token.
func TestNearChoice(t *testing.T) {
	if testing.Short() {
		t.Skip("steps of TestPlans have choices that are not near")
	}
	const prompt, step = "package sort\n\n", 4 // and so many tokens behind it
	names := []string{"gfx1100"}
	if *whole {
		names = append(names, "gfx1201-nomatrix")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, moved := compile(t, modelPath("gopher"), name), compile(t, nudged(t, modelPath("gopher")), name)
			tokens := c.tok.Encode(prompt, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
			given := len(tokens)
			oracle := c.oracle(t)
			tokens = append(tokens, answer(t, c.plan, oracle, tokens, step)...)
			_, x := c.emulated(t)
			want, got, nudged := logitsBehind(t, c, oracle, tokens, given), logitsBehind(t, c, x, tokens, given), logitsBehind(t, moved, moved.oracle(t), tokens, given)
			sorted := slices.Sorted(slices.Values(want))
			margin := float64(sorted[len(sorted)-1] - sorted[len(sorted)-2])
			off, own := apart(want, got), apart(want, nudged)
			t.Logf("margin %.4f, the device is %.4f off, the oracle with one last place more %.4f", margin, off, own)
			if margin > 0.02 || off > 4*own || own == 0 {
				t.Errorf("margin %.4f, the device is %.4f off, the oracle with one last place more %.4f", margin, off, own)
			}
			dev, err := device.Inspect(x)
			if err != nil {
				t.Fatal(err)
			}
			r, err := verify.Plan(t.Context(), c.plan, c.src, dev, verify.Options{Entry: "decode/1", Context: len(tokens) - 1, Tokens: tokens})
			if err != nil {
				t.Fatal(err)
			}
			most := 0.0
			for _, d := range r.Results {
				if d.Tolerance > 0 {
					most = max(most, float64(d.Error/d.Tolerance))
				}
			}
			t.Logf("%d comparisons, %d failed, the largest error is %.2f of what is tolerated", len(r.Results), r.Failed, most)
			if r.Failed > 0 || len(r.Results) < len(c.plan.Program.Func("decode/1").Groups) {
				t.Errorf("%d comparisons, %d failed: %+v", len(r.Results), r.Failed, r.First())
			}
		})
	}
}

// logitsBehind runs tokens as a prompt and, from given on, one at a time, and returns the logits behind the last.
func logitsBehind(t *testing.T, c *compiled, x runtime.Executor, tokens []int32, given int) []float32 {
	t.Helper()
	s := runtime.NewSession(c.plan, x)
	if _, err := s.Prefill(t.Context(), tokens[:given], 0); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens[given:] {
		if _, err := s.Decode(t.Context(), token, 1); err != nil {
			t.Fatal(err)
		}
	}
	logits, err := s.Logits()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(logits)
}

// apart is the largest difference.
func apart(a, b []float32) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i]-b[i])))
	}
	return most
}

// nudged is a copy of a model whose first norm has weights that are one last place more and less by turns.
func nudged(t *testing.T, path string) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	norm, ok := f.Tensor("blk.0.attn_norm.weight")
	if !ok {
		t.Fatal("the model has no first norm")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int(norm.Size / 4) {
		at := data[int(norm.Offset)+4*i:]
		binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)+1-uint32(2*(i%2)))
	}
	copied := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(copied, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return copied
}
