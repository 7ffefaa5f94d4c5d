package step

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
)

// written keeps what is written to each region, as an executor does: the first values are new, the others are left.
type written struct {
	regions map[string][]int32
	refuses string
}

var errRefused = errors.New("refused")

func (w *written) Write(region string, data []int32) error {
	if region == w.refuses {
		return errRefused
	}
	if more := len(data) - len(w.regions[region]); more > 0 {
		w.regions[region] = append(w.regions[region], make([]int32, more)...)
	}
	copy(w.regions[region], data)
	return nil
}

func TestStore(t *testing.T) {
	to := &written{regions: map[string][]int32{}}
	b := &Block{Count: 3}
	for range 2 { // the second step is narrower
		b.Reset()
		b.Add(7, 40, 1)
		b.Add(8, 41, 1)
		b.Add(9, 0, 0)
		if err := b.Store(to); err != nil {
			t.Fatal(err)
		}
	}
	b.Reset()
	b.Count = 0
	b.Add(5, 42, 1)
	if err := b.Store(to); err != nil {
		t.Fatal(err)
	}
	want := map[string][]int32{ir.StepToken: {5, 8, 9}, ir.StepPos: {42, 41, 0}, ir.StepSlot: {1, 1, 0}, ir.StepN: {1}, ir.StepCount: {0}}
	if !reflect.DeepEqual(to.regions, want) {
		t.Errorf("%v, want %v", to.regions, want)
	}
}

func TestStoreFails(t *testing.T) {
	for _, region := range []string{ir.StepToken, ir.StepPos, ir.StepSlot, ir.StepN, ir.StepCount} {
		b := &Block{Rows: []Row{{1, 2, 3}}}
		if err := b.Store(&written{regions: map[string][]int32{}, refuses: region}); err != errRefused {
			t.Errorf("%s: %v", region, err)
		}
	}
}

// TestBlocks stores steps one after another into a block, which has what was stored last, and nothing of what it was
// stored from.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number, heads := rapid.Int32(), rapid.SliceOfN(rapid.Int32(), 1, 4)
		row := rapid.Custom(func(t *rapid.T) Row {
			return Row{number.Draw(t, "token"), number.Draw(t, "pos"), number.Draw(t, "slot")}
		})
		var kept Block
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			b := Block{Rows: rapid.SliceOfN(row, 1, 20).Draw(t, "rows"), Count: number.Draw(t, "count"), Heads: heads.Draw(t, "heads")}
			want, rows := slices.Clone(b.Rows), slices.Clone(b.Heads)
			if err := b.Store(&kept); err != nil {
				t.Fatal(err)
			}
			b.Rows[0].Token++
			if !slices.Equal(kept.Rows, want) || kept.Count != b.Count || !slices.Equal(kept.Heads, rows) {
				t.Fatalf("%v of %d, want %v of %d", kept.Rows, kept.Count, want, b.Count)
			}
		}
	})
	if err := new(Block).Write("tokens", nil); err == nil {
		t.Error("a region that no step block has was written")
	}
}

// TestPad: dead rows end a run where another may begin, at the position of its last row.
func TestPad(t *testing.T) {
	var b Block
	b.Pad(4)
	if len(b.Rows) != 0 {
		t.Fatalf("a block without rows has %v", b.Rows)
	}
	for i := range 5 {
		b.Add(int32(i+1), 8+i, 2)
	}
	b.Pad(4)
	b.Pad(4)
	dead := Row{Token: 0, Pos: 12, Slot: ir.NoSlot}
	if want := []Row{{5, 12, 2}, dead, dead, dead}; len(b.Rows) != 8 || !slices.Equal(b.Rows[4:], want) {
		t.Errorf("rows %v, want %v behind the first four", b.Rows, want)
	}
}
