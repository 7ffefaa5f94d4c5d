package layout_test

import (
	"bytes"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// TestCache moves a cache of 2 slots, 3 positions and 64 elements to the device and back.
func TestCache(t *testing.T) {
	typ := ir.MakeType(ir.Q8_0, 2, ir.L, 64)
	rows := make([]byte, 12*34)
	for i := range rows {
		rows[i] = byte(i * 7)
	}
	device, err := layout.CacheToDevice(typ, 3, rows)
	if err != nil {
		t.Fatal(err)
	}
	const pos, block = 1*3 + 2, 1 // of slot 1, position 2
	from := rows[(pos*2+block)*34:][:34]
	for i, at := range []int{0, 2, 1, 3, 4, 6, 5, 7} {
		if got, want := device[pos*64+block*32+at], from[2+i]+128; got != want {
			t.Errorf("code %d is %d, want %d", i, got, want)
		}
	}
	if got, want := device[12*32+2*((1*2+block)*3+2):][:2], from[:2]; !bytes.Equal(got, want) {
		t.Errorf("scale is %v, want %v", got, want)
	}
	back, err := layout.CacheFromDevice(typ, 3, device)
	if err != nil || !bytes.Equal(back, rows) {
		t.Errorf("back: %v, %v, want %v", back, err, rows)
	}
	if _, err := layout.CacheToDevice(typ, 4, rows); err == nil {
		t.Error("a cache of another size was taken")
	}
}
