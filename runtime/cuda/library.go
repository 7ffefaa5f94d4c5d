package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/dynamic"
)

// The functions of the driver that are used, by their place in symbols.
const (
	cuInit = iota
	cuDriverGetVersion
	cuGetErrorName
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUuid
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemHostAlloc
	cuMemFreeHost
	cuMemcpyAsync
	cuMemsetD32Async
	cuLinkCreate
	cuLinkAddData
	cuLinkComplete
	cuLinkDestroy
	cuModuleLoadData
	cuModuleGetFunction
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuStreamCreate
	cuStreamDestroy
	cuStreamQuery
	cuStreamWaitEvent
	cuStreamBeginCapture
	cuStreamEndCapture
	cuLaunchKernelEx
	cuGraphInstantiate
	cuGraphDestroy
	cuGraphExecDestroy
	cuGraphLaunch
	cuGraphUpload
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventRecordWithFlags
	cuEventQuery
	cuEventElapsedTime
	functions
)

// symbols are the names in the library: a suffix is the version of a function's interface.
var symbols = [functions]string{
	cuInit: "cuInit", cuDriverGetVersion: "cuDriverGetVersion", cuGetErrorName: "cuGetErrorName",
	cuDeviceGetCount: "cuDeviceGetCount", cuDeviceGet: "cuDeviceGet", cuDeviceGetName: "cuDeviceGetName",
	cuDeviceGetUuid: "cuDeviceGetUuid", cuDeviceTotalMem: "cuDeviceTotalMem_v2", cuDeviceGetAttribute: "cuDeviceGetAttribute",
	cuDevicePrimaryCtxRetain: "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2",
	cuCtxSetCurrent: "cuCtxSetCurrent", cuMemGetInfo: "cuMemGetInfo_v2", cuMemAlloc: "cuMemAlloc_v2", cuMemFree: "cuMemFree_v2",
	cuMemHostAlloc: "cuMemHostAlloc", cuMemFreeHost: "cuMemFreeHost",
	cuMemcpyAsync: "cuMemcpyAsync", cuMemsetD32Async: "cuMemsetD32Async",
	cuLinkCreate: "cuLinkCreate_v2", cuLinkAddData: "cuLinkAddData_v2", cuLinkComplete: "cuLinkComplete", cuLinkDestroy: "cuLinkDestroy",
	cuModuleLoadData: "cuModuleLoadData", cuModuleGetFunction: "cuModuleGetFunction",
	cuFuncGetAttribute: "cuFuncGetAttribute", cuFuncSetAttribute: "cuFuncSetAttribute", cuStreamCreate: "cuStreamCreate", cuStreamDestroy: "cuStreamDestroy_v2",
	cuStreamQuery: "cuStreamQuery", cuStreamWaitEvent: "cuStreamWaitEvent",
	cuStreamBeginCapture: "cuStreamBeginCapture_v2", cuStreamEndCapture: "cuStreamEndCapture", cuLaunchKernelEx: "cuLaunchKernelEx",
	cuGraphInstantiate: "cuGraphInstantiateWithFlags", cuGraphDestroy: "cuGraphDestroy", cuGraphExecDestroy: "cuGraphExecDestroy",
	cuGraphLaunch: "cuGraphLaunch", cuGraphUpload: "cuGraphUpload", cuEventCreate: "cuEventCreate", cuEventDestroy: "cuEventDestroy_v2", cuEventRecord: "cuEventRecord",
	cuEventRecordWithFlags: "cuEventRecordWithFlags",
	cuEventQuery:           "cuEventQuery", cuEventElapsedTime: "cuEventElapsedTime",
}

// ErrNoDriver says that the driver's library is not installed.
var ErrNoDriver = errors.New("no CUDA driver")

// absent is that of the loader.
type absent struct{ error }

func isAbsent(err error) bool {
	var a absent
	return errors.As(err, &a)
}

// Error is a CUresult (CUDA driver API, "Data types used by CUDA driver").
type Error int32

// The errors that are told apart.
const (
	outOfMemory Error = 2
	noDevice    Error = 100
	notReady    Error = 600
)

// names are those of errors that a driver may give before, or after, it can name them.
var names = map[Error]string{
	outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", noDevice: "CUDA_ERROR_NO_DEVICE", notReady: "CUDA_ERROR_NOT_READY",
	3: "CUDA_ERROR_NOT_INITIALIZED", 34: "CUDA_ERROR_STUB_LIBRARY", 304: "CUDA_ERROR_OPERATING_SYSTEM",
	802: "CUDA_ERROR_SYSTEM_NOT_READY", 803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 999: "CUDA_ERROR_UNKNOWN",
}

// advice says what people can do about errors.
var advice = map[Error]string{
	34:  "the library found is the stub of a toolkit, not that of a driver",
	46:  "another program has the device for itself",
	214: "the device's memory is damaged: reset it",
	304: "in a container, the device's files may be missing",
	802: "on servers with NVSwitch the fabric manager must run",
	803: "the driver's library and its kernel module are of different versions: restart the computer",
	999: "its kernel module may have to be loaded again, as after sleep",
}

// sticky are errors after which a process can do nothing more on a device.
var sticky = []Error{214, 700, 702, 714, 715, 716, 717, 718, 719, 999}

// explained adds to an error of the driver what people can do about it.
func explained(err error) error {
	var e Error
	if !errors.As(err, &e) {
		return err
	}
	if slices.Contains(sticky, e) {
		err = fmt.Errorf("%w: %w to this process", err, driver.ErrLost)
	}
	if advice[e] != "" {
		err = fmt.Errorf("%w: %s", err, advice[e])
	}
	return err
}

// Error returns the name of the result in NVIDIA's documentation.
func (e Error) Error() string {
	if d, err := load(); err == nil {
		var text *byte
		_ = d.call(cuGetErrorName, uintptr(e), uintptr(unsafe.Pointer(&text)))
		if text != nil {
			return goString(text)
		}
	}
	if name, ok := names[e]; ok {
		return name
	}
	return fmt.Sprintf("CUDA error %d", int32(e))
}

func goString(p *byte) string { return string(unsafe.Slice(p, length(p))) }

func length(p *byte) int {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return n
}

// library calls the functions.
type library struct {
	// invoke calls one of them. Tests have their own.
	invoke func(function int, args []uintptr) uintptr
}

// load opens the library, once.
var load = sync.OnceValues(func() (*library, error) { return newLibrary(openLibrary, librarySymbol) })

// newLibrary finds the functions in a library.
func newLibrary(open func() (uintptr, error), symbol func(lib uintptr, name string) (uintptr, error)) (*library, error) {
	lib, err := open()
	switch {
	case isAbsent(err):
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, err)
	case err != nil:
		return nil, fmt.Errorf("the CUDA driver cannot be loaded: %w", err)
	}
	var addresses [functions]uintptr
	for i, name := range symbols {
		if addresses[i], err = symbol(lib, name); err != nil {
			return nil, fmt.Errorf("the CUDA driver is too old: it has no %s (CUDA 12 has)", name)
		}
	}
	return &library{func(function int, args []uintptr) uintptr { return dynamic.Call(addresses[function], args...) }}, nil
}

// call calls a function of the driver. Pointers among its operands stay where they are
// until it returns.
//
//go:uintptrescapes
func (l *library) call(function int, args ...uintptr) error {
	if e := Error(int32(l.invoke(function, args))); e != 0 {
		return e
	}
	return nil
}
