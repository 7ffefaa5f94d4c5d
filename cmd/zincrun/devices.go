package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/device"
)

var devicesCommand = cli.Command{
	Name:  "devices",
	Args:  "[--json]",
	Short: "list the devices of this computer, and say which one is used",
	Long: `
Lists the devices that plans can run on, best first: discrete GPUs before integrated ones, those with
more memory first, then the processor. --target native compiles for the first one that can run
plans, and --device auto runs on it. The list says why, and why not the others.
zincrun uses NVIDIA's GPUs through CUDA if their driver has it, all others through Vulkan.
A GPU that both list is one device with two names.
The architecture comes from CUDA, or from the device's PCI id; - means that it is not
a published one.

zincrun probe says more about each device, and measures GPUs.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON")
		return func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("devices takes no arguments, have %d", len(args))
			}
			system := device.Here()
			system.ReadFree()
			found := system.Survey()
			if *asJSON {
				return json.NewEncoder(cli.Stdout).Encode(found)
			}
			return printDevices(found)
		}
	},
}

func printDevices(found []device.Found) error {
	t := &table.Table{Title: "devices, best first", Columns: []string{"", "device", "also", "name", "type", "arch", "memory", "free"}}
	orDash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	size := func(n uint64) string {
		if n == 0 {
			return "-"
		}
		return table.Bytes(n).String()
	}
	for _, d := range found {
		mark := ""
		if d.Use {
			mark = "*"
		}
		var also []string
		for _, a := range d.Also {
			also = append(also, a.Name)
		}
		t.Add(mark, d.Name, strings.Join(also, " "), d.Device, d.Type, orDash(d.Arch), size(d.Memory), size(d.Free))
	}
	if err := t.WriteText(cli.Stdout); err != nil {
		return err
	}
	fmt.Fprintln(cli.Stdout)
	for _, d := range found {
		verb := "not used"
		if d.Use {
			verb = "used"
		}
		if _, err := fmt.Fprintf(cli.Stdout, "%s is %s: %s\n", d.Name, verb, printable.Line(d.Why)); err != nil {
			return err
		}
		for _, also := range d.Also {
			if _, err := fmt.Fprintf(cli.Stdout, "%s is not used: %s\n", also.Name, printable.Line(also.Why)); err != nil {
				return err
			}
		}
	}
	return nil
}
