package gguf

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// supported returns the types that Dequantize knows.
func supported() (all []ir.DType) {
	for _, t := range ir.DTypes() {
		if n, ok := numberOf(t); ok && formats[n].dequantize != nil {
			all = append(all, t)
		}
	}
	return all
}

// The golden rows were dequantized by llama.cpp; see testdata/mkgolden.go.
func TestDequantizeEqualsPeer(t *testing.T) {
	f, err := Open("testdata/dequant.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for _, typ := range ir.DTypes() {
		q, ok := f.Tensor(typ.String())
		if !ok {
			if typ.IsQuantized() {
				t.Errorf("%s: no golden row", typ)
			}
			continue
		}
		rows++
		want, ok := f.Tensor(typ.String() + ".f32")
		if !ok {
			t.Fatalf("%s: no expected values", typ)
		}
		got := make([]float32, q.Elements())
		if err := Dequantize(got, f.Data(q), typ); err != nil {
			t.Fatal(err)
		}
		for i, g := range got {
			if w := le.Uint32(f.Data(want)[4*i:]); math.Float32bits(g) != w {
				t.Errorf("%s[%d] = %v, peer %v", typ, i, g, math.Float32frombits(w))
				break
			}
		}
	}
	if want := len(f.Tensors) / 2; rows != want {
		t.Errorf("compared %d types of %d", rows, want)
	}
}

func TestDequantizePlain(t *testing.T) {
	tests := []struct {
		typ  ir.DType
		src  string
		want []float32
	}{
		{ir.F32, "\x00\x00\x80\x3f\x00\x00\x00\xc0", []float32{1, -2}},
		{ir.F64, "\x00\x00\x00\x00\x00\x00\xf8\x3f", []float32{1.5}},
		{ir.I8, "\x01\xff\x80", []float32{1, -1, -128}},
		{ir.I16, "\x01\x00\xff\xff\x00\x80", []float32{1, -1, -32768}},
		{ir.I32, "\x01\x00\x00\x00\xfe\xff\xff\xff", []float32{1, -2}},
		{ir.F16, "\x00\x3c\x00\xc0\x01\x00\x00\x7c\x00\x38", []float32{1, -2, 0x1p-24, float32(math.Inf(1)), 0.5}},
		{ir.BF16, "\x80\x3f\x00\xc0\x01\x00\x80\x7f\x00\x3f", []float32{1, -2, 0x1p-133, float32(math.Inf(1)), 0.5}},
	}
	for _, test := range tests {
		got := make([]float32, len(test.want))
		if err := Dequantize(got, []byte(test.src), test.typ); err != nil {
			t.Error(err)
		}
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%s: got %v, want %v", test.typ, got, test.want)
				break
			}
		}
	}
}

func TestDequantizeErrors(t *testing.T) {
	tests := []struct {
		n, bytes int
		typ      ir.DType
		want     string
	}{
		{1, 1, ir.Invalid, "dequantize: type invalid is not supported"},
		{1, 8, ir.I64, "dequantize: type i64 is not supported"},
		{1, 1, 200, "dequantize: type dtype(200) is not supported"},
		{31, 34, ir.Q8_0, "dequantize: 31 elements are not whole q8_0 blocks of 32"},
		{32, 33, ir.Q8_0, "dequantize: 32 elements of q8_0 take 34 bytes, not 33"},
		{32, 68, ir.Q8_0, "dequantize: 32 elements of q8_0 take 34 bytes, not 68"},
		{256, 0, ir.Q6_K, "dequantize: 256 elements of q6_k take 210 bytes, not 0"},
	}
	for _, test := range tests {
		err := Dequantize(make([]float32, test.n), make([]byte, test.bytes), test.typ)
		if err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// TestFormats holds that types have one row each, with a number, a name that ir knows, and blocks.
func TestFormats(t *testing.T) {
	names := map[string]bool{}
	for n, row := range formats {
		if names[row.name] || row.block < 1 || row.bytes < 1 {
			t.Errorf("type %d: bad row %v", n, row)
		}
		names[row.name] = true
		if row.dtype != ir.Invalid && !strings.EqualFold(row.name, row.dtype.String()) {
			t.Errorf("%s is called %s in ir", row.name, row.dtype)
		}
	}
	rows := len(unread)
	for _, d := range ir.DTypes() {
		if n, ok := numberOf(d); !ok || formats[n].dtype != d {
			t.Errorf("%s has no type number", d)
		}
		rows++
	}
	if rows != len(formats) {
		t.Errorf("%d formats, want %d: two files have a row of one number", len(formats), rows)
	}
}

// FuzzDequantize checks that no bytes make a format panic, and that a block's
// values do not depend on the blocks beside it.
func FuzzDequantize(f *testing.F) {
	for i, typ := range supported() {
		f.Add(uint8(i), bytes.Repeat([]byte{0x81, 0x3c}, typ.BlockBytes()))
	}
	types := supported()
	f.Fuzz(func(t *testing.T, which uint8, src []byte) {
		typ := types[int(which)%len(types)]
		blocks := len(src) / typ.BlockBytes()
		src = src[:blocks*typ.BlockBytes()]
		all := make([]float32, blocks*typ.Block())
		if err := Dequantize(all, src, typ); err != nil {
			t.Fatal(err)
		}
		one := make([]float32, typ.Block())
		for b := range blocks {
			if err := Dequantize(one, src[b*typ.BlockBytes():][:typ.BlockBytes()], typ); err != nil {
				t.Fatal(err)
			}
			for i, x := range one {
				if y := all[b*typ.Block()+i]; math.Float32bits(x) != math.Float32bits(y) {
					t.Fatalf("%s block %d element %d: %v alone, %v in a row", typ, b, i, x, y)
				}
			}
		}
	})
}

func BenchmarkDequantize(b *testing.B) {
	const n = 1 << 16
	for _, t := range supported() {
		b.Run(t.String(), func(b *testing.B) {
			src := make([]byte, t.Bytes(n))
			for i := range src {
				src[i] = byte(i*7)&^0x40 | 0x20 // halves are normal numbers
			}
			dst := make([]float32, n)
			b.SetBytes(n) // MB/s is million elements a second
			for b.Loop() {
				if err := Dequantize(dst, src, t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
