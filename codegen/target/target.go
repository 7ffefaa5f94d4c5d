// Package target describes the devices that zincc compiles for.
package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/codegen/target/hopper"
	"github.com/zincc-dev/zincc/codegen/target/nvidia"
	"github.com/zincc-dev/zincc/codegen/target/rdna"
)

// Target is what the compiler knows about a device. Every figure has its source beside it: in the folder of the device,
// or in a file here.
type (
	Target      = device.Target
	MatrixShape = device.MatrixShape
	Fit         = device.Fit
	Pace        = device.Pace
	AMD         = device.AMD
)

// NoMatrix ends the names of targets for drivers without cooperative matrices; DecodeRows is how many rows of an exact
// step kernels compute together.
const (
	NoMatrix   = device.NoMatrix
	DecodeRows = device.DecodeRows
	WithCUDA   = nvidia.WithCUDA
)

// Lookup returns the target of that name. Each target with cooperative matrices has
// one without beside it.
func Lookup(name string) (*Target, error) {
	if name == CPU {
		return thisProcessor()
	}
	base, without := strings.CutSuffix(name, NoMatrix)
	for _, t := range targets {
		switch {
		case t.Name != base:
		case !without:
			return t, nil
		case t.Matrix != (MatrixShape{}):
			return t.WithoutMatrix(), nil
		}
	}
	return nil, fmt.Errorf("unknown target %q; `zincc targets` lists them", name)
}

// All returns the targets in the order in which people should read them.
func All() []*Target { return targets }

// cuda are the targets through CUDA.
var cuda = slices.Concat([]*Target{hopper.CUDA}, nvidia.Targets)

// targets has a folder's targets by its list, so that one more of a maker changes its folder alone.
var targets = slices.Concat([]*Target{host}, processors, []*Target{llvmpipe, hopper.Vulkan}, cuda, rdna.Targets, []*Target{xe2, generic})
