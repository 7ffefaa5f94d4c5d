package cuda

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
)

const (
	probeRepeats = 5
	probeLanes   = 256
	probeBytes   = 16 * probeReadVectors
	// probeDispatches is how many empty dispatches are timed together.
	probeDispatches = 200
	probeSubmits    = 100
	probeTimeout    = 30 * time.Second
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
	source, err := d.Alloc(probeBytes, driver.Local)
	if err != nil {
		return err
	}
	defer source.Free()
	sink, err := d.Alloc(int64(probeGrids[len(probeGrids)-1])*probeLanes*4, driver.Local)
	if err != nil {
		return err
	}
	defer sink.Free()
	if err := d.call(cuMemsetD32Async, uintptr(source.Address()), 1, probeBytes/4, d.stream); err != nil {
		return d.errorf("%w", err)
	}
	for _, grid := range probeGrids {
		t, err := d.bestTime(ctx, f, driver.Dispatch{Arguments: []uint64{source.Address(), sink.Address()}, Grid: [3]uint32{grid, 1, 1}}, 1)
		if err != nil {
			return err
		}
		if b := probeBytes / t.Seconds(); b > r.ReadBandwidth {
			r.ReadBandwidth, r.ReadWorkgroups = b, int(grid)
		}
	}
	return nil
}

// probeDispatch measures empty kernels one after the other, and what it costs to submit one and wait for its end.
func (d *Device) probeDispatch(ctx context.Context, r *runtime.ProbeResult) error {
	f, err := d.function("probe_empty", "kernel", probeLanes, 0, []byte(probeEmpty))
	if err != nil {
		return err
	}
	empty := func(workgroups uint32) driver.Dispatch {
		return driver.Dispatch{Arguments: []uint64{0}, Grid: [3]uint32{workgroups, 1, 1}} // never read
	}
	for _, n := range probeWorkgroups {
		t, err := d.bestTime(ctx, f, empty(n), probeDispatches)
		if err != nil {
			return err
		}
		r.Dispatches = append(r.Dispatches, runtime.DispatchProbe{Workgroups: int(n), Barrier: t.Seconds() / probeDispatches})
	}
	one, err := d.record([]*function{f}, []driver.Stage{{Dispatches: []driver.Dispatch{empty(1)}}})
	if err != nil {
		return err
	}
	defer one.Free()
	var total, best time.Duration
	for i := range probeSubmits {
		start := time.Now()
		if err := d.run(ctx, one); err != nil {
			return err
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

// bestTime is the shortest that the device takes for the dispatch, count times one behind the other.
func (d *Device) bestTime(ctx context.Context, f *function, dispatch driver.Dispatch, count int) (best time.Duration, err error) {
	clock, err := d.Clock(2)
	if err != nil {
		return 0, err
	}
	defer clock.Free()
	stages := slices.Repeat([]driver.Stage{{Dispatches: []driver.Dispatch{dispatch}}}, count)
	stages[count-1].Stamp = driver.Stamp{Clock: clock, Slot: 1}
	w, err := d.record([]*function{f}, slices.Concat([]driver.Stage{{Stamp: driver.Stamp{Clock: clock}}}, stages))
	if err != nil {
		return 0, err
	}
	defer w.Free()
	for i := range probeRepeats {
		if err := d.run(ctx, w); err != nil {
			return 0, err
		}
		at, err := clock.Read()
		if err != nil {
			return 0, err
		}
		if t := at[1]; i == 0 || t < best {
			best = t
		}
	}
	return max(best, 1), nil
}

// run submits a work and waits for its end.
func (d *Device) run(ctx context.Context, w *work) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := d.Submit(w)
	if err != nil {
		return err
	}
	return d.Wait(f, probeTimeout)
}
