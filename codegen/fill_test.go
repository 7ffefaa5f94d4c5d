package codegen

import (
	"errors"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestFillAboveTheModelsContext holds that a context beyond the model's own costs no slots where the memory has room.
func TestFillAboveTheModelsContext(t *testing.T) {
	f, err := gguf.Open("../testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own, err := frontend.Context(f)
	if err != nil {
		t.Fatal(err)
	}
	host, err := target.Lookup("host")
	if err != nil {
		t.Fatal(err)
	}
	o, err := Fill(t.Context(), f, host, frontend.Options{Ctx: 2 * own, Slots: -1, KV: ir.F16}, 4<<30, nil)
	if err != nil || o.Slots != target.DecodeRows || o.Ctx != 2*own {
		t.Errorf("slots %d, context %d, %v; want %d, %d", o.Slots, o.Ctx, err, target.DecodeRows, 2*own)
	}
}

func TestFillSlots(t *testing.T) {
	for most := 0; most <= target.DecodeRows+2; most++ { // slots that leave 100 positions each
		calls := 0
		slots, longest, err := fillSlots(100, target.DecodeRows, func(n int) (int, error) { calls++; return 100 * most / n, nil })
		want := min(max(most, 1), target.DecodeRows)
		if err != nil || slots != want || longest != 100*most/want || calls > 4 || most >= target.DecodeRows && calls > 1 {
			t.Errorf("room for %d: %d slots of %d in %d tries, %v", most, slots, longest, calls, err)
		}
	}
	if _, _, err := fillSlots(1, target.DecodeRows, func(int) (int, error) { return 0, errors.New("no") }); err == nil {
		t.Error("no error")
	}
}
