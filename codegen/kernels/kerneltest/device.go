package kerneltest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
)

// device computes kernels as a driver's compiler makes them. A device is a row of devices.
type device struct {
	name string
	// open calls run with the device open.
	open func(run func() (int, error)) (int, error)
	// fits reports whether it has the kernel's subgroups and matrices.
	fits func(c kernels.Candidate, f *kernel.Func) bool
	// run runs a launch's module over buffers, one an argument; arguments of one value are the same bytes.
	run func(l *launchOf, args [][]byte)
	// most is how many operations a module has at most that it runs.
	most, mostShort int

	lock    sync.Mutex
	modules map[string]bool  // that it has run, by key and constants
	paths   paths            // that they take through the lowering
	large   map[string]paths // of modules that are too large for it, by kernel
}

// devices are asked in turn; what none of them runs, the interpreter does.
var devices = []*device{&mesa.device, &gpus[0].device, &gpus[1].device}

// largest is how many operations a module has at most that the device runs.
func (d *device) largest() int {
	if testing.Short() {
		return d.mostShort
	}
	return d.most
}

// shows reports whether the device runs a module: one that it has run, or that takes a path that none before it took.
// Compilers of devices take fifty times as long to compile a module as the interpreter takes to run it. What large
// modules do, smaller ones have to show: see unseen.
func (d *device) shows(c kernels.Candidate, f *kernel.Func) bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.modules == nil {
		d.modules, d.paths, d.large = map[string]bool{}, paths{}, map[string]paths{}
	}
	module := fmt.Sprint(c.Kernel, c.Consts)
	operations := 0
	f.Body().Walk(func(*kernel.Node) { operations++ })
	if operations > d.largest() {
		d.large[c.Kernel] = paths{}
		d.large[c.Kernel].add(f)
		return false
	}
	d.modules[module] = d.modules[module] || d.paths.add(f)
	return d.modules[module]
}

// unseen returns an error if large modules take paths that no module on the device took.
func (d *device) unseen() error {
	list := map[string]string{}
	for kernel, paths := range d.large {
		for path, op := range paths {
			if _, is := d.paths[path]; !is {
				list[path] = fmt.Sprintf("%s of %s", op, kernel)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%s: no module of at most %d operations has these: %q", d.name, d.largest(), slices.Sorted(maps.Values(list)))
}
