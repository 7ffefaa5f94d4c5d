package vulkan

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
	"github.com/zincc-dev/zincc/runtime/internal/spare"
	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// poll is how long the host waits for the device before it looks whether the
// caller has lost interest.
const poll = 100 * time.Millisecond

// settleTimeout bounds the wait for a submission that was given up.
const settleTimeout = time.Minute

// Executor holds a plan's weights and state on a device and replays its entries.
// Command buffers are recorded once, when the executor is made.
type Executor struct {
	dev     *Device
	plan    *plans.Plan
	memory  *memory
	pipes   []*Pipeline // of the plan, by index
	entries map[string]*Commands
	step    *Commands                // copies the step block to the device
	fetch   *Commands                // copies the step block and the chosen ids back
	dirty   bool                     // the host has written to its copy of the step block
	took    map[replay]time.Duration // the last time
	logits  map[string]*Commands
	spare   spare.Pool[*Buffer] // of states that were freed
	givenUp uint64              // the submission that nobody waited for to its end; 0 without one
}

// replay is an entry and how often it runs in a row.
type replay struct {
	entry string
	times int
}

// NewExecutor opens the device of that index, or with -1 the first by
// rank that meets the plan's requirements. progress, if not nil, is
// called with the number of bytes of weights that have arrived.
func NewExecutor(ctx context.Context, index int, plan *plans.Plan, src *plans.Source, progress func(int64)) (*Executor, error) {
	need := plan.Require.Vulkan
	if need == nil {
		return nil, ir.Unsupported("the plan is for backend %s, not for Vulkan", plan.Require.Backend)
	}
	if index < 0 {
		var err error
		if index, err = choose(&plan.Require); err != nil {
			return nil, err
		}
	}
	dev, err := Open(index, *need)
	if err != nil {
		return nil, err
	}
	if err := dev.Info.Meets(&plan.Require); err != nil {
		dev.Close()
		return nil, err
	}
	x := &Executor{dev: dev, plan: plan, entries: map[string]*Commands{}, logits: map[string]*Commands{}, took: map[replay]time.Duration{}, spare: newSpare(dev, plan)}
	if err := x.prepare(ctx, src, progress); err != nil {
		dev.Close()
		return nil, err
	}
	return x, nil
}

// choose returns the best device that meets need, else what the best device lacks.
func choose(need *plans.Requirements) (int, error) {
	all, err := Enumerate()
	if err != nil {
		return 0, err
	}
	var first error
	for _, d := range Ranked(all) {
		err := d.Meets(need)
		if err == nil {
			return d.Index, nil
		}
		first = cmp.Or(first, err)
	}
	return 0, cmp.Or(first, ir.Unsupported("there is no Vulkan device"))
}

func (x *Executor) prepare(ctx context.Context, src *plans.Source, progress func(int64)) error {
	var err error
	if x.plan.Require.Vulkan.Fragments {
		if err := x.dev.proveFragments(); err != nil {
			return err
		}
	}
	if err = x.load(ctx, src, progress); err != nil {
		return err
	}
	for i := range x.plan.Entries {
		e := &x.plan.Entries[i]
		if x.entries[e.Name], err = x.record(e); err != nil {
			return err
		}
	}
	return x.recordCopies()
}

