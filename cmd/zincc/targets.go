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
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

var targetsCommand = cli.Command{
	Name:  "targets",
	Args:  "[--json]",
	Short: "list the devices that zincc compiles for",
	Long:  "Every target with the figures that the compiler uses. native is not a target of its own: it stands for one of these. A file that `zincrun probe --json` wrote is a target as well. A name with " + target.NoMatrix + " behind it, such as gfx1201" + target.NoMatrix + ", is the device through a driver that has no cooperative matrices.",
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON")
		return func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("targets takes no arguments")
			}
			if *asJSON {
				return json.NewEncoder(cli.Stdout).Encode(target.All())
			}
			fmt.Fprintf(cli.Stdout, "%-10s %5s %10s %8s %6s %10s  %s\n", "target", "wave", "workgroup", "shared", "units", "GB/s", "")
			for _, t := range target.All() {
				fmt.Fprintf(cli.Stdout, "%-10s %5d %10d %8d %6d %10.0f  %s\n", t.Name, t.Wave, t.Workgroup, t.Shared, t.Units, t.Bandwidth/1e9, t.Doc)
			}
			return nil
		}
	},
}

// findTarget returns the target that --target names. The probe is not nil if it was
// made of one: plans must then be checked against it.
func findTarget(name string) (*target.Target, *target.Probe, error) {
	switch {
	case name == "":
		return nil, nil, cli.Usagef("--target is missing; `zincc targets` lists them")
	case name == "native":
		t, err := nativeTarget()
		return t, nil, err
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

// multiplies reports whether the device's driver has matrices of f16 of that shape.
func multiplies(d *vulkan.DeviceInfo, m target.MatrixShape) bool {
	return d.Features["cooperativeMatrix"] && slices.ContainsFunc(d.CooperativeMatrix, func(c vulkan.CooperativeMatrix) bool {
		return c.M == uint32(m.Rows) && c.N == uint32(m.Cols) && c.K == uint32(m.Depth) && c.A == "f16" && c.B == "f16" && c.C == "f32" && c.Result == "f32"
	})
}

// nativeTarget is the target of the first GPU that Vulkan shows, else host: a
// computer without a driver is no error.
func nativeTarget() (*target.Target, error) {
	devices, err := vulkan.Enumerate()
	if err == nil {
		for _, d := range devices {
			t := target.ForDevice(d.VendorID, d.Name)
			switch {
			case t == nil || d.Type == "cpu":
			case t.Matrix != (target.MatrixShape{}) && !multiplies(&d, t.Matrix):
				return t.WithoutMatrix(), nil
			default:
				return t, nil
			}
		}
	}
	return target.Lookup("host")
}
