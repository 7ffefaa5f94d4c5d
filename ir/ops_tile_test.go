package ir

import (
	"strings"
	"testing"
)

// TestTileElement holds that a block's pieces have every element once, and a lane's part of a piece two of an octet of
// its own.
func TestTileElement(t *testing.T) {
	orders, err := TileOrders("13 12 23 04")
	if err != nil {
		t.Fatal(err)
	}
	for _, lanes := range orders {
		seen := map[int]bool{}
		for q := range TileBlock / PieceElements {
			for e := range PieceElements {
				at := TileElement(lanes, q, e)
				if seen[at] || at < 0 || at >= TileBlock {
					t.Fatalf("lanes %v: element %d twice, or none", lanes, at)
				}
				seen[at] = true
				octet := at / 8
				if lane := octet>>lanes[0]&1 | octet>>lanes[1]&1<<1; lane != e/2 {
					t.Errorf("lanes %v: element %d of piece %d is lane %d's", lanes, e, q, lane)
				}
				if other := TileElement(lanes, q, e^1); other/8 != octet || other-at != 2 && at-other != 2 {
					t.Errorf("lanes %v: elements %d and %d lie together", lanes, at, other)
				}
			}
		}
	}
	for _, wrong := range []string{"", "1", "11", "31", "15", "13,12", "13  12"} {
		if _, err := TileOrders(wrong); err == nil {
			t.Errorf("lanes %q are taken", wrong)
		}
	}
}

// TestTilesAreBounded holds that no number of rows or orders makes the size of tiles overflow.
func TestTilesAreBounded(t *testing.T) {
	tiles, rows := &Value{Type: MakeType(F16, 64, 1024)}, &Value{Type: MakeType(F16, T, 4096)}
	for _, c := range []struct {
		op, lanes string
		rows      int64
		x         *Value
	}{
		{"untile", "13 12", 1 << 62, tiles},
		{"tile", "13", 1 << 62, rows},
		{"tile", strings.Repeat("13 ", 1<<16) + "12", 128, rows},
	} {
		k := LookupOp(c.op)
		if got, err := k.Infer(&Op{Kind: k, Attrs: Attrs{{"rows", c.rows}, {"lanes", c.lanes}}, Args: []*Value{c.x}}); err == nil {
			t.Errorf("%s of %d rows: %v", c.op, c.rows, got)
		}
	}
}
