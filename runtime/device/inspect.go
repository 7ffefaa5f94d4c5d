package device

import (
	"context"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime"
	driven "github.com/zincc-dev/zincc/runtime/exec"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// Inspect returns an executor that lets tools look inside. It fails for the host executor, which is
// the oracle itself.
func Inspect(exec runtime.Executor) (verify.Device, error) {
	if x, ok := exec.(interface {
		Inspect() (*driven.Inspector, error)
	}); ok {
		return x.Inspect()
	}
	return nil, ir.Unsupported("device %s has no kernels", exec.Device())
}

// Measured is an executor on a device that tools can measure.
type Measured interface {
	runtime.Profiler
	// Backend names what runs the kernels, for people.
	Backend() string
	// Driver names the driver and its version.
	Driver() string
	// ReadBandwidth is the bytes a second of a kernel that only reads.
	ReadBandwidth(ctx context.Context) (float64, error)
}
