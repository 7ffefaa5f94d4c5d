package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernels/attention"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/ir"
)

// HalfInput returns the f32 value that the group's projections or its attention read, if
// a kernel with matrices computes the group once it is rounded to f16; else nil.
func HalfInput(s *Site) *ir.Value {
	if q := attention.HalfQueries(s); q != nil {
		return q
	}
	return matmul.HalfProjections(s)
}

// FixedReaders, ByteReaders, RoomToSplit and AttentionTiles are the families'.
var (
	FixedReaders   = matmul.FixedReaders
	ByteReaders    = matmul.ByteReaders
	RoomToSplit    = matmul.RoomToSplit
	AttentionTiles = attention.AttentionTiles
)
