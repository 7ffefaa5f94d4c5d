package cuda

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/internal/private"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// function is a kernel that is ready to be launched.
type function struct {
	handle    uintptr
	workgroup int
	shared    int // bytes of shared memory that it asks for
	// registers are those of a lane, local the bytes of what did not fit into them.
	registers, local int
}

// Load compiles the modules of all pipelines, on all processors, or takes what was
// compiled before: the user's cache folder keeps it.
func (d *Device) Load(ctx context.Context, plan *plans.Plan) error {
	list, failed := make([]*function, len(plan.Pipelines)), make([]error, len(plan.Pipelines))
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	size := func(i int) int { return len(plan.Modules[plan.Pipelines[i].Module].Bytes) }
	slices.SortStableFunc(order, func(a, b int) int { return size(b) - size(a) }) // the longest first
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range order {
		g.Go(func() error {
			if failed[i] = ctx.Err(); failed[i] != nil {
				return nil
			}
			p := &plan.Pipelines[i]
			m := &plan.Modules[p.Module]
			if m.Format != plans.PTX {
				failed[i] = ir.Unsupported("kernel %s is in format %s, CUDA takes %s", m.Name, m.Format, plans.PTX)
				return nil
			}
			list[i], failed[i] = d.function(m.Name, m.Interface.Entry, p.Workgroup, p.Shared, m.Bytes)
			return nil
		})
	}
	_ = g.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	d.functions = list
	return nil
}

// mostDeclared is the bytes of shared memory that kernels declare. What takes more asks for all of it.
const mostDeclared = 48 << 10

// function loads a kernel of workgroups of that many lanes and bytes of shared memory.
func (d *Device) function(kernel, entry string, workgroup, shared int, ptx []byte) (*function, error) {
	code, err := d.machineCode(ptx)
	if err != nil {
		return nil, d.errorf("kernel %s: %w", kernel, err)
	}
	f := &function{workgroup: workgroup}
	var module uintptr
	if err := d.call(cuModuleLoadData, uintptr(unsafe.Pointer(&module)), uintptr(unsafe.Pointer(&code[0]))); err != nil {
		return nil, d.errorf("kernel %s: load: %w", kernel, err)
	}
	name := append([]byte(entry), 0)
	if err := d.call(cuModuleGetFunction, uintptr(unsafe.Pointer(&f.handle)), module, uintptr(unsafe.Pointer(&name[0]))); err != nil {
		return nil, d.errorf("kernel %s: entry point %q: %w", kernel, entry, err)
	}
	for _, a := range []struct {
		to        *int
		attribute uintptr // CUfunction_attribute
	}{{&f.local, 3}, {&f.registers, 4}} {
		var v int32
		if err := d.call(cuFuncGetAttribute, uintptr(unsafe.Pointer(&v)), a.attribute, f.handle); err != nil {
			return nil, d.errorf("kernel %s: %w", kernel, err)
		}
		*a.to = int(v)
	}
	if shared > mostDeclared {
		const maxDynamicShared = 8 // CUfunction_attribute
		f.shared = shared
		if err := d.call(cuFuncSetAttribute, f.handle, maxDynamicShared, uintptr(shared)); err != nil {
			return nil, d.errorf("kernel %s: %d bytes of shared memory: %w", kernel, shared, err)
		}
	}
	return f, nil
}

// machineCode returns what the driver makes of PTX, now or earlier: the user's cache folder keeps it for this
// architecture and driver. Drivers trust what they get, so nobody else may have written it.
func (d *Device) machineCode(ptx []byte) ([]byte, error) {
	cache, notKept := private.Open(fmt.Sprintf("cubins/%s-%d", d.info.ArchName(), d.info.Driver))
	sum := sha256.Sum256(ptx)
	name := fmt.Sprintf("%x.cubin", sum[:16])
	if notKept == nil {
		if code := cache.Read(name); len(code) > 0 {
			return code, nil
		}
	}
	code, err := d.compile(ptx)
	if err == nil && notKept == nil {
		_ = cache.Write(name, code) // it only saves time
	}
	return code, err
}

// Options of the driver's compiler (CUjit_option) and kinds of input.
const (
	jitErrorLog     = 5
	jitErrorLogSize = 6
	jitInputPTX     = 1
)

// compile has the driver compile PTX. What the driver keeps between the calls is the thread's.
func (d *Device) compile(ptx []byte) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	text := append(bytes.Clone(ptx), 0)
	log := make([]byte, 8<<10)
	options := []uint32{jitErrorLog, jitErrorLogSize}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	// The driver keeps all three until the end of the link.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&log[0])
	pin.Pin(&options[0])
	pin.Pin(&values[0])
	var link uintptr
	err := d.call(cuLinkCreate, uintptr(len(options)), uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])), uintptr(unsafe.Pointer(&link)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.call(cuLinkDestroy, link) }() // before they are unpinned
	err = d.call(cuLinkAddData, link, jitInputPTX, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), 0, 0, 0, 0)
	var code unsafe.Pointer
	var size uintptr
	if err == nil {
		err = d.call(cuLinkComplete, link, uintptr(unsafe.Pointer(&code)), uintptr(unsafe.Pointer(&size)))
	}
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(goString(&log[0])), "\n")
		return nil, fmt.Errorf("compile: %w: %s", err, first)
	}
	return bytes.Clone(unsafe.Slice((*byte)(code), size)), nil
}
