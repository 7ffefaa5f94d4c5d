package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Probe is a device as `zincrun probe --json` found and measured it. Sizes are in
// bytes, times in seconds.
type Probe struct {
	Backend  string `json:"backend"` // "" : Vulkan
	Name     string `json:"name"`
	Type     string `json:"type"` // discrete, integrated, virtual, cpu or other
	VendorID uint32 `json:"vendor_id"`
	DeviceID uint32 `json:"device_id"`
	Units    int    `json:"units"` // 0 where the driver does not tell
	// IntegerDot: dot products of four packed signed bytes are instructions.
	IntegerDot bool `json:"integer_dot"`
	Heaps      []struct {
		Size        int64 `json:"size"`
		Free        int64 `json:"free"` // what a process could take of it; 0 where the driver does not tell
		DeviceLocal bool  `json:"device_local"`
	} `json:"heaps"`
	Subgroup struct {
		Default    int      `json:"default"`
		Min        int      `json:"min"`
		Max        int      `json:"max"`
		Operations []string `json:"operations"`
	} `json:"subgroup"`
	Limits struct {
		WorkgroupSize        [3]int64 `json:"workgroup_size"`
		WorkgroupInvocations int64    `json:"workgroup_invocations"`
		SharedMemory         int64    `json:"shared_memory"`
		PushConstants        int64    `json:"push_constants"`
	} `json:"limits"`
	Features map[string]bool `json:"features"`
	Matrices []struct {
		M      int    `json:"m"`
		N      int    `json:"n"`
		K      int    `json:"k"`
		A      string `json:"a"`
		B      string `json:"b"`
		C      string `json:"c"`
		Result string `json:"result"`
	} `json:"cooperative_matrix"`
	Extensions []string `json:"extensions"`
	cudaProbe
	Measured *measured `json:"probe"` // nil: listed, not measured
}

type measured struct {
	Bandwidth  float64 `json:"read_bandwidth"` // bytes a second
	Dispatches []struct {
		Workgroups int     `json:"workgroups"`
		Barrier    float64 `json:"barrier"` // a dispatch and the barrier behind it
	} `json:"dispatches"`
	// Fragments: lanes were seen to hold the elements of matrices that Target.Fragments says.
	Fragments bool `json:"fragments"`
}

// MaxProbe bounds the file: a device takes about 10 kB.
const MaxProbe = 1 << 20

// ProbePrefix begins the names of targets that are made of a probe; the name of the
// device follows.
const ProbePrefix = "probe:"

// ParseProbe reads the output of `zincrun probe --json`, in which one device must have
// been measured, and checks every figure that a target needs.
func ParseProbe(data []byte) (*Probe, error) {
	if len(data) > MaxProbe {
		return nil, fmt.Errorf("not a probe: more than %d bytes", MaxProbe)
	}
	var all []Probe
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&all); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the text ends too early")
		}
		return nil, fmt.Errorf("not what `zincrun probe --json` prints: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not what `zincrun probe --json` prints: text after the list of devices")
	}
	all = slices.DeleteFunc(all, func(p Probe) bool { return p.Measured == nil })
	if len(all) != 1 {
		return nil, fmt.Errorf("%d devices were measured, want one: `zincrun probe --device vulkan:0 --json`", len(all))
	}
	if err := all[0].check(); err != nil {
		return nil, err
	}
	return &all[0], nil
}

// check fails for figures that are missing or that no device has.
func (p *Probe) check() error {
	if p.Name == "" || len(p.Name) > 256 || strings.ContainsFunc(p.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("field name: %.40q is not the name of a device", p.Name)
	}
	if err := p.ranges([]figure{{"units", float64(p.Units), 0, 1 << 16}}); err != nil {
		return err
	}
	via, ok := probed[p.Backend]
	if !ok {
		return fmt.Errorf("device %s: field backend: devices are not probed through %.20q", p.Name, p.Backend)
	}
	if err := via.check(p); err != nil {
		return err
	}
	return p.checkMeasured()
}

// probing is how the probe of one backend is read.
type probing struct {
	check  func(p *Probe) error
	target func(p *Probe) *Target
	free   func(p *Probe) int64
	has    func(p *Probe) plans.Capabilities
}

// probed has the backends that devices are probed through, by their names in probes.
var probed = map[string]probing{
	"":           {(*Probe).checkVulkan, (*Probe).vulkanTarget, (*Probe).freeHeap, (*Probe).vulkanCapabilities},
	plans.Vulkan: {(*Probe).checkVulkan, (*Probe).vulkanTarget, (*Probe).freeHeap, (*Probe).vulkanCapabilities},
	plans.CUDA:   {(*Probe).checkCUDA, (*Probe).cudaTarget, (*Probe).cudaFree, (*Probe).cudaCapabilities},
}

