package vulkan

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// ProbeRequirements are the features that Probe needs.
func ProbeRequirements() plans.VulkanRequirements {
	return plans.VulkanRequirements{Features: probeFeatures}
}

// Probe opens a device that Enumerate listed and measures it.
func Probe(ctx context.Context, info DeviceInfo) (*runtime.ProbeResult, error) {
	need := ProbeRequirements()
	if info.hasFragments() {
		need = fragmentRequirements
	}
	d, err := Open(info.Index, need)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	r, err := d.Probe(ctx)
	return &r, err
}

const (
	probeBytes   = 1 << 30 // read at a time: far more than any cache holds
	probeRepeats = 5
	probeSubmits = 200
	probeTimeout = 30 * time.Second
	// probeDispatches is how many empty dispatches are timed together.
	probeDispatches = 1000
	// The same on a CPU, where they take long.
	probeBytesOnCPU      = 256 << 20
	probeDispatchesOnCPU = 50
)

// probeGrids are tried for the read bandwidth. A workgroup has probeLanes lanes,
// and each of them reads a multiple of probeFlight vectors.
var probeGrids = []uint32{64, 256, 1024, 4096}

const (
	probeLanes  = 256
	probeFlight = 4
	probeUnit   = 16 * probeLanes * probeFlight * 4096 // bytes that every grid divides evenly
)

// probeWorkgroups are the sizes of empty dispatches: one workgroup, about as many
// as a large GPU has units, and several on each.
var probeWorkgroups = []int{1, 128, 1024}

// ProbeIdentity changes with the kernels that probes measure with.
func ProbeIdentity() []byte {
	h := sha256.New()
	for _, words := range [][]uint32{probeEmpty, probeRead, probeFragmentsKernel} {
		binary.Write(h, binary.LittleEndian, words)
	}
	return h.Sum(nil)
}

// Probe measures the figures of a device that the cost model needs. The device must have
// been opened with ProbeRequirements or more.
func (d *Device) Probe(ctx context.Context) (runtime.ProbeResult, error) {
	var r runtime.ProbeResult
	for _, measure := range []func(context.Context, *runtime.ProbeResult) error{d.probeRead, d.probeDispatch, d.probeSubmit, d.probeFragments} {
		if err := measure(ctx, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// ReadBandwidth measures the bytes a second of a kernel that only reads
// the device's memory.
func (d *Device) ReadBandwidth(ctx context.Context) (float64, error) {
	var r runtime.ProbeResult
	err := d.probeRead(ctx, &r)
	return r.ReadBandwidth, err
}

func (d *Device) probeRead(ctx context.Context, r *runtime.ProbeResult) error {
	size := uint64(probeBytes)
	if d.Info.Type == "cpu" {
		size = probeBytesOnCPU
	}
	for _, h := range d.Info.Heaps {
		if h.DeviceLocal {
			size = min(size, h.Size/4)
		}
	}
	size = max(probeUnit, min(size, d.Info.Limits.AllocationSize)/probeUnit*probeUnit)
	infos := make([]PipelineInfo, len(probeGrids))
	for i := range probeGrids {
		infos[i] = PipelineInfo{Name: "probe_read", Words: probeRead, Constants: map[uint32]uint32{probeReadVectors: uint32(size / 16)}}
	}
	pipelines, err := d.CreatePipelines(infos)
	if err != nil {
		return err
	}
	defer freeAll(pipelines)
	source, err := d.Alloc(int64(size), DeviceLocal)
	if err != nil {
		return err
	}
	defer source.Free()
	lastGrid := probeGrids[len(probeGrids)-1]
	sink, err := d.Alloc(int64(lastGrid)*probeLanes*4, DeviceLocal)
	if err != nil {
		return err
	}
	defer sink.Free()
	// Some drivers leave memory that was never written unmapped.
	if _, err := d.bestTime(ctx, 1, func(c *Commands) { c.Fill(source, 0, int64(size), 1) }); err != nil {
		return err
	}
	for i, groups := range probeGrids {
		t, err := d.bestTime(ctx, probeRepeats, func(c *Commands) {
			c.Bind(pipelines[i])
			c.Push(source.Address(), sink.Address())
			c.Dispatch(groups, 1, 1)
		})
		if err != nil {
			return err
		}
		if b := float64(size) / t.Seconds(); b > r.ReadBandwidth {
			r.ReadBandwidth, r.ReadWorkgroups = b, int(groups)
		}
	}
	return nil
}

func (d *Device) probeDispatch(ctx context.Context, r *runtime.ProbeResult) error {
	pipelines, err := d.CreatePipelines([]PipelineInfo{{Name: "probe_empty", Words: probeEmpty}})
	if err != nil {
		return err
	}
	defer freeAll(pipelines)
	count := probeDispatches
	if d.Info.Type == "cpu" {
		count = probeDispatchesOnCPU
	}
	cost := func(workgroups int, barrier bool) (float64, error) {
		t, err := d.bestTime(ctx, probeRepeats, func(c *Commands) {
			c.Bind(pipelines[0])
			c.Push(0) // never read
			for range count {
				c.Dispatch(uint32(workgroups), 1, 1)
				if barrier {
					c.Barrier(Compute, Compute)
				}
			}
		})
		return t.Seconds() / float64(count), err
	}
	for _, n := range probeWorkgroups {
		p := runtime.DispatchProbe{Workgroups: n}
		if p.Alone, err = cost(n, false); err != nil {
			return err
		}
		if p.Barrier, err = cost(n, true); err != nil {
			return err
		}
		r.Dispatches = append(r.Dispatches, p)
	}
	return nil
}

func (d *Device) probeSubmit(ctx context.Context, r *runtime.ProbeResult) error {
	c, err := d.NewCommands()
	if err != nil {
		return err
	}
	defer c.Free()
	if err := c.End(); err != nil {
		return err
	}
	var total, best time.Duration
	for i := range probeSubmits {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		n, err := d.Submit(0, c)
		if err != nil {
			return err
		}
		if err := d.Wait(n, probeTimeout); err != nil {
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

// probeFragments tries the elements that lanes hold of matrices, on devices that have such.
func (d *Device) probeFragments(_ context.Context, r *runtime.ProbeResult) error {
	if !d.enabled["cooperativeMatrix"] || !d.Info.hasFragments() {
		return nil
	}
	err := d.proveFragments()
	r.Fragments = err == nil
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// bestTime is the shortest time that the device takes for what record records,
// of so many submissions.
func (d *Device) bestTime(ctx context.Context, repeats int, record func(*Commands)) (time.Duration, error) {
	stamps, err := d.NewTimestamps(2)
	if err != nil {
		return 0, err
	}
	defer stamps.Free()
	c, err := d.NewCommands()
	if err != nil {
		return 0, err
	}
	defer c.Free()
	c.ResetTimestamps(stamps, 0, stamps.count)
	c.Timestamp(stamps, 0)
	record(c)
	c.Timestamp(stamps, 1)
	if err := c.End(); err != nil {
		return 0, err
	}
	var best time.Duration
	for i := range repeats {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := d.Submit(0, c)
		if err != nil {
			return 0, err
		}
		if err := d.Wait(n, probeTimeout); err != nil {
			return 0, err
		}
		times, err := stamps.Read()
		if err != nil {
			return 0, err
		}
		if t := times[1]; i == 0 || t < best {
			best = t
		}
	}
	return max(best, 1), nil // a coarse clock may not have moved
}

func freeAll(pipelines []*Pipeline) {
	for _, p := range pipelines {
		p.Free()
	}
}
