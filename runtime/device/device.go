// Package device opens the executor that a plan runs on.
package device

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// Open makes an executor of plan on the device that name says: "host", "vulkan"
// (the first device that meets the plan's requirements), "vulkan:I", or "auto":
// vulkan for a plan with kernels, else host. progress, if not nil, is called
// with the number of bytes as weights arrive on the device.
func Open(ctx context.Context, name string, plan *plans.Plan, src *plans.Source, progress func(int64)) (runtime.Executor, error) {
	kind, index, err := parse(name)
	if err != nil {
		return nil, err
	}
	if kind == "auto" {
		kind = "vulkan"
		if len(plan.Modules) == 0 {
			kind = "host"
		}
	}
	if kind == "host" {
		return host.New(ctx, plan, src)
	}
	if len(plan.Modules) == 0 {
		return nil, ir.Unsupported("the plan is for target %s and has no kernels: run it with --device host, or compile for a GPU", plan.Header.Target)
	}
	return vulkan.NewExecutor(ctx, index, plan, src, progress)
}

// CheckName reports whether Open knows devices of that name.
func CheckName(name string) error {
	_, _, err := parse(name)
	return err
}

// VulkanIndex returns I of vulkan:I, and -1 for vulkan.
func VulkanIndex(name string) (int, error) {
	kind, index, err := parse(name)
	if err == nil && kind != "vulkan" {
		err = fmt.Errorf("%q is not a Vulkan device: want vulkan or vulkan:I", name)
	}
	return index, err
}

// parse splits a device's name; index is -1 for the first device that fits.
func parse(name string) (kind string, index int, err error) {
	kind, number, indexed := strings.Cut(name, ":")
	switch {
	case !indexed && (kind == "auto" || kind == "host" || kind == "vulkan"):
		return kind, -1, nil
	case kind != "vulkan":
		return "", 0, fmt.Errorf("unknown device %q: want auto, vulkan, vulkan:I or host", name)
	}
	index, err = strconv.Atoi(number)
	if err != nil || index < 0 {
		return "", 0, fmt.Errorf("unknown device %q: want vulkan:I with a number I", name)
	}
	return kind, index, nil
}
