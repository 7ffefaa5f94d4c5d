// Package device opens the executor that a plan runs on.
package device

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
	if name == "auto" {
		name = "vulkan"
		if len(plan.Modules) == 0 {
			name = "host"
		}
	}
	kind, index, indexed := strings.Cut(name, ":")
	switch {
	case kind == "host" && !indexed:
		return host.New(plan, src)
	case kind != "vulkan":
		return nil, fmt.Errorf("unknown device %q: want auto, vulkan, vulkan:I or host", name)
	case len(plan.Modules) == 0:
		return nil, fmt.Errorf("the plan is for target %s and has no kernels: run it with --device host, or compile for a GPU", plan.Header.Target)
	}
	i := -1
	if indexed {
		var err error
		if i, err = strconv.Atoi(index); err != nil || i < 0 {
			return nil, fmt.Errorf("unknown device %q: want a number behind vulkan:", name)
		}
	}
	return vulkan.NewExecutor(ctx, i, plan, src, progress)
}
