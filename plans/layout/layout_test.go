package layout

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

func randomTensor(t testing.TB, d ir.DType, rows, cols int64) (*Tensor, []byte) {
	l, err := New(d, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	src := make([]byte, l.SourceBytes())
	rng := rand.New(rand.NewPCG(1, uint64(d)))
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	return l, src
}

func laidOut(t testing.TB, l *Tensor, src []byte) []byte {
	data := make([]byte, l.Bytes)
	if err := l.Fill(data, 0, src); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDecode holds every layout against ggml's floats, bit for bit; NaNs need only
// be NaNs.
func TestDecode(t *testing.T) {
	for _, r := range recipes {
		const rows = 7
		cols := int64(3 * max(r.DType.Block(), 2))
		l, src := randomTensor(t, r.DType, rows, cols)
		data := laidOut(t, l, src)
		want, got := make([]float32, rows*cols), make([]float32, cols)
		if err := gguf.Dequantize(want, src, r.DType); err != nil {
			t.Fatal(err)
		}
		for row := range int64(rows) {
			if err := l.decodeRow(got, data, row); err != nil {
				t.Fatal(err)
			}
			for i, g := range got {
				w := want[row*cols+int64(i)]
				if math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w) {
					t.Fatalf("%s: element [%d, %d] is %g, want %g", r.DType, row, i, g, w)
				}
			}
		}
	}
}

// TestPlanes pins where fields go, for kernels that were written to it.
func TestPlanes(t *testing.T) {
	tests := []struct {
		dtype        ir.DType
		name, format string
		rows, cols   int64
		offsets      []int64
		bytes        int64
	}{
		{ir.F32, "raw", "f32", 1, 5, []int64{0}, 32},
		{ir.F16, "raw", "f16", 3, 6, []int64{0}, 48},
		{ir.Q4_K, "raw", "q4_k", 2, 512, []int64{0}, 576},
		{ir.Q4_0, "planes", "q4_0", 3, 96, []int64{0, 144}, 176},
		{ir.Q8_0, "planes", "q8_0", 3, 96, []int64{0, 288}, 320},
		{ir.Q6_K, "planes", "q6_k", 3, 256, []int64{0, 384, 576, 624}, 640},
		{ir.Q5_0, "packed", "q5_0", 3, 32, []int64{0, 48, 64}, 80},
		{ir.Q2_K, "packed", "q2_k", 1, 256, []int64{0, 64, 80}, 96},
		{ir.TQ1_0, "packed", "tq1_0", 2, 256, []int64{0, 64, 96, 112}, 128},
		{ir.IQ3_S, "packed", "iq3_s", 8, 256, []int64{0, 512, 768, 832, 864}, 880},
	}
	for _, tt := range tests {
		l, err := New(tt.dtype, tt.rows, tt.cols)
		if err != nil {
			t.Fatal(err)
		}
		var offsets []int64
		for _, p := range l.Planes {
			offsets = append(offsets, p.Offset)
		}
		if l.Name != tt.name || Format(tt.dtype) != tt.format || l.Bytes != tt.bytes || !equal(offsets, tt.offsets) {
			t.Errorf("%s: %s %s, planes at %d, %d bytes", tt.dtype, l.Name, l.Format, offsets, l.Bytes)
		}
	}
	l, src := randomTensor(t, ir.Q8_0, 2, 64)
	data := laidOut(t, l, src)
	// Row 1, block 1 is block 3 of the file.
	if p := l.plane("q"); !bytes.Equal(data[p.Offset+3*32:][:32], src[3*34+2:][:32]) {
		t.Error("q8_0: quants of block 3 are not at 3*32 of their plane")
	}
	if p := l.plane("d"); !bytes.Equal(data[p.Offset+3*2:][:2], src[3*34:][:2]) {
		t.Error("q8_0: scale of block 3 is not at 3*2 of its plane")
	}
}

func equal(a, b []int64) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestFillPart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rapid.SampledFrom(recipes).Draw(rt, "recipe")
		rows := rapid.Int64Range(1, 4).Draw(rt, "rows")
		cols := rapid.Int64Range(1, 5).Draw(rt, "blocks") * int64(max(r.DType.Block(), 2))
		l, src := randomTensor(t, r.DType, rows, cols)
		want := laidOut(t, l, src)
		lo := rapid.Int64Range(0, l.Bytes).Draw(rt, "lo")
		hi := rapid.Int64Range(lo, l.Bytes).Draw(rt, "hi")
		got := bytes.Repeat([]byte{0xa5}, int(hi-lo))
		if err := l.Fill(got, lo, src); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(got, want[lo:hi]) {
			rt.Fatalf("%s [%d, %d): bytes [%d, %d) differ from those of the whole", r.DType, rows, cols, lo, hi)
		}
	})
}

func TestRefuses(t *testing.T) {
	bad := []struct {
		d     ir.DType
		shape []int64
	}{
		{ir.F64, []int64{4}}, {ir.I32, []int64{4}}, {ir.F32, nil}, {ir.F32, []int64{0}}, {ir.F32, []int64{-1, -4}},
		{ir.F16, []int64{2, 3}}, {ir.Q8_0, []int64{2, 33}}, {ir.F32, []int64{1 << 40, 1 << 40}},
	}
	for _, b := range bad {
		if _, err := New(b.d, b.shape...); err == nil {
			t.Errorf("%s %d: no error", b.d, b.shape)
		}
	}
	l, src := randomTensor(t, ir.Q8_0, 1, 32)
	buf := make([]byte, l.Bytes+1)
	if l.Fill(buf, 0, src) == nil || l.Fill(buf[:1], -1, src) == nil || l.Fill(buf[:1], l.Bytes, src) == nil || l.Fill(buf[:1], 0, src[1:]) == nil {
		t.Error("Fill takes a part outside of the tensor or a short source")
	}
}

func TestEveryBlockFormatHasARecipe(t *testing.T) {
	for _, d := range ir.DTypes() {
		if _, ok := For(d); !ok && d.IsQuantized() {
			t.Errorf("%s has no recipe", d)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, d := range []ir.DType{ir.Q4_K, ir.Q4_0, ir.Q8_0, ir.Q6_K, ir.Q5_0, ir.Q3_K, ir.TQ1_0} {
		b.Run(d.String(), func(b *testing.B) {
			l, src := randomTensor(b, d, 1024, 2048)
			dst := make([]byte, l.Bytes)
			b.SetBytes(l.Bytes)
			for b.Loop() {
				if err := l.Fill(dst, 0, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestBytes prints how many bytes tensors take on the device, in both kinds of layouts, and holds that these are within
// 5 % of the file's.
func TestBytes(t *testing.T) {
	for _, r := range recipes {
		layouts := []func(ir.DType, ...int64) (*Tensor, error){New}
		if _, ok := images[r.DType]; ok {
			layouts = append(layouts, NewRows16)
		}
		for _, layout := range layouts {
			l, err := layout(r.DType, 256, 4096)
			if err != nil {
				t.Fatal(err)
			}
			ratio := float64(l.Bytes) / float64(l.SourceBytes())
			t.Logf("%-8s %-8s %.3f", r.DType, l.Name, ratio)
			if ratio > 1.05 || ratio < 1 {
				t.Errorf("%s as %s: %d bytes, %.3f times those of the file", r.DType, l.Name, l.Bytes, ratio)
			}
		}
	}
}
