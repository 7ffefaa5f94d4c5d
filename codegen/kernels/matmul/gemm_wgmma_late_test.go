package matmul_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

// TestGemmWgmmaLate has the later projections of a group in tiles of half the rows, where units would be idle: of 256
// rows all, some of the second half or none of it are there. With enough units for all tiles, or too few, none has.
func TestGemmWgmmaLate(t *testing.T) {
	for units, rows := range map[int][]int{3: nil, 4: {256, 131, 100}, 5: nil} {
		on := *kerneltest.Lookup(t, "sm_90-cuda")
		on.Units = units
		for _, n := range append(rows, 256)[:max(1, len(rows))] {
			t.Run(fmt.Sprint(units, " ", n), func(t *testing.T) {
				t.Parallel()
				w := newWork(t, 256, n)
				x := w.tiled(w.rounded(w.rows(ir.T, 256)), "13 12")
				out := []*ir.Value{w.linear(x, ir.Q4_K, 256), w.linear(x, ir.Q4_K, 132), w.linear(x, ir.Q6_K, 120)}
				found := 0
				for _, c := range kernels.Candidates(w.site(&on, out...)) {
					if c.Family == "gemm_wgmma" && strings.Contains(c.Kernel, " late=1") {
						found++
						w.checkAll(kerneltest.Launch, c, n, out)
						kerneltest.Assembled(t, c)
					}
				}
				if found > 0 != (rows != nil) {
					t.Errorf("%d candidates with halves of tiles", found)
				}
			})
		}
	}
}
