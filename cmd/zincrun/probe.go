package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

var probeCommand = cli.Command{
	Name:  "probe",
	Args:  "[--device vulkan:I]",
	Short: "list the Vulkan devices and measure them",
	Long: `
Lists the Vulkan devices of this computer with what matters to plans, and measures each
GPU, or the device that --device names: how fast a kernel reads memory, what an empty
dispatch costs with and without a barrier behind it, and what an empty submission and
the wait for it cost. Model weights are read once a token, so bandwidth over the bytes
that a plan reads is the rate that no decoder can pass.

--json gives all limits, features and extensions as well.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		name := f.String("device", "", "measure this device only, such as vulkan:0; also one that is not a GPU")
		asJSON := f.Bool("json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("probe takes no arguments, have %d", len(args))
			}
			only := -1
			if *name != "" {
				var err error
				if only, err = device.VulkanIndex(*name); err != nil {
					return cli.Usagef("--device: %s", err)
				}
			}
			return probe(ctx, only, *asJSON)
		}
	},
}

// probe lists the devices and measures those with index only, or all GPUs if
// that is -1.
func probe(ctx context.Context, only int, asJSON bool) error {
	infos, err := vulkan.Enumerate()
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		return ir.Unsupported("there is no Vulkan device")
	}
	if only >= len(infos) {
		return cli.Usagef("--device: there are %d Vulkan devices", len(infos))
	}
	all := make([]device.Probed, len(infos))
	for i, info := range infos {
		all[i].DeviceInfo = info
		if only == i || only < 0 && info.Type != "cpu" {
			if all[i].Probe, err = vulkan.Probe(ctx, info); err != nil {
				return err
			}
		}
	}
	if asJSON {
		return json.NewEncoder(cli.Stdout).Encode(all)
	}
	for i := range all {
		printProbe(&all[i])
	}
	return nil
}

// shownFeatures are those that decide which kernels a device can run.
var shownFeatures = []string{
	"bufferDeviceAddress", "timelineSemaphore", "vulkanMemoryModel", "subgroupSizeControl", "shaderFloat16", "shaderInt8",
	"storageBuffer16BitAccess", "storageBuffer8BitAccess", "shaderIntegerDotProduct", "cooperativeMatrix",
}

func printProbe(p *device.Probed) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(cli.Stdout, "  %-20s %s\n", name, printable.Line(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(cli.Stdout, "vulkan:%d  %s\n", p.Index, printable.Name(p.Name))
	row("type", "%s", p.Type)
	row("driver", "%s %s, Vulkan %s", p.Driver, p.DriverInfo, p.API)
	for _, h := range p.Heaps {
		where := "host memory"
		if h.DeviceLocal {
			where = "device memory"
		}
		row(where, "%.1f GiB", float64(h.Size)/(1<<30))
	}
	row("subgroups", "%d to %d", p.Subgroup.Min, p.Subgroup.Max)
	row("workgroups", "%d invocations, %d KiB of shared memory", p.Limits.WorkgroupInvocations, p.Limits.SharedMemory>>10)
	var have, lacks []string
	for _, name := range shownFeatures {
		if p.Features[name] {
			have = append(have, name)
		} else {
			lacks = append(lacks, name)
		}
	}
	list := func(name string, features []string) {
		for chunk := range slices.Chunk(features, 4) {
			row(name, "%s", strings.Join(chunk, ", "))
			name = ""
		}
	}
	list("has", have)
	list("lacks", lacks)
	if r := p.Probe; r != nil {
		row("read bandwidth", "%.1f GB/s (%d workgroups)", r.ReadBandwidth/1e9, r.ReadWorkgroups)
		for _, d := range r.Dispatches {
			row("dispatch", "%.2f us, %.2f us with a barrier (%d workgroups)", d.Alone*1e6, d.Barrier*1e6, d.Workgroups)
		}
		if r.Fragments {
			row("matrices", "lanes hold fragments as mma.m16n8k16 has them")
		}
		row("submit and wait", "%.1f us at best, %.1f us on average", r.SubmitBest*1e6, r.SubmitMean*1e6)
	}
	fmt.Fprintln(cli.Stdout)
}
