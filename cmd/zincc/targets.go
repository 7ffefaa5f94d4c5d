package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

var targetsCommand = cli.Command{
	Name:  "targets",
	Args:  "[--json]",
	Short: "list the devices that zincc compiles for",
	Long:  "Every target with the figures that the compiler uses. native is not a target of its own: it stands for one of these.",
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON")
		return func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("targets takes no arguments")
			}
			if *asJSON {
				return json.NewEncoder(os.Stdout).Encode(target.All())
			}
			fmt.Printf("%-10s %5s %10s %8s %6s %10s  %s\n", "target", "wave", "workgroup", "shared", "units", "GB/s", "")
			for _, t := range target.All() {
				fmt.Printf("%-10s %5d %10d %8d %6d %10.0f  %s\n", t.Name, t.Wave, t.Workgroup, t.Shared, t.Units, t.Bandwidth/1e9, t.Doc)
			}
			return nil
		}
	},
}

// nativeTarget is the target of the first GPU that Vulkan shows, else host: a
// computer without a driver is no error.
func nativeTarget() (*target.Target, error) {
	devices, err := vulkan.Enumerate()
	if err == nil {
		for _, d := range devices {
			if t := target.ForVendor(d.VendorID); t != nil && d.Type != "cpu" {
				return t, nil
			}
		}
	}
	return target.Lookup("host")
}
