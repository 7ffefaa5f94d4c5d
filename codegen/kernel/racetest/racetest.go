// Package racetest runs kernels under the race detector of kernel.Func.Run for the tests of
// packages that hold kernels, and finds barriers that no test would miss.
package racetest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

var (
	lock   sync.Mutex
	missed = map[string]bool{} // by barrier of a kernel: no run has failed without it so far
	ran    = map[string]bool{} // see First
)

// First reports whether it is called for the first time with this kernel and subgroup size:
// for tests that run one kernel many times on a device, of which one run here is enough.
func First(kernel string, wave int) bool {
	lock.Lock()
	defer lock.Unlock()
	key := fmt.Sprint(kernel, " ", wave)
	first := !ran[key]
	ran[key] = true
	return first
}

// Run is f.Run, whose error fails the test. It then runs f without each of its barriers and
// fences of which no run before has shown that it is needed; -short does not. args end as f leaves them.
func Run(t testing.TB, f *kernel.Func, spec map[uint32]uint32, wave int, grid [3]int, args [][]byte) {
	t.Helper()
	var open []int
	var keys []string
	for i, barrier := range f.Barriers() {
		if key := f.Name + ": " + barrier; !testing.Short() && !needed(key) {
			open, keys = append(open, i), append(keys, key)
		}
	}
	before := clone(args)
	quiet := len(open) > 0 && f.Without(open...).Run(spec, wave, grid, args) == nil
	if quiet && !f.LoadsAhead() {
		return // which is what f does, and what it does without each
	}
	for i, a := range args {
		copy(a, before[i])
	}
	if err := f.Run(spec, wave, grid, args); err != nil {
		t.Fatalf("subgroups of %d: %v", wave, err)
	}
	for i, key := range keys {
		if !quiet && f.Without(open[i]).Run(spec, wave, grid, clone(before)) != nil {
			lock.Lock()
			missed[key] = false
			lock.Unlock()
		}
	}
}

func needed(key string) bool {
	lock.Lock()
	defer lock.Unlock()
	unknown, known := missed[key]
	if !known {
		missed[key] = true
	}
	return known && !unknown
}

// clone copies buffers; arguments that share one still do.
func clone(args [][]byte) [][]byte {
	copies := map[*byte][]byte{}
	var list [][]byte
	for _, a := range args {
		start := unsafe.SliceData(a)
		if copies[start] == nil {
			copies[start] = append([]byte{}, a...)
		}
		list = append(list, copies[start])
	}
	return list
}

// Spare is a barrier that orders nothing which another does not order as well: of a kernel, in a source file, or that
// behind the filling of its tables if none is named. Barrier is its op; empty, it may be any.
type Spare struct{ Kernel, Barrier, File, Why string }

// All reports whether all tests of a package run, not chosen ones.
func All() bool {
	pattern := flag.Lookup("test.run")
	return pattern == nil || pattern.Value.String() == ""
}

// Main runs the tests, as TestMain does with m.Run. Where all of them ran and succeeded, and not -short, it fails for
// the barriers without which none has failed, but for spare ones, and for spare ones that are not.
func Main(run func() int, spare ...Spare) (code int, err error) {
	code = run()
	var list []string
	for key, is := range missed {
		if is {
			list = append(list, key)
		}
	}
	sort.Strings(list)
	if code != 0 || !All() || testing.Short() {
		if testing.Verbose() && !testing.Short() {
			fmt.Fprintf(os.Stderr, "barriers that these tests did not miss: %q\n", list)
		}
		return code, nil
	}
	var errs []error
	for _, s := range spare {
		n := len(list)
		list = slices.DeleteFunc(list, func(key string) bool {
			return strings.HasPrefix(key, s.Kernel+": "+s.Barrier) && (strings.Contains(key, " at "+s.File+":") || s.File == "" && strings.HasSuffix(key, " at "))
		})
		if len(list) == n {
			errs = append(errs, fmt.Errorf("tests miss all barriers of %s in %s: it has no spare one", s.Kernel, s.File))
		}
	}
	if len(list) > 0 {
		errs = append(errs, fmt.Errorf("no test notices that a barrier is missing: %q", list))
	}
	if err := errors.Join(errs...); err != nil {
		return 1, err
	}
	return code, nil
}