func (p *Probe) checkMeasured() error {
	if err := p.ranges([]figure{{"probe.read_bandwidth", p.Measured.Bandwidth, 1e6, 1e15}}); err != nil {
		return err
	}
	if len(p.Measured.Dispatches) == 0 {
		return fmt.Errorf("device %s: field probe.dispatches is missing or empty", p.Name)
	}
	for i, d := range p.Measured.Dispatches {
		if d.Workgroups < 1 || !(d.Barrier >= 1e-9 && d.Barrier <= 1) {
			return fmt.Errorf("device %s: field probe.dispatches[%d] is out of range: %d workgroups, %g s", p.Name, i, d.Workgroups, d.Barrier)
		}
	}
	return nil
}

// figure is a field with the values that it may have.
type figure struct {
	name             string
	value, low, high float64
}

func (p *Probe) ranges(figures []figure) error {
	for _, f := range figures {
		if !(f.value >= f.low && f.value <= f.high) {
			return fmt.Errorf("device %s: field %s is missing or out of range: %g, want %g to %g", p.Name, f.name, f.value, f.low, f.high)
		}
	}
	return nil
}

func (p *Probe) checkVulkan() error {
	if err := p.ranges([]figure{
		{"subgroup.default", float64(p.Subgroup.Default), 1, 128},
		{"subgroup.min", float64(p.Subgroup.Min), 1, float64(p.Subgroup.Default)},
		{"subgroup.max", float64(p.Subgroup.Max), float64(p.Subgroup.Default), 128},
		{"limits.workgroup_size", float64(p.Limits.WorkgroupSize[0]), float64(p.Subgroup.Max), 1 << 16},
		{"limits.workgroup_invocations", float64(p.Limits.WorkgroupInvocations), float64(p.Subgroup.Max), 1 << 16},
		{"limits.shared_memory", float64(p.Limits.SharedMemory), 1, 1 << 24},
	}); err != nil {
		return err
	}
	for _, n := range []int{p.Subgroup.Min, p.Subgroup.Default, p.Subgroup.Max} {
		if bits.OnesCount(uint(n)) != 1 {
			return fmt.Errorf("device %s: field subgroup: %d is not a power of two", p.Name, n)
		}
	}
	for i, h := range p.Heaps {
		if h.Size < 0 || h.Size > 1<<50 {
			return fmt.Errorf("device %s: field heaps[%d].size is out of range: %d", p.Name, i, h.Size)
		}
	}
	if p.Features == nil {
		return fmt.Errorf("device %s: field features is missing", p.Name)
	}
	return nil
}

// Target makes a target of a probe. Figures that no probe gives come from the published
// target of the same architecture, else from a related one, or stay unknown.
func (p *Probe) Target() *Target { return probed[p.Backend].target(p) }

func (p *Probe) vulkanTarget() *Target {
	base, chip, exact := p.base()
	t := *base
	t.Probe = p.asJSON()
	t.Name, t.Doc, t.Vendor, t.Backend = ProbePrefix+p.Name, "as probed", p.VendorID, plans.Vulkan
	t.Wave = p.wave(base.Wave)
	t.Waves = slices.DeleteFunc(slices.Clone(t.Waves), func(wave int) bool { return p.wave(wave) != wave })
	t.Workgroup = int(min(p.Limits.WorkgroupInvocations, p.Limits.WorkgroupSize[0]))
	t.Shared = int(p.Limits.SharedMemory)
	t.Memory = p.memory()
	if p.Units > 0 {
		t.Units = p.Units
	}
	switch {
	case exact:
		t.Arch = base.Name
		scale := float64(t.Units) / float64(base.Units)
		t.FLOPs, t.MatrixFLOPs = base.FLOPs*scale, base.MatrixFLOPs*scale
	case chip != nil:
		if p.Units == 0 {
			t.Units = chip.Arch.Units
		}
		scale := float64(t.Units) / float64(chip.Arch.Units)
		t.Arch, t.FLOPs, t.MatrixFLOPs = chip.Arch.Name, chip.Arch.FLOPs*scale, chip.Arch.MatrixFLOPs*scale
	}
	if t.Matrix = p.matrix(MatrixShape{Rows: 16, Cols: 16, Depth: 16}); t.Matrix == (MatrixShape{}) {
		t.MatrixFLOPs = 0
	}
	// Where the probe did not try it, what lanes hold is known of the published target's chip only.
	t.Fragments = (p.Measured.Fragments || t.Fragments && exact) && p.matrix(MatrixShape{Rows: 16, Cols: 8, Depth: 16}) != (MatrixShape{})
	t.Dot = p.IntegerDot && p.Features["shaderIntegerDotProduct"]
	t.Bandwidth, t.Stage = p.Measured.Bandwidth, p.stage(t.Units)
	return &t
}

