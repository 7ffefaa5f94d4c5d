package layout_test

import (
	"bytes"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// TestCache moves caches of 2 slots, 3 positions and 64 elements to the device and back.
func TestCache(t *testing.T) {
	for _, c := range []struct {
		typ    ir.DType
		device func(codes []byte, i int) byte // code i, from what the device has of a block
		row    func(codes []byte, i int) byte // and from the block of a row
	}{
		{ir.Q8_0, func(b []byte, i int) byte { return b[i&^3+[]int{0, 2, 1, 3}[i&3]] }, func(b []byte, i int) byte { return b[i] + 128 }},
		{ir.Q4_0, func(b []byte, i int) byte { return b[i/2] >> (i % 2 * 4) & 15 }, func(b []byte, i int) byte { return b[i%16] >> (i / 16 * 4) & 15 }},
	} {
		t.Run(c.typ.String(), func(t *testing.T) {
			typ, block := &ir.Value{Class: ir.KV, Type: ir.MakeType(c.typ, 2, ir.L, 64)}, c.typ.BlockBytes()
			rows := make([]byte, 12*block)
			for i := range rows {
				rows[i] = byte(i * 7)
			}
			device, err := layout.CacheToDevice(typ, 3, rows)
			if err != nil {
				t.Fatal(err)
			}
			const at = (1*3+2)*2 + 1 // slot 1, position 2, the second block
			from, codes := rows[at*block:][:block], block-2
			for i := range 32 {
				if got, want := c.device(device[at*codes:], i), c.row(from[2:], i); got != want {
					t.Errorf("code %d is %d, want %d", i, got, want)
				}
			}
			if got, want := device[12*codes+2*((1*2+1)*3+2):][:2], from[:2]; !bytes.Equal(got, want) {
				t.Errorf("scale is %v, want %v", got, want)
			}
			back, err := layout.CacheFromDevice(typ, 3, device)
			if err != nil || !bytes.Equal(back, rows) {
				t.Errorf("back: %v, %v, want %v", back, err, rows)
			}
			if _, err := layout.CacheToDevice(typ, 4, rows); err == nil {
				t.Error("a cache of another size was taken")
			}
		})
	}
}
