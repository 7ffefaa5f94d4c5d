package kerneltest

import (
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// Different returns candidates without those that share a module with an earlier one.
func Different(list []kernels.Candidate) []kernels.Candidate {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(c kernels.Candidate) bool {
		had := seen[c.Kernel]
		seen[c.Kernel] = true
		return had
	})
}

// OtherWaves are sizes of subgroups that the device has not, but other devices.
var OtherWaves = []int{32, 64}

// lanes are those of a subgroup of llvmpipe.
const lanes = 8

func Llvmpipe(t testing.TB) *target.Target { return Lookup(t, "llvmpipe") }

// WithWave is llvmpipe with other subgroups than it has, as launch interprets.
func WithWave(t testing.TB, wave int) *target.Target {
	on := *Llvmpipe(t)
	on.Wave, on.Workgroup = wave, 1024
	return &on
}

// AllFormats are the dtypes that kernels read, with a row length that is no
// multiple of what they like best.
func AllFormats() map[ir.DType]int {
	m := map[ir.DType]int{}
	for _, d := range ir.DTypes() {
		switch {
		case layout.Format(d) == "":
		case d.Block() == 1:
			m[d] = 1060
		default:
			m[d] = 5 * 256
		}
	}
	return m
}

// Processor is a target whose weights lie in rows of 16. The interpreter computes its kernels.
func Processor(t testing.TB) *target.Target { return Machine(t, "x86-64-v4") }

func Machine(t testing.TB, name string) *target.Target { return Lookup(t, "cpu:"+name) }

func Lookup(t testing.TB, name string) *target.Target {
	t.Helper()
	on, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return on
}
