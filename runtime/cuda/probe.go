package cuda

import (
	"context"
	"time"
)

const (
	probeRepeats = 5
	probeLanes   = 256
	probeBytes   = 16 * probeReadVectors
)

// probeGrids are tried for the read bandwidth.
var probeGrids = []uint32{256, 512, 1024, 4096}

// readBandwidth is that of the best grid.
func (d *Device) readBandwidth(ctx context.Context) (float64, error) {
	f, err := d.function("probe_read", "kernel", probeLanes, []byte(probeRead))
	if err != nil {
		return 0, err
	}
	source, err := d.alloc(probeBytes)
	if err != nil {
		return 0, err
	}
	defer source.free()
	sink, err := d.alloc(int64(probeGrids[len(probeGrids)-1]) * probeLanes * 4)
	if err != nil {
		return 0, err
	}
	defer sink.free()
	if err := d.call(cuMemsetD32Async, uintptr(source.address), 1, probeBytes/4, d.stream); err != nil {
		return 0, d.errorf("%w", err)
	}
	best := 0.0
	for _, grid := range probeGrids {
		t, err := d.bestTime(ctx, func() error {
			return f.launch(d, d.stream, [3]uint32{grid, 1, 1}, []uint64{source.address, sink.address}, false)
		})
		if err != nil {
			return 0, d.errorf("%w", err)
		}
		best = max(best, probeBytes/t.Seconds())
	}
	return best, nil
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
