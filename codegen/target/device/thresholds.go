package device

import "cmp"

// Thresholds are what was measured on one device and follows from none of its figures. They hold for the targets of
// that device; zero values say that nothing was measured. Then package strategy goes by rooflines and the order of the
// table of families and drops nothing for them, and the methods below have rules.
type Thresholds struct {
	Device string // that was measured; "": none
	// WgmmaRows is the least number of rows for which attention_wgmma is chosen, not attention_coop.
	WgmmaRows int
	// FixedRows is the least number of rows of x for which gemm_fixed is considered, not gemv.
	FixedRows int
	// Parts is the most bytes of products of parts of rows that gemm_wide leaves for a dispatch behind it.
	Parts int
	// StagedTiles is the most tiles of weights in the staging buffer of gemm_fixed.
	StagedTiles int
	// Room is what attention leaves registers for.
	Room Room
	// Timed: shapes are considered that only measured times can rank.
	Timed bool
	// Apart says which projections of a few bits stay apart from those in float32 in exact steps.
	Apart Apart
	// LoadsEarly: in steps of few rows workgroups load or prefetch data ahead of other work, in several parts, because
	// latency is the bound rather than instructions. Where that was not measured, they keep the registers.
	LoadsEarly bool
	// BarrierSubgroups is the most subgroups a row of projections with a barrier that keeps the driver's compiler from
	// loading the first weights behind x. Where that was not measured, there is none.
	BarrierSubgroups int
	// SharedRows is the most weight rows of a team that shares x with others in shared memory, see SharesX.
	SharedRows int
	// FourRows is the least weight rows of a team that takes four at a time, see TakesFour.
	FourRows int
}

// Room is the form of attention that is tried first in steps of so many rows and more, with heads of so many elements
// at most: one with registers for so many lanes of a unit.
type Room struct{ Lanes, Rows, Head int }

// Apart are the least rows, and products of all rows, of projections that stay apart; zero: none do.
type Apart struct {
	Rows int
	Work int64
}

const (
	// sharedRows: the float32 elements of x are a fifth of the bytes, or more, that a team loads with as many rows of
	// weights of 4.5 bits. With more rows a barrier costs more than loading x again.
	sharedRows = 5 * 32 * 2 / 9
	// fourRows: a team has four turns, so that the last, which may be short, is at most a quarter of all.
	fourRows = 4 * 4
)

// SharesX reports whether teams with so many weight rows each should share x in shared memory, behind a barrier,
// rather than have each lane round its own elements: by what was measured, else by the bytes that each loads.
func (t *Target) SharesX(rows int) bool {
	return rows <= cmp.Or(t.Thresholds.SharedRows, sharedRows)
}

// TakesFour reports whether teams with so many weight rows each should take four at a time rather than two: by what was
// measured, else where they have four turns.
func (t *Target) TakesFour(rows int) bool {
	return rows >= cmp.Or(t.Thresholds.FourRows, fourRows)
}
