// Package device opens the executor that a plan runs on.
package device

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/internal/private"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/trust"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cpu"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// opener makes an executor of a plan on the device with that index, or with -1 on the first that
// meets the plan's requirements.
type opener func(ctx context.Context, index int, plan *plans.Plan, src *plans.Source, o Options) (runtime.Executor, error)

// Options say how to open a device; the zero value will do.
type Options struct {
	// Progress is called with the number of bytes as weights arrive on the device.
	Progress func(int64)
	// Keep is a folder in which a processor's weights are kept in their layout in memory, so that it need not be
	// computed again; "": they are not kept. With Keep, Open refuses other devices that are named.
	Keep string
	// Said gets a line when weights are kept or cannot be kept, when kept ones are refused, and when what a driver
	// compiles cannot be kept.
	Said func(line string)
}

// backend is what this program runs plans with. The name is also that of its devices; those of
// GPUs are name:I, too.
type backend struct {
	name string
	gpu  bool // numbered; the driver compiles the kernels
	open opener
}

// backends has a row for each, the fastest first.
var backends = []backend{
	{plans.CUDA, true, func(ctx context.Context, index int, plan *plans.Plan, src *plans.Source, o Options) (runtime.Executor, error) {
		return cuda.NewExecutor(ctx, index, plan, src, o.Progress)
	}},
	{plans.Vulkan, true, func(ctx context.Context, index int, plan *plans.Plan, src *plans.Source, o Options) (runtime.Executor, error) {
		return vulkan.NewExecutor(ctx, index, plan, src, o.Progress)
	}},
	{plans.CPU, false, func(ctx context.Context, _ int, plan *plans.Plan, src *plans.Source, o Options) (runtime.Executor, error) {
		return cpu.New(ctx, plan, src, cpu.Options{Keep: o.Keep, Said: o.Said, Progress: o.Progress})
	}},
	{plans.Host, false, func(ctx context.Context, _ int, plan *plans.Plan, src *plans.Source, _ Options) (runtime.Executor, error) {
		return host.New(ctx, plan, src)
	}},
}

// added is a kind of device that the program brings, beside those of this package.
type added struct {
	name, backend string // of the plans that it runs
	open          func(ctx context.Context, which string, plan *plans.Plan, src *plans.Source, o Options) (runtime.Executor, error)
}

var more []added

// Add adds devices name:which, which run plans of a backend. A program calls it before it opens any.
func Add(name, backend string, open func(ctx context.Context, which string, plan *plans.Plan, src *plans.Source, o Options) (runtime.Executor, error)) {
	more = append(more, added{name, backend, open})
}

// addition is the kind that was added, nil if name is of none, and which device of it.
func addition(name string) (a *added, which string) {
	kind, which, _ := strings.Cut(name, ":")
	for i := range more {
		if more[i].name == kind {
			return &more[i], which
		}
	}
	return nil, ""
}

// Open makes an executor of plan on the named device: "cpu", "host", "cuda" or "vulkan" (the best device that meets the
// plan's requirements), "cuda:I", "vulkan:I", or "auto", a device of the plan's backend. host runs every plan, the
// others run plans of their backend. It refuses a plan that nobody trusts (package plans/trust): no executor judges
// what kernels reach.
func Open(ctx context.Context, name string, plan *plans.Plan, src *plans.Source, o Options) (runtime.Executor, error) {
	kind, index, err := parse(name)
	if err != nil {
		return nil, err
	}
	backend := plan.Require.Backend
	other, which := addition(name)
	switch {
	case kind == "auto":
		kind = backend
	case kind == plans.Host || kind == backend || other != nil && other.backend == backend:
	case plan.IsHost():
		return nil, ir.Unsupported("the plan is for target %s and has no kernels: run it with --device host, or compile for a GPU", plan.Header.Target)
	default:
		return nil, ir.Unsupported("the plan is for target %s, whose backend is %s: device %s cannot run it", plan.Header.Target, backend, name)
	}
	if err := trust.Check(plan); err != nil {
		return nil, err
	}
	if o.Keep != "" && kind != plans.CPU {
		err := ir.Unsupported("--keep-layout: weights are kept for the processor alone, and this plan runs on %s", kind)
		if name != "auto" {
			return nil, err
		}
		if o.Said != nil {
			o.Said(err.Error())
		}
	}
	if other != nil {
		return other.open(ctx, which, plan, src, o)
	}
	for _, b := range backends {
		if b.name == kind {
			if b.gpu && o.Said != nil {
				if err := private.Ready(); err != nil {
					o.Said("what the driver compiles is not kept, so every start compiles again: " + err.Error())
				}
			}
			return b.open(ctx, index, plan, src, o)
		}
	}
	return nil, ir.Unsupported("the plan is for backend %s, which this program does not run", kind)
}

// CheckName reports whether Open knows devices of that name.
func CheckName(name string) error {
	_, _, err := parse(name)
	return err
}

// Name returns the device name for Open that two options mean: device ("" or "auto": the best) and backend ("":
// any).
func Name(device, backend string) (string, error) {
	if device == "" {
		device = "auto"
	}
	kind, _, err := parse(device)
	switch {
	case err != nil:
		return "", fmt.Errorf("--device: %w", err)
	case backend == "":
		return device, nil
	case !slices.Contains(names(), backend):
		return "", fmt.Errorf("--backend: unknown backend %q: want %s", backend, list(names()))
	case kind == "auto":
		return backend, nil
	case kind != backend:
		return "", fmt.Errorf("--backend %s does not run on device %s", backend, device)
	}
	return device, nil
}

// names are those of the backends.
func names() []string {
	var all []string
	for _, b := range backends {
		all = append(all, b.name)
	}
	return all
}

// list writes alternatives.
func list(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// IsGPU reports whether name names a backend with numbered devices, such as cuda or vulkan:1; the device need not
// exist.
func IsGPU(name string) bool {
	kind, _, _ := strings.Cut(name, ":")
	return slices.ContainsFunc(backends, func(b backend) bool { return b.gpu && b.name == kind })
}

// parse splits a device's name; index is -1 for the first device that fits.
func parse(name string) (kind string, index int, err error) {
	kind, number, indexed := strings.Cut(name, ":")
	if name == "auto" {
		return name, -1, nil
	}
	want := []string{"auto"}
	if a, which := addition(name); a != nil && which != "" {
		return a.name, -1, nil
	}
	for _, b := range backends {
		want = append(want, b.name)
		if b.gpu {
			want = append(want, b.name+":I")
		}
		switch {
		case b.name != kind:
		case !indexed:
			return kind, -1, nil
		case b.gpu:
			if index, err = strconv.Atoi(number); err != nil || index < 0 {
				return "", 0, fmt.Errorf("unknown device %q: want %s:I with a number I", name, kind)
			}
			return kind, index, nil
		}
	}
	for _, a := range more {
		want = append(want, a.name+":NAME")
	}
	return "", 0, fmt.Errorf("unknown device %q: want %s", name, list(want))
}
