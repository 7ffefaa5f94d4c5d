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

// imageFloats decodes an image by what the documentation of Rows16 says.
func imageFloats(r Recipe, b []byte) []float32 {
	var y []float32
	blocks := func(n int, block func(i int) []byte) {
		for i := range n {
			z := make([]float32, r.DType.Block())
			if gguf.Dequantize(z, block(i), r.DType) != nil {
				panic("a block")
			}
			y = append(y, z...)
		}
	}
	switch r.DType {
	case ir.F32, ir.Q4_K, ir.Q5_K:
		blocks(1, func(int) []byte { return b })
	case ir.F16, ir.BF16:
		blocks(2, func(i int) []byte { return b[2*i : 2*i+2] })
	case ir.Q8_0, ir.Q4_0:
		n := (len(b) - 4) / 2
		blocks(2, func(i int) []byte { return append(bytes.Clone(b[2*i:2*i+2]), b[4+n*i:4+n*i+n]...) })
	case ir.Q6_K:
		y = make([]float32, 256)
		d := math.Float32frombits(le.Uint32(b))
		for part := range 4 {
			p := b[4+52*part:]
			for i := range 16 {
				from := p[4+12*(i/4)+i%4:]
				low, next, high := from[0], from[4], from[8]
				for q, code := range []byte{low&15 | high&3<<4, next&15 | high>>2&3<<4, low>>4 | high>>4&3<<4, next>>4 | high>>6<<4} {
					y[part/2*128+32*q+part%2*16+i] = d * float32(int8(p[q])) * float32(int(code)-32)
				}
			}
		}
	}
	return y
}

// TestRows16 reads every row of tensors of all shapes, made in two parts, word by word.
func TestRows16(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var some []Recipe
		for _, r := range recipes {
			if _, ok := images[r.DType]; ok {
				some = append(some, r)
			}
		}
		r := rapid.SampledFrom(some).Draw(rt, "recipe")
		matrices, rows := rapid.Int64Range(1, 3).Draw(rt, "matrices"), rapid.Int64Range(1, 40).Draw(rt, "rows")
		cols := rapid.Int64Range(1, 5).Draw(rt, "blocks") * int64(max(r.DType.Block(), 2))
		l, err := Named(Rows16, r.DType, matrices, rows, cols)
		if err != nil {
			rt.Fatal(err)
		}
		src := make([]byte, l.SourceBytes())
		rng := rand.New(rand.NewPCG(1, uint64(cols)))
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		want := make([]float32, matrices*rows*cols)
		if err := gguf.Dequantize(want, src, r.DType); err != nil {
			rt.Fatal(err)
		}
		data := bytes.Repeat([]byte{0xa5}, int(l.Bytes))
		cut := rapid.Int64Range(0, l.Bytes).Draw(rt, "cut")
		for _, part := range [][2]int64{{0, cut}, {cut, l.Bytes}} {
			if err := l.Fill(data[part[0]:part[1]], part[0], src); err != nil {
				rt.Fatal(err)
			}
		}
		if l.Bytes != matrices*l.Groups*l.Images*l.Words*64 {
			rt.Fatalf("%d bytes for %+v", l.Bytes, l)
		}
		for row := range matrices * l.Groups * 16 {
			matrix, in := row/(l.Groups*16), row%(l.Groups*16)
			var y []float32
			for i := range l.Images {
				var image []byte
				for w := range l.Words {
					image = append(image, data[(((row/16)*l.Images+i)*l.Words+w)*64+row%16*4:][:4]...)
				}
				y = append(y, imageFloats(r, image)...)
			}
			for c, v := range y {
				w := float32(0) // of rows and blocks that fill up
				if in < rows && int64(c) < cols {
					w = want[(matrix*rows+in)*cols+int64(c)]
				}
				if v != w && (v == v || w == w) {
					rt.Fatalf("%s: element [%d, %d, %d] is %g, want %g", r.DType, matrix, in, c, v, w)
				}
			}
		}
	})
	if _, err := Named("planes", ir.Q4_K, 4, 256); err == nil {
		t.Error("q4_k is taken as planes")
	}
	if l, err := Named("raw", ir.Q4_K, 4, 256); err != nil || l.Name != "raw" {
		t.Errorf("raw q4_k: %v", err)
	}
}

func BenchmarkRows16(b *testing.B) {
	for _, d := range []ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.F16, ir.Q4_0, ir.Q5_0} {
		b.Run(d.String(), func(b *testing.B) {
			l, err := NewRows16(d, 1024, 2048)
			if err != nil {
				b.Fatal(err)
			}
			src, dst := make([]byte, l.SourceBytes()), make([]byte, l.Bytes)
			b.SetBytes(l.Bytes)
			for b.Loop() {
				if err := l.Fill(dst, 0, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
