package device

// Thresholds are what was measured on one device and follows from none of its figures. They hold for the targets of
// that device; zero values say that nothing was measured. Then package strategy goes by rooflines and the order of the
// table of families, and drops nothing for them.
type Thresholds struct {
	// WgmmaRows is the least number of rows for which attention_wgmma is chosen, not attention_coop.
	WgmmaRows int
	// FixedRows is the least number of rows of x for which gemm_fixed is considered, not gemv.
	FixedRows int
	// RingMost is the most tiles of weights in a ring of gemm_fixed.
	RingMost int
	// Room is what attention leaves registers for.
	Room Room
	// Timed: shapes are considered that only measured times can rank.
	Timed bool
	// Apart says which projections of a few bits stay apart from those in float32 in exact steps.
	Apart Apart
}

// Room is the form of attention that is tried first in steps of so many rows and more, with heads of so many elements
// at most: one with registers for so many lanes of a unit.
type Room struct{ Lanes, Rows, Head int }

// Apart are the least rows, and products of all rows, of projections that stay apart; zero: none do.
type Apart struct {
	Rows int
	Work int64
}
