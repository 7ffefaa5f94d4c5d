package kernels_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

func TestMain(m *testing.M) { kerneltest.Main(m, spare...) }

// spare is the barrier that matmul's tests have, too.
var spare = []racetest.Spare{
	{Kernel: "gemv", File: "matmul/gemv_fixed.go", Why: "keeps compilers from moving the first loads of weights behind x"},
}
