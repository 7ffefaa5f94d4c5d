package rowwise_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

func TestEmbedFormats(t *testing.T) {
	for d, k := range kerneltest.AllFormats() {
		// Tests of matmul show a device how other types are read.
		launch := kerneltest.InterpretOnly
		if d == ir.F32 || d == ir.Q6_K || d == ir.IQ2_S {
			launch = kerneltest.Launch
		}
		for _, on := range []*target.Target{kerneltest.Llvmpipe(t), kerneltest.Processor(t)} {
			t.Run(d.String()+" "+on.Name, func(t *testing.T) { testEmbed(t, on, launch, d, k) })
		}
		for _, on := range target.All() {
			if launch, ok := kerneltest.Emulated(on); ok {
				t.Run(d.String()+" "+on.Name, func(t *testing.T) { testEmbed(t, on, launch, d, k) })
			}
		}
	}
}

func testEmbed(t *testing.T, on *target.Target, launch kerneltest.Launcher, d ir.DType, k int) {
	t.Parallel()
	const vocab, rows, n = 9, 5, 3
	c := kerneltest.Case{Family: "embed", Ctx: 16, Slots: 1, Rows: rows, N: n,
		Globals: fmt.Sprintf("step @token : i32[T]\nweight @table : %s[%d, %d]\n", d, vocab, k),
		Group:   fmt.Sprintf("%%0 = embed @token, @table {scale=1.0} : io f32[T, %d]", k)}
	s := c.Site(t, on)
	kernel, data := c.Candidates(t, s)[0], map[*ir.Value][]byte{}
	for _, o := range kernel.Operands {
		if o.Value.IsGlobal() {
			data[o.Value] = c.Value(o.Value)
		}
	}
	table, result := s.Program.Global("table"), s.Outputs[0]
	exact := make([]float32, vocab*k)
	if err := gguf.Dequantize(exact, data[table], d); err != nil {
		t.Fatal(err)
	}
	data[s.Program.Global("token")] = kerneltest.I32Bytes(8, 0, 5, -7, 1<<30)
	data = c.OnDevice(t, on, data)
	sizes := func(v *ir.Value) int {
		if b, ok := data[v]; ok {
			return len(b)
		}
		return 4 * rows * k
	}
	kerneltest.Covered(t, kernel, result, rows*k)
	left := launch(t, kernel, sizes, data)
	if left == nil {
		return // an emulated GPU that need not show it
	}
	got := kerneltest.ToF32(left[result])
	for r, id := range []int{8, 0, 5} {
		if !slices.Equal(got[r*k:][:k], exact[id*k:][:k]) {
			t.Fatalf("row %d is not row %d of the table", r, id)
		}
	}
	if rest := kerneltest.F32Bytes(got[n*k:]); !bytes.Equal(rest, make([]byte, len(rest))) {
		t.Error("rows without a token are not zero")
	}
}
