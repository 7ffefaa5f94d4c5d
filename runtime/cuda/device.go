// Package cuda runs plans on NVIDIA's GPUs through the driver alone: libcuda.so.1 is part of it,
// no toolkit is needed.
package cuda

import (
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Info is what a device says of itself.
type Info struct {
	Index    int    `json:"index"` // for NewExecutor
	Name     string `json:"name"`
	UUID     string `json:"uuid"`
	Arch     int    `json:"arch"`   // compute capability without the dot: 90 for sm_90
	Driver   int    `json:"driver"` // the CUDA version that it serves: 13000 for 13.0
	Units    int    `json:"units"`  // SMs
	Memory   uint64 `json:"memory"` // bytes
	Shared   int    `json:"shared"` // bytes of shared memory of a workgroup, at most, without being asked for
	PCI      uint32 `json:"pci"`    // device id; 0 where the driver does not tell
	Bus      string `json:"bus"`    // place on the PCI bus
	Integral bool   `json:"integrated"`
}

// ArchName is the name of the architecture, such as sm_90.
func (i *Info) ArchName() string { return fmt.Sprintf("sm_%d", i.Arch) }

// DriverText writes the driver's version for people.
func (i *Info) DriverText() string {
	return fmt.Sprintf("CUDA %d.%d", i.Driver/1000, i.Driver%1000/10)
}

// Device attributes (CUdevice_attribute).
const (
	attributeShared     = 8
	attributeUnits      = 16
	attributeIntegrated = 18
	attributeBus        = 33
	attributePCI        = 34
	attributeMajor      = 75
	attributeMinor      = 76
)

// start initializes the driver.
func start() (*driver, error) {
	d, err := load()
	if err != nil {
		return nil, err
	}
	if err := d.call(cuInit, 0); err != nil {
		return nil, fmt.Errorf("CUDA: %w", err)
	}
	return d, nil
}

// Enumerate lists the devices. It is an error that there is no driver, but not that there is no
// device.
func Enumerate() ([]Info, error) {
	d, err := load()
	if err != nil {
		return nil, err
	}
	switch err := d.call(cuInit, 0); err {
	case nil:
	case noDevice:
		return nil, nil
	default:
		return nil, fmt.Errorf("CUDA: %w", err)
	}
	var count, version int32
	if err := d.call(cuDeviceGetCount, uintptr(unsafe.Pointer(&count))); err != nil {
		return nil, fmt.Errorf("CUDA: %w", err)
	}
	if err := d.call(cuDriverGetVersion, uintptr(unsafe.Pointer(&version))); err != nil {
		return nil, fmt.Errorf("CUDA: %w", err)
	}
	list := make([]Info, count)
	for i := range list {
		list[i].Index, list[i].Driver = i, int(version)
		if err := list[i].read(d); err != nil {
			return nil, fmt.Errorf("CUDA device %d: %w", i, err)
		}
	}
	return list, nil
}

func (i *Info) read(d *driver) error {
	var handle int32
	if err := d.call(cuDeviceGet, uintptr(unsafe.Pointer(&handle)), uintptr(i.Index)); err != nil {
		return err
	}
	device := uintptr(handle)
	name, uuid := make([]byte, 256), make([]byte, 16)
	if err := d.call(cuDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)-1), device); err != nil {
		return err
	}
	i.Name = goString(&name[0])
	if err := d.call(cuDeviceGetUuid, uintptr(unsafe.Pointer(&uuid[0])), device); err != nil {
		return err
	}
	i.UUID = hex.EncodeToString(uuid)
	if err := d.call(cuDeviceTotalMem, uintptr(unsafe.Pointer(&i.Memory)), device); err != nil {
		return err
	}
	var major, minor, integrated, bus, pci int
	for _, a := range []struct {
		to        *int
		attribute uintptr
	}{
		{&major, attributeMajor}, {&minor, attributeMinor}, {&i.Units, attributeUnits}, {&i.Shared, attributeShared},
		{&integrated, attributeIntegrated}, {&bus, attributeBus}, {&pci, attributePCI},
	} {
		var v int32
		if err := d.call(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), a.attribute, device); err != nil {
			return err
		}
		*a.to = int(v)
	}
	i.Arch, i.Integral, i.Bus = 10*major+minor, integrated != 0, fmt.Sprintf("%02x:%02x", bus, pci)
	return nil
}

// Device is an open device. Its methods may be called by several goroutines, but one stream has
// all the work.
type Device struct {
	Info    Info
	driver  *driver
	handle  int32
	context uintptr
	stream  uintptr

	mu    sync.Mutex
	owned map[*allocation]bool
}

// Open opens the device of that index and holds it against what a plan needs.
func Open(index int, need plans.Requirements) (*Device, error) {
	all, err := Enumerate()
	if err != nil {
		return nil, ir.Unsupported("%s", err)
	}
	if index < 0 || index >= len(all) {
		return nil, ir.Unsupported("there is no device cuda:%d: CUDA lists %d", index, len(all))
	}
	if err := all[index].Check(need); err != nil {
		return nil, err
	}
	d := &Device{Info: all[index], owned: map[*allocation]bool{}}
	if d.driver, err = start(); err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		d.Close()
		return nil, d.errorf("%w", err)
	}
	return d, nil
}

func (d *Device) open() error {
	if err := d.driver.call(cuDeviceGet, uintptr(unsafe.Pointer(&d.handle)), uintptr(d.Info.Index)); err != nil {
		return err
	}
	if err := d.driver.call(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&d.context)), uintptr(d.handle)); err != nil {
		return err
	}
	const nonBlocking = 1
	return d.call(cuStreamCreate, uintptr(unsafe.Pointer(&d.stream)), nonBlocking)
}

// Capabilities are what it offers.
func (i *Info) Capabilities() *plans.Capabilities {
	return &plans.Capabilities{
		Memory: int64(i.Memory),
		CUDA:   plans.CUDACapabilities{Arch: i.Arch, Workgroup: 1024, Shared: i.Shared},
	}
}

// Check says what the device lacks of what a plan needs.
func (i *Info) Check(need plans.Requirements) error {
	if what := need.Missing(i.Capabilities()); what != "" {
		return ir.Unsupported("device cuda:%d, %s, %s", i.Index, i.Name, what)
	}
	return nil
}

// call calls the driver with the device's context, which belongs to a thread.
//
//go:uintptrescapes
func (d *Device) call(function int, args ...uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.driver.call(cuCtxSetCurrent, d.context); err != nil {
		return err
	}
	return d.driver.call(function, args...)
}

func (d *Device) errorf(format string, args ...any) error {
	return fmt.Errorf("device "+d.Info.Name+": "+format, args...)
}

// Close frees everything on the device. What is still running ends first.
func (d *Device) Close() {
	if d.context == 0 {
		return
	}
	if d.stream != 0 {
		_ = d.call(cuStreamSynchronize, d.stream) // of a device that failed nothing can be said here
		_ = d.call(cuStreamDestroy, d.stream)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.owned {
		a.release()
	}
	clear(d.owned)
	_ = d.driver.call(cuDevicePrimaryCtxRelease, uintptr(d.handle))
	d.context = 0
}
