package vk

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/internal/dynamic"
)

// command is a row of a command table.
type command struct {
	name      string
	extension string // that provides it; empty for a core command
	late      bool   // an instance-level command of a device extension
}

// loader is the Vulkan loader, opened once for the process.
var loader = sync.OnceValues(func() (uintptr, error) {
	var first error
	for _, name := range libraryNames {
		lib, err := dynamic.Open(name)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		addr, err := dynamic.Symbol(lib, "vkGetInstanceProcAddr")
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		return addr, nil
	}
	return 0, fmt.Errorf("no Vulkan loader: %w", first)
})

// instanceProc is vkGetInstanceProcAddr.
func instanceProc(instance Instance, name string) (uintptr, error) {
	get, err := loader()
	if err != nil {
		return 0, err
	}
	return call(get, uintptr(instance), uintptr(unsafe.Pointer(CString(name)))), nil
}

// LoadGlobal opens the Vulkan loader and looks up the commands that need no
// instance.
func LoadGlobal() (*GlobalCommands, error) {
	c := &GlobalCommands{}
	err := fill(c.fn[:], globalTable[:], nil, func(name string) (uintptr, error) {
		return instanceProc(0, name)
	})
	return c, err
}

// LoadInstance looks up the instance-level commands: the core ones and those of
// the extensions that the instance was created with.
func LoadInstance(instance Instance, enabled func(extension string) bool) (*InstanceCommands, error) {
	c := &InstanceCommands{}
	err := fill(c.fn[:], instanceTable[:], enabled, func(name string) (uintptr, error) {
		return instanceProc(instance, name)
	})
	return c, err
}

// LoadDevice looks up the device-level commands: the core ones and those of the
// extensions that the device was created with.
func LoadDevice(ic *InstanceCommands, device Device, enabled func(extension string) bool) (*DeviceCommands, error) {
	c := &DeviceCommands{}
	err := fill(c.fn[:], deviceTable[:], enabled, func(name string) (uintptr, error) {
		return ic.GetDeviceProcAddr(device, CString(name)), nil
	})
	return c, err
}

// fill looks up the commands of a table. Commands of extensions that are not
// enabled are not even asked for: the loader answers some with a function that
// jumps to NULL. Late ones are asked for, for no device is open yet; who calls
// one has seen its extension in the device's list.
func fill(fn []uintptr, table []command, enabled func(string) bool, lookup func(string) (uintptr, error)) error {
	for i, c := range table {
		if c.extension != "" && !c.late && !enabled(c.extension) {
			continue
		}
		addr, err := lookup(c.name)
		if err != nil {
			return err
		}
		if addr == 0 && !c.late {
			return fmt.Errorf("the Vulkan driver lacks %s", c.name)
		}
		fn[i] = addr
	}
	return nil
}

// address is the address of a command that is about to be called. That it is
// missing is a mistake of the caller, who did not enable the extension.
func address(fn uintptr, c *command) uintptr {
	if fn == 0 {
		panic("vk: " + c.name + " called without " + c.extension)
	}
	return fn
}

// NewCallback makes a C function of fn. Callbacks are never freed and their
// number is limited: make one for the process.
func NewCallback(fn any) uintptr { return dynamic.NewCallback(fn) }
