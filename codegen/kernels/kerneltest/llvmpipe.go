package kerneltest

import (
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// mesa is llvmpipe, Mesa's Vulkan device on the processor, shared by all tests of a package.
var mesa llvmpipeDevice

type llvmpipeDevice struct {
	device
	vulkan *vulkan.Device
}

func init() {
	mesa.name, mesa.open, mesa.fits, mesa.run = "llvmpipe", mesa.with, mesa.has, mesa.compute
	mesa.most, mesa.mostShort = 2300, 800 // the largest modules took Mesa 51 of its 87 s; a delta rule of 2,252 has paths of its own
}

// patience is how long a launch may take beside other work, with Mesa's compiler, which makes code at the first one.
const patience = 10 * time.Minute

// with calls run with the device open.
func (d *llvmpipeDevice) with(run func() (int, error)) (int, error) {
	list, err := vulkan.Enumerate()
	if err != nil {
		return 0, err
	}
	for _, info := range list {
		if !strings.Contains(info.Name, d.name) {
			continue
		}
		d.vulkan, err = vulkan.Open(info.Index, plans.VulkanRequirements{Features: []string{"bufferDeviceAddress", "vulkanMemoryModel", "shaderFloat16", kernel.RoundsHalf, "shaderInt16", "storageBuffer16BitAccess"}})
		if err != nil {
			return 0, err
		}
		defer d.vulkan.Close()
		code, err := run()
		if m := d.vulkan.ValidationMessages(); err == nil && len(m) > 0 {
			err = fmt.Errorf("%d messages of the validation layer, such as: %s", len(m), m[0])
		}
		return code, err
	}
	return 0, fmt.Errorf("no %s among the Vulkan devices", d.name)
}

func (d *llvmpipeDevice) has(c kernels.Candidate, f *kernel.Func) bool {
	return (c.Wave == 0 || c.Wave == lanes) && !f.Fragments
}

func (d *llvmpipeDevice) compute(l *launchOf, args [][]byte) {
	t, c := l.t, l.c
	t.Helper()
	pipelines, err := d.vulkan.CreatePipelines([]vulkan.PipelineInfo{{Name: c.Kernel, Words: l.module, Constants: l.spec, FullSubgroups: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer pipelines[0].Free()
	var addresses []uint64
	buffers := map[*byte]*vulkan.Buffer{}
	for _, a := range args {
		start := unsafe.SliceData(a)
		if buffers[start] == nil {
			b, err := d.vulkan.Alloc(int64(len(a)), vulkan.Upload)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Free()
			copy(b.Bytes(), a)
			buffers[start] = b
		}
		addresses = append(addresses, buffers[start].Address())
	}
	commands, err := d.vulkan.NewCommands()
	if err != nil {
		t.Fatal(err)
	}
	defer commands.Free()
	commands.Bind(pipelines[0])
	commands.Push(addresses...)
	commands.Dispatch(uint32(c.Grid[0]), uint32(c.Grid[1]), uint32(c.Grid[2]))
	commands.Barrier(vulkan.Compute, vulkan.Host)
	if err := commands.End(); err != nil {
		t.Fatal(err)
	}
	n, err := d.vulkan.Submit(0, commands)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.vulkan.Wait(n, patience); err != nil {
		t.Fatal(err)
	}
	for _, a := range args {
		copy(a, buffers[unsafe.SliceData(a)].Bytes())
	}
}