// asJSON returns what ParseProbe reads, for plans.
func (p *Probe) asJSON() []byte {
	data, err := json.Marshal([]*Probe{p})
	if err != nil {
		panic(err) // it was read from JSON
	}
	return data
}

// OfPlan returns the target of a plan.
func OfPlan(h *plans.Header) (*Target, error) {
	if len(h.Probe) == 0 {
		return Lookup(h.Target)
	}
	p, err := ParseProbe(h.Probe)
	if err != nil {
		return nil, fmt.Errorf("the plan's probe of target %s: %w", h.Target, err)
	}
	t := p.Target()
	if t.Name != h.Target {
		return nil, fmt.Errorf("the plan is for target %s, its probe is of %s", h.Target, t.Name)
	}
	return t, nil
}

// base is the published target that has the device's architecture, or else its kin.
func (p *Probe) base() (base *Target, chip *gpu.Chip, exact bool) {
	chip = gpu.Find(p.VendorID, p.DeviceID)
	if chip == nil {
		return kinOf(p.VendorID, ""), nil, false
	}
	for _, t := range targets {
		if t.Name == chip.Arch.Name {
			return t, chip, true
		}
	}
	return kinOf(p.VendorID, chip.Arch.Name), chip, false
}

// wave is the subgroup size to ask for: the wanted one where the device has it.
func (p *Probe) wave(wanted int) int {
	if p.Features["subgroupSizeControl"] && p.Subgroup.Min <= wanted && wanted <= p.Subgroup.Max {
		return wanted
	}
	return p.Subgroup.Default
}

// memory is that of the device's own, or 0 where it is the host's.
func (p *Probe) memory() int64 {
	size := int64(0)
	for _, h := range p.Heaps {
		if h.DeviceLocal && p.Type == "discrete" {
			size = max(size, h.Size)
		}
	}
	return size
}

// Free is the number of bytes of the largest heap of the device's own memory that a process could allocate
// at the time of the probe.
func (p *Probe) Free() int64 { return probed[p.Backend].free(p) }

func (p *Probe) freeHeap() int64 {
	size, free := int64(0), int64(0)
	for _, h := range p.Heaps {
		if h.DeviceLocal && h.Size > size {
			size, free = h.Size, h.Free
		}
	}
	if free == 0 {
		return size
	}
	return min(size, free)
}

// matrix is the shape if the device multiplies matrices of it.
func (p *Probe) matrix(shape MatrixShape) MatrixShape {
	for _, m := range p.Matrices {
		if (MatrixShape{Rows: m.M, Cols: m.N, Depth: m.K}) == shape && m.A == "f16" && m.B == "f16" && m.C == "f32" && m.Result == "f32" && p.Features["cooperativeMatrix"] {
			return shape
		}
	}
	return MatrixShape{}
}

// stage is the time of a dispatch and its barrier, of about one workgroup a unit.
func (p *Probe) stage(units int) float64 {
	distance := func(workgroups int) float64 { return math.Abs(math.Log(float64(workgroups) / float64(units))) }
	best := p.Measured.Dispatches[0]
	for _, d := range p.Measured.Dispatches {
		if distance(d.Workgroups) < distance(best.Workgroups) {
			best = d
		}
	}
	return best.Barrier
}

func (p *Probe) vulkanCapabilities() plans.Capabilities {
	return plans.Capabilities{Vulkan: plans.VulkanCapabilities{
		Features: p.Features, Extensions: p.Extensions, SubgroupOps: p.Subgroup.Operations, Subgroup: [2]int{p.Subgroup.Min, p.Subgroup.Max},
		PushConstants: p.Limits.PushConstants, Workgroup: p.Limits.WorkgroupInvocations, Shared: p.Limits.SharedMemory,
	}}
}

// Check fails if the device lacks what a plan requires.
func (p *Probe) Check(r plans.Requirements) error {
	has := probed[p.Backend].has(p)
	if what := r.Missing(&has); what != "" {
		return ir.Unsupported("device %s %s", p.Name, what)
	}
	return nil
}
