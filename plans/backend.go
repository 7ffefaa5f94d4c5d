package plans

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
)

// The backends: what runs a plan.
const (
	Host   = "host"   // the oracle, in Go: no kernels
	Vulkan = "vulkan" // any Vulkan driver
	CUDA   = "cuda"   // NVIDIA's driver
	CPU    = "cpu"    // machine code for the processor
)

// Requirements are what a device must offer: a part that all backends share, and the part of the
// plan's backend.
type Requirements struct {
	Backend string
	Memory  int64 // bytes of device memory: weights + tables + KV + state + arena + io
	Vulkan  *VulkanRequirements
	CPU     *CPURequirements
	CUDA    *CUDARequirements
}

// Capabilities are what a device offers, as far as plans can require it. A limit of 0 is unknown.
type Capabilities struct {
	Memory int64 // bytes of its own
	Vulkan VulkanCapabilities
	CPU    CPUCapabilities
	CUDA   CUDACapabilities
}

// need is what one backend requires.
type need interface {
	// valid fails if a figure is out of range.
	valid() error
	// missing says what a device lacks, such as "lacks the feature shaderInt8"; nothing if it has all.
	missing(c *Capabilities) string
	// check finds pipelines and dispatches that need more: rule "requirements".
	check(c *checker)
	// describe adds a row for each field.
	describe(t *table.Table)
}

// backends has a row for each backend that plans may be for.
var backends = []backend{
	{name: Host, queues: 1},
	{name: Vulkan, part: func(r *Requirements) need { return some(r.Vulkan) }, queues: 1},
	{name: CPU, part: func(r *Requirements) need { return some(r.CPU) }, queues: 1, reference: true, stops: true, rows16: true},
	{name: CUDA, part: func(r *Requirements) need { return some(r.CUDA) }, queues: ir.Queues, early: func(r *Requirements) bool { return r.CUDA.Arch >= earlyArch }},
}

type backend struct {
	name      string
	part      func(r *Requirements) need // of requirements; nil where there is none
	queues    int                        // that dispatches may be launched on
	early     func(r *Requirements) bool // whether dispatches may begin early; nil: never
	reference bool                       // plans run on devices of all speeds: predicted times are those of a reference
	stops     bool                       // a step ends in its middle if asked to, and no driver takes a long one for hung
	rows16    bool                       // weights may have layout.Rows16
}

// backendOf is the row of a backend; of one that is unknown, a row without anything.
func backendOf(name string) backend {
	if i := slices.IndexFunc(backends, func(b backend) bool { return b.name == name }); i >= 0 {
		return backends[i]
	}
	return backend{}
}

// OfReference reports whether predicted times are those of a reference, not of the device that runs the plan.
func (p *Plan) OfReference() bool { return backendOf(p.Require.Backend).reference }

// StopsInStep reports whether a step of the plan ends in its middle if it is asked to, and may take as long as it
// likes: no driver takes it for hung.
func (p *Plan) StopsInStep() bool { return backendOf(p.Require.Backend).stops }

// Queues is how many queues the dispatches of a backend may be launched on; 0 of one that is unknown.
func Queues(name string) int { return backendOf(name).queues }

// some is p as a need, nil for nil.
func some[P interface {
	comparable
	need
}](p P) need {
	var none P
	if p == none {
		return nil
	}
	return p
}

// parts are those that r has, whatever its backend.
func (r *Requirements) parts() []need {
	var list []need
	for _, b := range backends {
		if b.part == nil {
			continue
		}
		if p := b.part(r); p != nil {
			list = append(list, p)
		}
	}
	return list
}

// Missing says which requirement a device lacks, or nothing if it has all. Compilers call it
// with a probe, runtimes with the device.
func (r *Requirements) Missing(c *Capabilities) string {
	for _, p := range r.parts() {
		if what := p.missing(c); what != "" {
			return what
		}
	}
	return exceeded(limit{"bytes of device memory", r.Memory, c.Memory})
}

// limit is what is needed of what a device has, 0 if that is not known.
type limit struct {
	what       string
	need, have int64
}

// exceeded says which limit is too low, nothing if none is.
func exceeded(limits ...limit) string {
	for _, l := range limits {
		if l.have != 0 && l.need > l.have {
			return fmt.Sprintf("has %d %s, %d are needed", l.have, l.what, l.need)
		}
	}
	return ""
}

func validateRequirements(p *Plan) error {
	r := &p.Require
	known := false
	for _, b := range backends {
		known = known || b.name == r.Backend
		has := b.part != nil && b.part(r) != nil
		if want := b.part != nil && b.name == r.Backend; has != want {
			return fmt.Errorf("for backend %q, requirements of %s: %t, want %t", r.Backend, b.name, has, want)
		}
	}
	switch {
	case !known:
		return fmt.Errorf("unknown backend %q", r.Backend)
	case p.IsHost() != (len(p.Pipelines) == 0):
		return fmt.Errorf("%d pipelines for backend %q", len(p.Pipelines), r.Backend)
	case r.Memory < 0:
		return fmt.Errorf("memory %d out of range", r.Memory)
	}
	for _, need := range r.parts() {
		if err := need.valid(); err != nil {
			return err
		}
	}
	return nil
}

// checkRequirements holds what pipelines and dispatches need against what the plan requires.
func checkRequirements(c *checker) {
	for _, p := range c.plan.Require.parts() {
		p.check(c)
	}
}

func requirementsTable(p *Plan) *table.Table {
	t := &table.Table{Title: "requirements", Columns: []string{"field", "value"}}
	t.Add("backend", p.Require.Backend)
	for _, need := range p.Require.parts() {
		need.describe(t)
	}
	t.Add("device memory", table.Bytes(p.Require.Memory))
	return t
}