// load compiles pipelines while it fills the memory: the one waits for processors, the other
// for the disk.
func (x *Executor) load(ctx context.Context, src *plans.Source, progress func(int64)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var compiling sync.WaitGroup
	compiling.Go(func() {
		var err error
		if x.pipes, err = x.pipelines(); err != nil {
			stop(err)
		}
	})
	var err error
	x.memory, err = newMemory(ctx, x.dev, x.plan, src, progress)
	compiling.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (x *Executor) pipelines() ([]*Pipeline, error) {
	modules := make([][]uint32, len(x.plan.Modules))
	for i, m := range x.plan.Modules {
		if m.Format != plans.SPIRV {
			return nil, ir.Unsupported("kernel %s is in format %s, Vulkan takes %s", m.Name, m.Format, plans.SPIRV)
		}
		modules[i] = wordsOf(m.Bytes)
	}
	infos := make([]PipelineInfo, len(x.plan.Pipelines))
	for i, p := range x.plan.Pipelines {
		spec := map[uint32]uint32{}
		for _, c := range p.Consts {
			spec[c.ID] = c.Value
		}
		infos[i] = PipelineInfo{Name: x.plan.Modules[p.Module].Name, Words: modules[p.Module], Constants: spec, SubgroupSize: p.Wave,
			FullSubgroups: p.Wave > 0 && p.Workgroup%p.Wave == 0}
	}
	return x.dev.CreatePipelines(infos)
}

// wordsOf are the words of SPIR-V, whose header package plans has seen.
func wordsOf(code []byte) []uint32 {
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return words
}

// record makes the command buffer of an entry: a barrier wherever the step changes, and
// one against what was submitted before.
func (x *Executor) record(e *plans.Entry) (*Commands, error) {
	c, err := x.dev.NewCommands()
	if err != nil {
		return nil, err
	}
	x.recordEntry(c, e)
	return c, c.End()
}

// recorder takes commands, as Commands does.
type recorder interface {
	Barrier(from, to Access)
	Bind(p *Pipeline)
	Push(addresses ...uint64)
	Dispatch(x, y, z uint32)
	Copy(dst *Buffer, dstOffset int64, src *Buffer, srcOffset, size int64)
}

func (x *Executor) recordEntry(c recorder, e *plans.Entry) {
	c.Barrier(Compute|Transfer, Compute)
	arguments, step := x.memory.arguments[e.Name], 0
	for i, d := range e.Dispatches {
		if d.Step != step {
			c.Barrier(Compute, Compute)
			step = d.Step
		}
		c.Bind(x.pipes[d.Pipeline])
		c.Push(arguments[i]...)
		c.Dispatch(uint32(d.Grid[0]), uint32(d.Grid[1]), uint32(d.Grid[2]))
	}
}

// recordCopies makes the command buffers that move the step block to the device
// and results back.
func (x *Executor) recordCopies() error {
	var err error
	if x.step, err = x.dev.NewCommands(); err != nil {
		return err
	}
	x.recordStep(x.step)
	if err = x.step.End(); err != nil {
		return err
	}
	for _, e := range x.plan.Entries {
		c, err := x.dev.NewCommands()
		if err != nil {
			return err
		}
		x.recordLogits(c, e.Logits)
		if err := c.End(); err != nil {
			return err
		}
		x.logits[e.Logits] = c
	}
	if x.fetch, err = x.dev.NewCommands(); err != nil {
		return err
	}
	x.recordFetch(x.fetch)
	return x.fetch.End()
}

func (x *Executor) recordStep(c recorder) {
	m := x.memory
	c.Barrier(Compute|Transfer|Host, Transfer)
	c.Copy(m.step, 0, m.stepHost, 0, m.stepHost.Size())
}

func (x *Executor) recordLogits(c recorder, region string) {
	r := x.memory.regions[region]
	c.Barrier(Compute, Transfer)
	c.Copy(x.memory.back, r.back, r.buf, r.at, r.bytes)
	c.Barrier(Transfer, Host)
}

// recordFetch reads back the step block and the chosen ids.
func (x *Executor) recordFetch(c recorder) {
	m := x.memory
	c.Barrier(Compute, Transfer)
	c.Copy(m.back, 0, m.step, 0, m.step.Size())
	for _, e := range x.plan.Entries {
		if e.Next != "" {
			r := m.regions[e.Next]
			c.Copy(m.back, r.back, r.buf, r.at, r.bytes)
		}
	}
	c.Barrier(Transfer, Host)
}

// Device names the device.
func (x *Executor) Device() string { return x.dev.Info.Name }

// Underlying is the open device.
func (x *Executor) Underlying() *Device { return x.dev }

// Write sets the first values of a region of the step block.
func (x *Executor) Write(name string, data []int32) error {
	r, ok := x.memory.regions[name]
	if !ok || r.buf != x.memory.step || int64(4*len(data)) > r.bytes {
		return fmt.Errorf("%d values do not fit region %q of the step block", len(data), name)
	}
	if err := x.settle(); err != nil {
		return err
	}
	copy(contents.Numbers[int32](x.memory.stepHost.Bytes()[r.at:]), data)
	x.dirty = true
	return nil
}

// Run replays the entry `times` times in a row, in one submission.
func (x *Executor) Run(ctx context.Context, entry *plans.Entry, times int) error {
	var cmds []*Commands
	if x.dirty {
		cmds = append(cmds, x.step)
	}
	for range times {
		cmds = append(cmds, x.entries[entry.Name])
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.settle(); err != nil {
		return err
	}
	x.dirty = false
	this, began := replay{entry.Name, times}, time.Now()
	n, err := x.dev.Submit(0, append(cmds, x.fetch)...)
	if err != nil {
		return err
	}
	if err := x.watch(n, x.took[this]); err != nil {
		return err
	}
	if err := x.wait(ctx, n); err != nil {
		return err
	}
	x.took[this] = time.Since(began)
	return nil
}

func (x *Executor) submit(ctx context.Context, cmds ...*Commands) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.settle(); err != nil {
		return err
	}
	n, err := x.dev.Submit(0, cmds...)
	if err != nil {
		return err
	}
	return x.wait(ctx, n)
}

// watch sleeps for most of the time that a submission is expected to take, then looks
// for its end all the time, for as long again: the end is seen some 40 us sooner than
// by waiting for it, which counts for prompts and small models. A device that computes
// on the host's processors would lose one to that.
func (x *Executor) watch(n uint64, expected time.Duration) error {
	if expected == 0 || expected > poll || x.dev.Info.Type == "cpu" {
		return nil
	}
	deadline := time.Now().Add(2 * expected)
	if err := x.dev.Wait(n, expected*9/10); !errors.Is(err, vk.Timeout) {
		return err
	}
	for time.Now().Before(deadline) {
		if done, err := x.dev.Completed(); err != nil || done >= n {
			return err
		}
	}
	return nil
}

// wait waits for a submission until the caller loses interest; it is given up then.
func (x *Executor) wait(ctx context.Context, n uint64) error {
	for {
		err := x.dev.Wait(n, poll)
		if !errors.Is(err, vk.Timeout) {
			return err
		}
		if ctx.Err() != nil {
			x.givenUp = n
			return ctx.Err()
		}
	}
}

// settle waits for a submission that was given up: it uses the step block, which the next one
// writes anew.
func (x *Executor) settle() error {
	if x.givenUp == 0 {
		return nil
	}
	if err := x.dev.Wait(x.givenUp, settleTimeout); err != nil {
		return err
	}
	x.givenUp = 0
	return nil
}

// Ints returns a region of the step block or the ids that an entry chose, as
// they were after the last run.
func (x *Executor) Ints(name string) ([]int32, error) {
	b, err := x.bytes(name)
	return contents.Numbers[int32](b), err
}

// Floats returns the logits of an entry.
func (x *Executor) Floats(name string) ([]float32, error) {
	b, err := x.bytes(name)
	return contents.Numbers[float32](b), err
}

func (x *Executor) bytes(name string) ([]byte, error) {
	r, ok := x.memory.regions[name]
	if !ok || r.back < 0 {
		return nil, fmt.Errorf("plan has no region %q", name)
	}
	if c := x.logits[name]; c != nil {
		if err := x.submit(context.Background(), c); err != nil {
			return nil, err
		}
	}
	return x.memory.back.Bytes()[r.back : r.back+r.bytes], nil
}

// Close frees everything on the device.
func (x *Executor) Close() error {
	x.dev.Close()
	return nil
}

// Backend names what runs the kernels.
func (x *Executor) Backend() string { return "Vulkan" }

// Driver names the driver and its version.
func (x *Executor) Driver() string { return x.dev.Info.Driver + " " + x.dev.Info.DriverInfo }

// ReadBandwidth calls Device.ReadBandwidth.
func (x *Executor) ReadBandwidth(ctx context.Context) (float64, error) {
	return x.dev.ReadBandwidth(ctx)
}
