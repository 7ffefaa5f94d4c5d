package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/device"
)

// native is the target that stands for the best device of this computer.
const native = "native"

var targetsCommand = cli.Command{
	Name:  "targets",
	Args:  "[--json]",
	Short: "list the devices that zincc compiles for",
	Long:  "Lists every target with the figures that the compiler uses. --target also takes: native, the best device of this computer (zincrun devices), as measured; cuda:0 or vulkan:1, one of its devices; cuda or vulkan, the best through that driver; a file of `zincrun probe --json`; and a name with " + target.NoMatrix + " behind it, such as gfx1201" + target.NoMatrix + ", for a driver that has no cooperative matrices.",
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON")
		return func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("targets takes no arguments")
			}
			if *asJSON {
				return json.NewEncoder(cli.Stdout).Encode(target.All())
			}
			list := &table.Table{Title: "targets", Columns: []string{"target", "backend", "wave", "workgroup", "shared", "units", "GB/s", "what it is"}}
			for _, t := range target.All() {
				list.Add(t.Name, string(t.Backend), int(t.Wave), int(t.Workgroup), int(t.Shared), int(t.Units), int(t.Bandwidth/1e9+0.5), t.Doc)
			}
			return list.WriteText(cli.Stdout)
		}
	},
}

// findTarget returns the target that --target names. The probe is not nil if it was
// made of one: plans must then be checked against it.
func findTarget(ctx context.Context, name string) (*target.Target, *target.Probe, error) {
	switch {
	case name == "":
		return nil, nil, cli.Usagef("--target is missing; `zincc targets` lists them")
	case name == native:
		return hereTarget(ctx, "auto")
	case device.IsGPU(name):
		return hereTarget(ctx, name)
	case filepath.Ext(name) == ".json":
		probe, err := readProbe(name)
		if err != nil {
			return nil, nil, err
		}
		return probe.Target(), probe, nil
	case strings.HasPrefix(name, target.ProbePrefix):
		return nil, nil, cli.Usagef("--target: %q was a probe; name its file again: --target probe.json", name)
	}
	t, err := target.Lookup(name)
	if err != nil {
		return nil, nil, cli.Usagef("--target: %s", err)
	}
	if name == target.CPU {
		sayTiles(t)
	}
	return t, nil, nil
}

// sayTiles says why the tiles that the processor has are not used, where the system refuses them.
func sayTiles(t *target.Target) {
	if err := processor.TilesRefused(); err != nil {
		fmt.Fprintf(cli.Stderr, "zincc: compiling for %s: %s\n", t.Name, err)
	}
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

// hereTarget is a device of this computer with that name, such as cuda, vulkan:1 or auto, as measured. What
// is not as fast as it could be is said.
func hereTarget(ctx context.Context, name string) (*target.Target, *target.Probe, error) {
	if err := device.CheckName(name); err != nil {
		return nil, nil, cli.Usagef("--target: %s", err)
	}
	c, note, err := device.Select(name)
	if outOfRange := new(device.OutOfRange); errors.As(err, &outOfRange) {
		return nil, nil, cli.Usagef("--target: %s", err)
	}
	if err != nil {
		return nil, nil, err
	}
	if c.IsGPU() {
		if note != "" {
			fmt.Fprintf(cli.Stderr, "zincc: %s\n", note)
		}
		return measuredTarget(ctx, c)
	}
	t, err := target.Lookup(c.Backend)
	if err != nil && name == "auto" { // code is compiled in for fewer processors than it is made for
		note += "; " + err.Error()
		t, err = target.Lookup("host")
	}
	switch {
	case err != nil:
		return nil, nil, err
	case note != "" && t.IsHost():
		fmt.Fprintf(cli.Stderr, "zincc: the model will run on the oracle (host), slowly: %s\n", note)
	case note != "":
		fmt.Fprintf(cli.Stderr, "zincc: no GPU is used, the model will run on the processor (%s): %s\n", t.Name, note)
	}
	sayTiles(t)
	return t, nil, nil
}

// measuredTarget measures the device, once for each driver, and makes a target of it. For one
// that cannot be measured, as without hardware, it takes the published target and says so.
func measuredTarget(ctx context.Context, c *device.Choice) (*target.Target, *target.Probe, error) {
	probed, err := c.Probe(ctx)
	if err != nil {
		if t := publishedTarget(c); t != nil && ctx.Err() == nil {
			fmt.Fprintf(cli.Stderr, "zincc: compiling for %s with published figures, since it could not be measured: %s\n", t.Name, err)
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
func publishedTarget(c *device.Choice) *target.Target {
	name := c.Arch()
	if c.Backend == plans.CUDA {
		name += target.WithCUDA
	}
	t, err := target.Lookup(name)
	if err != nil {
		return nil
	}
	if m := t.Matrix; m != (target.MatrixShape{}) && !c.Multiplies(m.Rows, m.Cols, m.Depth) {
		return t.WithoutMatrix()
	}
	return t
}
