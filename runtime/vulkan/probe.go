package vulkan

import (
	"encoding/binary"
	"time"
)

// ProbeKernels are the kernels that Probe measures with.
type ProbeKernels struct {
	// Empty does nothing, in workgroups of any size.
	Empty PipelineInfo
	// Read makes a kernel that, on a grid of that many workgroups, reads that
	// many vectors of 16 bytes at the first address of the argument block, each
	// once, and may write at the second one up to 4 bytes an invocation.
	Read func(vectors, workgroups uint32) PipelineInfo
}

// ProbeResult is what Probe measures. Times are in seconds.
type ProbeResult struct {
	ReadBandwidth   float64 `json:"read_bandwidth"`  // bytes a second, of the best grid
	ReadWorkgroups  int     `json:"read_workgroups"` // that grid
	Dispatch        float64 `json:"dispatch"`        // a one-workgroup dispatch that waits for nothing
	DispatchBarrier float64 `json:"dispatch_barrier"`
	SubmitBest      float64 `json:"submit_best"` // an empty submission and the wait for it
	SubmitMean      float64 `json:"submit_mean"`
}

const (
	probeBytes      = 1 << 30   // read at a time: far more than any cache holds
	probeBytesOnCPU = 256 << 20 // the same, where it takes long
	probeRepeats    = 5
	probeDispatches = 1000
	probeSubmits    = 200
	probeTimeout    = 30 * time.Second
)

// probeGrids are tried for the read bandwidth.
var probeGrids = []uint32{64, 256, 1024, 4096}

// Probe measures what the cost model needs to know of a device.
func (d *Device) Probe(k ProbeKernels) (ProbeResult, error) {
	var r ProbeResult
	for _, measure := range []func(ProbeKernels, *ProbeResult) error{d.probeRead, d.probeDispatch, d.probeSubmit} {
		if err := measure(k, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (d *Device) probeRead(k ProbeKernels, r *ProbeResult) error {
	size := uint64(probeBytes)
	if d.Info.Type == "cpu" {
		size = probeBytesOnCPU
	}
	for _, h := range d.Info.Heaps {
		if h.DeviceLocal {
			size = min(size, h.Size/4)
		}
	}
	size = min(size, d.Info.Limits.AllocationSize) &^ 15
	infos := make([]PipelineInfo, len(probeGrids))
	for i, groups := range probeGrids {
		infos[i] = k.Read(uint32(size/16), groups)
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
	sink, err := d.Alloc(int64(lastGrid)*int64(d.Info.Limits.WorkgroupInvocations)*4, DeviceLocal)
	if err != nil {
		return err
	}
	defer sink.Free()
	args, err := d.Alloc(2*addressSize, Upload)
	if err != nil {
		return err
	}
	defer args.Free()
	binary.LittleEndian.PutUint64(args.Bytes(), source.Address())
	binary.LittleEndian.PutUint64(args.Bytes()[addressSize:], sink.Address())
	// Some drivers leave memory that was never written unmapped.
	if _, err := d.bestTime(1, func(c *Commands) { c.Fill(source, 0, int64(size), 1) }); err != nil {
		return err
	}
	for i, groups := range probeGrids {
		t, err := d.bestTime(probeRepeats, func(c *Commands) {
			c.Bind(pipelines[i])
			c.PushAddress(args.Address())
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

func (d *Device) probeDispatch(k ProbeKernels, r *ProbeResult) error {
	pipelines, err := d.CreatePipelines([]PipelineInfo{k.Empty})
	if err != nil {
		return err
	}
	defer freeAll(pipelines)
	for _, row := range []struct {
		barrier bool
		out     *float64
	}{{false, &r.Dispatch}, {true, &r.DispatchBarrier}} {
		t, err := d.bestTime(probeRepeats, func(c *Commands) {
			c.Bind(pipelines[0])
			for range probeDispatches {
				c.Dispatch(1, 1, 1)
				if row.barrier {
					c.Barrier(Compute, Compute)
				}
			}
		})
		if err != nil {
			return err
		}
		*row.out = t.Seconds() / probeDispatches
	}
	return nil
}

func (d *Device) probeSubmit(_ ProbeKernels, r *ProbeResult) error {
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

// bestTime is the shortest time that the device takes for what record records,
// of so many submissions.
func (d *Device) bestTime(repeats int, record func(*Commands)) (time.Duration, error) {
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
	c.ResetTimestamps(stamps)
	c.Timestamp(stamps, 0)
	record(c)
	c.Timestamp(stamps, 1)
	if err := c.End(); err != nil {
		return 0, err
	}
	var best time.Duration
	for i := range repeats {
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
