//go:build ignore

// Command mkgolden collects one row of 512 elements of each quantized type and
// the peer's float32 values of it:
//
//	llama-quantize --allow-requantize x.gguf x-f32.gguf F32
//	go run testdata/mkgolden.go testdata/dequant.gguf x.gguf:x-f32.gguf ...
//
// Tensor data made of random bytes (with finite scales) exercises more of a
// format than real weights do, and the peer accepts it.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

const row = 512

func main() {
	var rows []gguf.TensorData
	seen := map[ir.DType]bool{ir.F32: true, ir.Invalid: true}
	for _, pair := range os.Args[2:] {
		from, to, ok := strings.Cut(pair, ":")
		if !ok {
			log.Fatalf("%s: want quantized.gguf:f32.gguf", pair)
		}
		q, err := gguf.Open(from)
		if err != nil {
			log.Fatal(err)
		}
		f, err := gguf.Open(to)
		if err != nil {
			log.Fatal(err)
		}
		for i := range q.Tensors {
			t := &q.Tensors[i]
			u, ok := f.Tensor(t.Name)
			if !ok || seen[t.Type] || t.Elements() < row {
				continue
			}
			seen[t.Type] = true
			rows = append(rows,
				gguf.TensorData{Name: t.Type.String(), Type: t.Type, Shape: []int64{row}, Data: q.Data(t)[:t.Type.Bytes(row)]},
				gguf.TensorData{Name: t.Type.String() + ".f32", Type: ir.F32, Shape: []int64{row}, Data: f.Data(u)[:4*row]})
		}
	}
	out, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := gguf.Write(out, nil, rows); err != nil {
		log.Fatal(err)
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(rows)/2, "types")
}
