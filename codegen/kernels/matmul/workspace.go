package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// RoomToSplit returns the width of the room that the site's projections want for sums of
// workgroups that share the elements of a row, 0 if they want none.
func RoomToSplit(s *site.Site) int {
	if k := matchFixed(s); k != nil {
		return k.workspaceWidth()
	}
	return workspaceForFragment(s)
}

// workspaceForFragment is what gemm_dealt wants of RoomToSplit.
func workspaceForFragment(s *site.Site) int {
	g := matchFragment(s)
	if g == nil || !g.half {
		return 0
	}
	k := gemmFragment{linearGroup: g, fragmentTile: fragmentTileOf(s, g)}
	if !k.pays(s) {
		return 0
	}
	return k.workspaceWidth()
}
