package cuda

import "unsafe"

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	_           uint32
	stream      uintptr
	attributes  *launchAttribute
	count       uint32
	_           uint32
}

// launchAttribute is CUlaunchAttribute.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// launch launches a kernel with the addresses of its arguments.
func (f *function) launch(d *Device, stream uintptr, grid [3]uint32, arguments []uint64, early bool) error {
	pointers := make([]unsafe.Pointer, len(arguments))
	for i := range arguments {
		pointers[i] = unsafe.Pointer(&arguments[i])
	}
	c := &launchConfig{grid: grid, block: [3]uint32{uint32(f.workgroup), 1, 1}, shared: uint32(f.shared), stream: stream}
	if early {
		const programmaticStreamSerialization = 6
		c.attributes, c.count = &launchAttribute{id: programmaticStreamSerialization, value: [16]uint32{1}}, 1
	}
	return d.call(cuLaunchKernelEx, uintptr(unsafe.Pointer(c)), f.handle, uintptr(unsafe.Pointer(unsafe.SliceData(pointers))), 0)
}
