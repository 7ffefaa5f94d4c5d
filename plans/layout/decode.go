package layout

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir/gguf"
)

// DecodeRow fills dst, one row, from data, the whole tensor on the device. It is
// what kernels are compared with; the floats are those of gguf.Dequantize. It does not read Rows16.
func (t *Tensor) DecodeRow(dst []float32, data []byte, row int64) error {
	if t.image != nil {
		return fmt.Errorf("layout: rows of %s are not read one by one", t.Name)
	}
	if int64(len(data)) != t.Bytes || int64(len(dst)) != t.Cols || row < 0 || row >= t.Rows {
		return fmt.Errorf("layout: row %d of [%d, %d] from %d bytes into %d floats", row, t.Rows, t.Cols, len(data), len(dst))
	}
	blocks := t.Cols / int64(t.DType.Block())
	for b := range blocks {
		y := dst[b*int64(t.DType.Block()):][:t.DType.Block()]
		if err := t.decodeBlock(y, data, row*blocks+b); err != nil {
			return err
		}
	}
	return nil
}

// decodeBlock fills y, one block of the file.
func (t *Tensor) decodeBlock(y []float32, data []byte, b int64) error {
	part := func(i int) []byte {
		p := t.Planes[i]
		return data[p.Offset+b*int64(p.Block):][:p.Block]
	}
	block := make([]byte, t.DType.BlockBytes())
	t.restore(t.Recipe, block, part)
	return gguf.Dequantize(y, block, t.DType)
}

// whole is restore of fields that are copied.
func whole(r Recipe, block []byte, part func(i int) []byte) {
	for i, f := range r.fields {
		copy(block[f.from:], part(i))
	}
}
