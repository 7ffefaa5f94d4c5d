package cuda

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"unsafe"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Oldest is the compute capability without the dot that a device needs to run any plan.
const Oldest = 75

// Info is a device's description of itself. Sizes are in bytes.
type Info struct {
	Index    int    `json:"index"`   // for NewExecutor
	Backend  string `json:"backend"` // plans.CUDA
	Name     string `json:"name"`
	Type     string `json:"type"` // discrete or integrated
	VendorID uint32 `json:"vendor_id"`
	DeviceID uint32 `json:"device_id,omitempty"` // PCI; 0 where the driver does not tell, as before CUDA 12.8
	UUID     string `json:"uuid"`
	Bus      string `json:"bus"`    // place on the PCI bus
	Arch     int    `json:"arch"`   // compute capability without the dot: 90 for sm_90
	Driver   int    `json:"driver"` // the CUDA version that it serves: 13000 for 13.0

	Units    int    `json:"units"`           // SMs
	Clock    int    `json:"clock,omitempty"` // of the SMs, kHz, at most; 0 where the driver does not tell
	Memory   uint64 `json:"memory"`
	Free     uint64 `json:"free,omitempty"` // what a process may take of it, as ReadFree saw it; 0: not asked
	Cache    int    `json:"cache"`          // L2
	Shared   int    `json:"shared"`         // shared memory of a workgroup, at most, without being asked for
	Optional int    `json:"shared_optin"`   // the same, if asked for

	handle int32 // CUdevice
}

// ArchName is the name of the architecture, such as sm_90.
func (i *Info) ArchName() string { return fmt.Sprintf("sm_%d", i.Arch) }

// DriverText writes the driver's version for people.
func (i *Info) DriverText() string {
	return fmt.Sprintf("CUDA %d.%d", i.Driver/1000, i.Driver%1000/10)
}

// Enumerate lists the devices. It returns an error if there is no driver, but not if there is no
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
		return nil, fmt.Errorf("the CUDA driver does not start: %w", explained(err))
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
		list[i] = Info{Index: i, Backend: plans.CUDA, VendorID: gpu.NVIDIA, Driver: int(version)}
		if err := list[i].read(d); err != nil {
			return nil, fmt.Errorf("CUDA device %d: %w", i, err)
		}
	}
	return list, nil
}

// attributes are what drivers are asked of a device (CUdevice_attribute). Those that older drivers do
// not know stay 0.
var attributes = []struct {
	number   uintptr
	optional bool
	set      func(i *Info, v int)
}{
	{8, false, func(i *Info, v int) { i.Shared = v }},
	{13, true, func(i *Info, v int) { i.Clock = v }},
	{16, false, func(i *Info, v int) { i.Units = v }},
	{18, false, func(i *Info, v int) {
		if i.Type = "discrete"; v != 0 {
			i.Type = "integrated"
		}
	}},
	{33, false, func(i *Info, v int) { i.Bus += fmt.Sprintf("%02x:", v) }}, // CU_DEVICE_ATTRIBUTE_PCI_BUS_ID
	{34, false, func(i *Info, v int) { i.Bus += fmt.Sprintf("%02x", v) }},  // and ..._PCI_DEVICE_ID, which is the slot
	{38, true, func(i *Info, v int) { i.Cache = v }},
	{75, false, func(i *Info, v int) { i.Arch += 10 * v }}, // major
	{76, false, func(i *Info, v int) { i.Arch += v }},      // minor
	{97, true, func(i *Info, v int) { i.Optional = v }},
	{139, true, func(i *Info, v int) { i.DeviceID = uint32(v) >> 16 }}, // device id and vendor id
}

func (i *Info) read(d *library) error {
	if err := d.call(cuDeviceGet, uintptr(unsafe.Pointer(&i.handle)), uintptr(i.Index)); err != nil {
		return err
	}
	device := uintptr(i.handle)
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
	for _, a := range attributes {
		var v int32
		switch err := d.call(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), a.number, device); {
		case err == nil:
			a.set(i, int(v))
		case !a.optional:
			return err
		}
	}
	return nil
}

// ReadFree asks how much memory a process may take now. That takes a context, so some 0.2 s where
// the process has none on the device.
func (i *Info) ReadFree() error {
	d, err := Open(i.Index, plans.Requirements{Backend: plans.CUDA})
	if err != nil {
		return err
	}
	defer d.Close()
	i.Free, _, err = d.memory()
	return err
}

// Warm starts to make the context that Open needs, for the life of the process, so that a caller can do
// something else meanwhile. Failures show in Open.
func (i *Info) Warm() {
	handle := uintptr(i.handle)
	go func() {
		if d, err := load(); err == nil {
			var context uintptr
			_ = d.call(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&context)), handle)
		}
	}()
}

// Capabilities are what the device offers, as plans require it.
func (i *Info) Capabilities() *plans.Capabilities {
	return &plans.Capabilities{
		Memory: int64(i.Memory),
		CUDA:   plans.CUDACapabilities{Arch: i.Arch, Workgroup: 1024, Shared: max(i.Shared, i.Optional)},
	}
}

// Check says which requirement of a plan the device does not meet.
func (i *Info) Check(need plans.Requirements) error {
	if what := need.Missing(i.Capabilities()); what != "" {
		return ir.Unsupported("device cuda:%d, %s, %s", i.Index, i.Name, what)
	}
	return nil
}

// Ranked returns the devices in the order in which they are worth trying: discrete ones first, then the
// one with more memory, else as the driver lists them.
func Ranked(all []Info) []Info {
	ranked := slices.Clone(all)
	slices.SortStableFunc(ranked, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(b.Memory, a.Memory)) // "discrete" < "integrated"
	})
	return ranked
}
