package vulkan

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// verbs is a device as the executor takes it.
type verbs struct {
	dev   *Device
	pipes []*Pipeline // of the plan, by index
}

// Driver is the device for the executor.
func Driver(dev *Device) driver.Device { return &verbs{dev: dev} }

func (v *verbs) Info() driver.Info {
	i := &v.dev.Info
	return driver.Info{Backend: "Vulkan", Name: i.Name, Driver: i.Driver + " " + i.DriverInfo,
		Largest: int64(min(i.Limits.AllocationSize, math.MaxInt64)), Host: i.Type == "cpu"}
}

var kinds = [...]MemoryKind{driver.Local: DeviceLocal, driver.Upload: Upload, driver.Readback: Readback}

func (v *verbs) Alloc(bytes int64, kind driver.Kind) (driver.Memory, error) {
	b, err := v.dev.Alloc(bytes, kinds[kind])
	if err != nil {
		return nil, err // not a Memory that holds a nil
	}
	return b, nil
}

// Load makes the pipelines at once: drivers compile them without a look at ctx.
func (v *verbs) Load(ctx context.Context, plan *plans.Plan) error {
	modules := make([][]uint32, len(plan.Modules))
	for i, m := range plan.Modules {
		if m.Format != plans.SPIRV {
			return ir.Unsupported("kernel %s is in format %s, Vulkan takes %s", m.Name, m.Format, plans.SPIRV)
		}
		modules[i] = wordsOf(m.Bytes)
	}
	infos := make([]PipelineInfo, len(plan.Pipelines))
	for i, p := range plan.Pipelines {
		spec := map[uint32]uint32{}
		for _, c := range p.Consts {
			spec[c.ID] = c.Value
		}
		infos[i] = PipelineInfo{Name: plan.Modules[p.Module].Name, Words: modules[p.Module], Constants: spec, SubgroupSize: p.Wave,
			FullSubgroups: p.Wave > 0 && p.Workgroup%p.Wave == 0}
	}
	var err error
	v.pipes, err = v.dev.CreatePipelines(infos)
	return err
}

// wordsOf are the words of SPIR-V, whose header package plans has seen.
func wordsOf(code []byte) []uint32 {
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return words
}

func (v *verbs) Record(stages ...driver.Stage) (driver.Work, error) {
	c, err := v.dev.NewCommands()
	if err != nil {
		return nil, err
	}
	v.resetClocks(c, stages)
	v.record(c, stages)
	if err := c.End(); err != nil {
		c.Free()
		return nil, err
	}
	return c, nil
}

// resetClocks forgets the times that the stages take.
func (v *verbs) resetClocks(c *Commands, stages []driver.Stage) {
	for _, s := range stages {
		if k, ok := s.Stamp.Clock.(*Timestamps); ok {
			c.ResetTimestamps(k, uint32(s.Stamp.Slot), 1)
		}
	}
}

// recorder takes commands, as Commands does.
type recorder interface {
	Barrier(from, to Access)
	Bind(p *Pipeline)
	Push(addresses ...uint64)
	Dispatch(x, y, z uint32)
	Copy(dst *Buffer, dstOffset int64, src *Buffer, srcOffset, size int64)
	Timestamp(t *Timestamps, i int)
}

// record puts a barrier before every stage, the first of them against what was submitted before, and one before a time
// is taken. Where copies write memory that the host reads, one stands at the end.
func (v *verbs) record(c recorder, stages []driver.Stage) {
	before, host := Compute|Transfer, false // what the next barrier waits for
	for i, s := range stages {
		if ways := waysOf(s); ways != 0 {
			if before != 0 {
				c.Barrier(before, ways)
			}
			before = ways
		}
		for _, d := range s.Dispatches {
			c.Bind(v.pipes[d.Pipeline])
			c.Push(d.Arguments...)
			c.Dispatch(d.Grid[0], d.Grid[1], d.Grid[2])
		}
		for _, p := range s.Copies {
			to := p.To.(*Buffer)
			c.Copy(to, p.ToAt, p.From.(*Buffer), p.FromAt, p.Bytes)
			host = host || to.mapped != nil
		}
		if s.Stamp.Clock != nil {
			if before != 0 {
				c.Barrier(before, next(stages[i:]))
				before = 0
			}
			c.Timestamp(s.Stamp.Clock.(*Timestamps), s.Stamp.Slot)
		}
	}
	if host {
		c.Barrier(Transfer, Host)
	}
}

// waysOf is how a stage touches memory.
func waysOf(s driver.Stage) (ways Access) {
	if len(s.Dispatches) > 0 {
		ways |= Compute
	}
	if len(s.Copies) > 0 {
		ways |= Transfer
	}
	return ways
}

// next is how the stages behind the first touch memory next, or what is there does.
func next(stages []driver.Stage) Access {
	for _, s := range stages[1:] {
		if ways := waysOf(s); ways != 0 {
			return ways
		}
	}
	return cmp.Or(waysOf(stages[0]), Compute)
}

func (v *verbs) Submit(works ...driver.Work) (driver.Fence, error) {
	list := make([]*Commands, len(works))
	for i, w := range works {
		list[i] = w.(*Commands)
	}
	n, err := v.dev.Submit(0, list...)
	return driver.Fence(n), err
}

func (v *verbs) Wait(f driver.Fence, timeout time.Duration) error {
	if timeout <= 0 { // cheaper than to wait
		done, err := v.dev.Completed()
		if err == nil && done < uint64(f) {
			return driver.ErrTimeout
		}
		return err
	}
	err := v.dev.Wait(uint64(f), timeout)
	if errors.Is(err, vk.Timeout) {
		return driver.ErrTimeout
	}
	return err
}

func (v *verbs) Clock(slots int) (driver.Clock, error) {
	t, err := v.dev.NewTimestamps(slots)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (v *verbs) Close() { v.dev.Close() }
