package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

var targetsCommand = cli.Command{
	Name:  "targets",
	Args:  "[--json]",
	Short: "list the devices that zincc compiles for",
	Long:  "Every target with the figures that the compiler uses. native stands for the best device of this computer (zincrun devices) as it was measured, vulkan:1 for one of them. A file that `zincrun probe --json` wrote is a target as well. A name with " + target.NoMatrix + " behind it, such as gfx1201" + target.NoMatrix + ", is the device through a driver that has no cooperative matrices.",
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON")
		return func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("targets takes no arguments")
			}
			if *asJSON {
				return json.NewEncoder(cli.Stdout).Encode(target.All())
			}
			fmt.Fprintf(cli.Stdout, "%-10s %-8s %5s %10s %8s %6s %10s  %s\n", "target", "backend", "wave", "workgroup", "shared", "units", "GB/s", "")
			for _, t := range target.All() {
				fmt.Fprintf(cli.Stdout, "%-10s %-8s %5d %10d %8d %6d %10.0f  %s\n", t.Name, t.Backend, t.Wave, t.Workgroup, t.Shared, t.Units, t.Bandwidth/1e9, t.Doc)
			}
			return nil
		}
	},
}

// findTarget returns the target that --target names. The probe is not nil if it was
// made of one: plans must then be checked against it.
func findTarget(ctx context.Context, name string) (*target.Target, *target.Probe, error) {
	switch {
	case name == "":
		return nil, nil, cli.Usagef("--target is missing; `zincc targets` lists them")
	case name == "native":
		return nativeTarget(ctx)
	case name == "vulkan" || strings.HasPrefix(name, "vulkan:"):
		return deviceTarget(ctx, name)
	case filepath.Ext(name) == ".json":
		probe, err := readProbe(name)
		if err != nil {
			return nil, nil, err
		}
		return probe.Target(), probe, nil
	case strings.HasPrefix(name, target.ProbePrefix):
		return nil, nil, cli.Usagef("--target: %q was a probe: name its file again, --target probe.json", name)
	}
	t, err := target.Lookup(name)
	if err != nil {
		return nil, nil, cli.Usagef("--target: %s", err)
	}
	return t, nil, nil
}

// readProbe reads what `zincrun probe --json` wrote into a file.
func readProbe(path string) (*target.Probe, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Usagef("--target: %s", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, target.MaxProbe+1))
	if err != nil {
		return nil, err
	}
	p, err := target.ParseProbe(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// nativeTarget is the best GPU of this computer as measured, else the processor, which it says.
func nativeTarget(ctx context.Context) (*target.Target, *target.Probe, error) {
	best, why := device.Best()
	if best != nil {
		return measuredTarget(ctx, *best)
	}
	t, err := target.Lookup(target.CPU)
	if err != nil {
		fmt.Fprintf(os.Stderr, "zincc: the model will run on the oracle (host), slowly: %s; %s\n", why, err)
		t, err = target.Lookup("host")
		return t, nil, err
	}
	fmt.Fprintf(os.Stderr, "zincc: no GPU is used, the model will run on the processor (%s): %s\n", t.Name, why)
	return t, nil, nil
}

// deviceTarget is the Vulkan device of this computer with that name, such as vulkan:1, as measured.
func deviceTarget(ctx context.Context, name string) (*target.Target, *target.Probe, error) {
	index, err := device.VulkanIndex(name)
	if err != nil {
		return nil, nil, cli.Usagef("--target: %s", err)
	}
	all, err := vulkan.Enumerate()
	if err != nil {
		return nil, nil, err
	}
	if index < 0 || index >= len(all) {
		return nil, nil, cli.Usagef("--target: %s: there are %d Vulkan devices, from vulkan:0", name, len(all))
	}
	return measuredTarget(ctx, all[index])
}

// measuredTarget measures the device, once for each driver, and makes a target of it. For one
// that cannot be measured, as without hardware, it takes the published target and says so.
func measuredTarget(ctx context.Context, info vulkan.DeviceInfo) (*target.Target, *target.Probe, error) {
	probed, err := device.Probe(ctx, info)
	if err != nil {
		if t := publishedTarget(info); t != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "zincc: compiling for %s as published, as it could not be measured: %s\n", t.Name, err)
			return t, nil, nil
		}
		return nil, nil, err
	}
	data, err := json.Marshal([]*device.Probed{probed})
	if err != nil {
		return nil, nil, err
	}
	p, err := target.ParseProbe(data)
	if err != nil {
		return nil, nil, err
	}
	return p.Target(), p, nil
}

// publishedTarget is the target of the device's architecture, nil where there is none.
func publishedTarget(info vulkan.DeviceInfo) *target.Target {
	chip := gpu.Find(info.VendorID, info.DeviceID)
	if chip == nil {
		return nil
	}
	t, err := target.Lookup(chip.Arch.Name)
	if err != nil {
		return nil
	}
	if t.Matrix != (target.MatrixShape{}) && !multiplies(&info, t.Matrix) {
		return t.WithoutMatrix()
	}
	return t
}

// multiplies reports whether the device's driver has matrices of f16 of that shape.
func multiplies(d *vulkan.DeviceInfo, m target.MatrixShape) bool {
	return d.Features["cooperativeMatrix"] && slices.ContainsFunc(d.CooperativeMatrix, func(c vulkan.CooperativeMatrix) bool {
		return c.M == uint32(m.Rows) && c.N == uint32(m.Cols) && c.K == uint32(m.Depth) && c.A == "f16" && c.B == "f16" && c.C == "f32" && c.Result == "f32"
	})
}
