package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

var probeCommand = cli.Command{
	Name:  "probe",
	Args:  "[--device cuda:I|vulkan:I]",
	Short: "list the GPUs as their drivers show them, and measure them",
	Long: `
Lists the devices of this computer, through CUDA and through Vulkan, with the properties that matter to
plans. It measures each GPU, or the device that --device names: how fast a kernel reads
memory, the cost of an empty dispatch with and without a barrier behind it, and the cost of an empty
submission with the wait for it. Model weights are read once a token, so no decoder can be faster
than bandwidth over the bytes that a plan reads.

--json also prints all limits, features and extensions. With --device, zincc compiles for that
file: --target card.json.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		name := f.String("device", "", "measure this device only, such as cuda:0 or vulkan:0; also one that is not a GPU")
		asJSON := f.Bool("json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("probe takes no arguments, have %d", len(args))
			}
			return probe(ctx, *name, *asJSON)
		}
	},
}

// probe lists the devices and measures the one of that name, or all GPUs if there is none.
func probe(ctx context.Context, name string, asJSON bool) error {
	if name != "" && !device.IsGPU(name) {
		return cli.Usagef("--device: %q is not listed by a driver: want cuda:I or vulkan:I", name)
	}
	if err := device.CheckName(name); name != "" && err != nil {
		return cli.Usagef("--device: %s", err)
	}
	system := device.Here()
	all := system.All()
	if len(all) == 0 {
		return ir.Unsupported("%s", system.None())
	}
	var only *device.Choice
	if name != "" {
		var err error
		only, _, err = system.Select(name)
		if outOfRange := new(device.OutOfRange); errors.As(err, &outOfRange) {
			return cli.Usagef("--device %s", err)
		}
		if err != nil {
			return err
		}
	}
	system.ReadFree()
	var probed []*device.Probed
	for _, c := range all {
		p := c.Listed()
		if only != nil && c.Name() == only.Name() || only == nil && c.Type() != "cpu" {
			bar := cli.NewProgress("measuring "+c.Name(), 0)
			err := p.Measure(ctx)
			if bar.Done(); err != nil {
				return err
			}
		}
		probed = append(probed, p)
	}
	if asJSON {
		return json.NewEncoder(cli.Stdout).Encode(probed)
	}
	for _, p := range probed {
		printProbe(p)
	}
	return nil
}

// shownFeatures are those that decide which kernels a device can run.
var shownFeatures = []string{
	"bufferDeviceAddress", "timelineSemaphore", "vulkanMemoryModel", "subgroupSizeControl", "shaderFloat16", "shaderInt8",
	"storageBuffer16BitAccess", "storageBuffer8BitAccess", "shaderIntegerDotProduct", "cooperativeMatrix", "shaderRoundingModeRTEFloat16",
}

func printProbe(p *device.Probed) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(cli.Stdout, "  %-20s %s\n", name, printable.Line(fmt.Sprintf(format, args...)))
	}
	if p.CUDA != nil {
		printCUDA(p.CUDA, row)
	} else {
		printVulkan(p.Vulkan, row)
	}
	if r := p.Probe; r != nil {
		row("read bandwidth", "%.1f GB/s (%d workgroups)", r.ReadBandwidth/1e9, r.ReadWorkgroups)
		for _, d := range r.Dispatches {
			alone := ""
			if d.Alone > 0 {
				alone = fmt.Sprintf("%.2f us, ", d.Alone*1e6)
			}
			row("dispatch", "%s%.2f us with a barrier (%d workgroups)", alone, d.Barrier*1e6, d.Workgroups)
		}
		if r.Fragments {
			row("matrices", "lanes hold fragments as mma.m16n8k16 has them")
		}
		row("submit and wait", "%.1f us at best, %.1f us on average", r.SubmitBest*1e6, r.SubmitMean*1e6)
	}
	fmt.Fprintln(cli.Stdout)
}

// rowPrinter prints a line with a name before it.
type rowPrinter func(name, format string, args ...any)

func printCUDA(c *cuda.Info, row rowPrinter) {
	fmt.Fprintf(cli.Stdout, "cuda:%d  %s\n", c.Index, printable.Name(c.Name))
	row("type", "%s", c.Type)
	row("architecture", "%s, %d SMs, %.2f GHz", c.ArchName(), c.Units, float64(c.Clock)/1e6)
	row("driver", "%s", c.DriverText())
	row("device memory", "%s, of which %s are free", table.Bytes(c.Memory), table.Bytes(c.Free))
	row("L2 cache", "%s", table.Bytes(c.Cache))
	row("workgroups", "%s of shared memory, %s if asked for", table.Bytes(c.Shared), table.Bytes(c.Optional))
}

func printVulkan(p *vulkan.DeviceInfo, row rowPrinter) {
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
}
