package cuda

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

const (
	probeRepeats = 5
	probeLanes   = 256
	probeBytes   = 16 * probeReadVectors
	// probeDispatches is how many empty dispatches are timed together.
	probeDispatches = 200
	probeSubmits    = 100
)

// probeGrids are tried for the read bandwidth.
var probeGrids = []uint32{256, 512, 1024, 4096}

// probeWorkgroups are the sizes of empty dispatches, as in package vulkan.
var probeWorkgroups = []uint32{1, 128, 1024}

// ProbeIdentity changes with the kernels that probes measure with.
func ProbeIdentity() []byte {
	sum := sha256.Sum256([]byte(probeEmpty + probeRead))
	return sum[:]
}

// Probe opens a device that Enumerate listed and measures it.
func Probe(ctx context.Context, info Info) (*runtime.ProbeResult, error) {
	d, err := Open(info.Index, plans.Requirements{Backend: plans.CUDA, CUDA: &plans.CUDARequirements{Arch: Oldest}})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	r := &runtime.ProbeResult{}
	for _, measure := range []func(context.Context, *runtime.ProbeResult) error{d.probeRead, d.probeDispatch} {
		if err := measure(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// probeRead measures the bandwidth of the best grid.
func (d *Device) probeRead(ctx context.Context, r *runtime.ProbeResult) error {
	f, err := d.function("probe_read", "kernel", probeLanes, 0, []byte(probeRead))
	if err != nil {
		return err
	}
	source, err := d.alloc(probeBytes)
	if err != nil {
		return err
	}
	defer source.free()
	sink, err := d.alloc(int64(probeGrids[len(probeGrids)-1]) * probeLanes * 4)
	if err != nil {
		return err
	}
	defer sink.free()
	if err := d.call(cuMemsetD32Async, uintptr(source.address), 1, probeBytes/4, d.stream); err != nil {
		return d.errorf("%w", err)
	}
	for _, grid := range probeGrids {
		t, err := d.bestTime(ctx, func() error {
			return f.launch(d, d.stream, [3]uint32{grid, 1, 1}, []uint64{source.address, sink.address}, false)
		})
		if err != nil {
			return d.errorf("%w", err)
		}
		if b := probeBytes / t.Seconds(); b > r.ReadBandwidth {
			r.ReadBandwidth, r.ReadWorkgroups = b, int(grid)
		}
	}
	return nil
}

// probeDispatch measures empty kernels one after the other in a graph, and what it costs to start the
// shortest graph and wait for its end.
func (d *Device) probeDispatch(ctx context.Context, r *runtime.ProbeResult) error {
	f, err := d.function("probe_empty", "kernel", probeLanes, 0, []byte(probeEmpty))
	if err != nil {
		return err
	}
	graphOf := func(count int, workgroups uint32) (*graph, error) {
		return d.capture(func() error {
			for range count {
				if err := f.launch(d, d.stream, [3]uint32{workgroups, 1, 1}, []uint64{0}, false); err != nil { // never read
					return d.errorf("%w", err)
				}
			}
			return nil
		})
	}
	for _, n := range probeWorkgroups {
		g, err := graphOf(probeDispatches, n)
		if err != nil {
			return err
		}
		t, err := d.bestTime(ctx, g.launch)
		g.free()
		if err != nil {
			return err
		}
		r.Dispatches = append(r.Dispatches, runtime.DispatchProbe{Workgroups: int(n), Barrier: t.Seconds() / probeDispatches})
	}
	g, err := graphOf(1, 1)
	if err != nil {
		return err
	}
	defer g.free()
	var total, best time.Duration
	for i := range probeSubmits {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		if err := g.launch(); err != nil {
			return err
		}
		if err := d.call(cuStreamSynchronize, d.stream); err != nil {
			return d.errorf("%w", err)
		}
		t := time.Since(start)
		total += t
		if i == 0 || t < best {
			best = t
		}
	}
	r.SubmitBest, r.SubmitMean = best.Seconds(), total.Seconds()/probeSubmits
	return nil
}

// bestTime is the shortest that the device takes for what do starts.
func (d *Device) bestTime(ctx context.Context, do func() error) (best time.Duration, err error) {
	var stamps [2]uintptr
	for i := range stamps {
		if stamps[i], err = d.event(); err != nil {
			return 0, err
		}
		defer func() { _ = d.call(cuEventDestroy, stamps[i]) }()
	}
	for i := range probeRepeats {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := d.call(cuEventRecord, stamps[0], d.stream); err != nil {
			return 0, err
		}
		if err := do(); err != nil {
			return 0, err
		}
		if err := d.call(cuEventRecord, stamps[1], d.stream); err != nil {
			return 0, err
		}
		if err := d.call(cuEventSynchronize, stamps[1]); err != nil {
			return 0, err
		}
		t, err := d.between(stamps[0], stamps[1])
		if err != nil {
			return 0, err
		}
		if i == 0 || t < best {
			best = t
		}
	}
	return max(best, 1), nil
}
