package gguf

import (
	"maps"

	"github.com/zincc-dev/zincc/ir"
)

// format describes one tensor type of the file format. Rows stand beside the arithmetic of their types, by the type
// number of the tensor table (enum ggml_type).
type format struct {
	name  string
	dtype ir.DType // Invalid: sized and named, but no arithmetic for it
	// block is the elements of a block and bytes its size, where they do not follow from dtype.
	block, bytes int64
	dequantize   func(dst []float32, src []byte) // fills dst from src, whose sizes Dequantize has checked; nil: unknown
}

// unread are the types that no tensor of a model has.
var unread = map[uint32]format{
	9:  {name: "Q8_1", block: 32, bytes: 36},
	15: {name: "Q8_K", block: 256, bytes: 292},
}

// formats are all, by number. Other numbers are used by no current file: ggml removed them or never gave them out.
var formats = func() map[uint32]format {
	all := map[uint32]format{}
	for _, some := range []map[uint32]format{plainFormats, block32Formats, block256Formats, gridFormats, lowBitFormats, unread} {
		maps.Copy(all, some)
	}
	for n, f := range all {
		if f.dtype != ir.Invalid {
			f.block, f.bytes = int64(f.dtype.Block()), int64(f.dtype.BlockBytes())
			all[n] = f
		}
	}
	return all
}()

// numbers are the type numbers that the format uses.
var numbers = func() map[ir.DType]uint32 {
	all := map[ir.DType]uint32{}
	for n, f := range formats {
		if f.dtype != ir.Invalid {
			all[f.dtype] = n
		}
	}
	return all
}()

// numberOf returns the type number that the format uses for d.
func numberOf(d ir.DType) (uint32, bool) {
	n, ok := numbers[d]
	return n, ok
}
