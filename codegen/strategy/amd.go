package strategy

import "github.com/zincc-dev/zincc/codegen/kernels/site"

// spillsOnAMD reports whether AMD's compiler (Mesa's, gfx1201 and gfx1100) spills registers of gemm_coop
// with a tile, as it does of those that load far ahead, or makes slow code, as of those of other widths
// than powers of two.
func spillsOnAMD(t *site.Tiling) bool { return t.Ahead >= 4 || t.Outputs&(t.Outputs-1) != 0 }
