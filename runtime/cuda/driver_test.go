package cuda

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/drivertest"
)

// TestDriver holds the package to what package driver says, over a library of the test, and on a device where there is
// one.
func TestDriver(t *testing.T) {
	first := func(t *testing.T) driver.Device {
		d, err := Open(0, plans.Requirements{Backend: plans.CUDA, CUDA: &plans.CUDARequirements{}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if all, err := Enumerate(); err == nil && len(all) > 0 {
		t.Run("device", func(t *testing.T) { drivertest.Test(t, first) })
	}
	t.Run("fake", func(t *testing.T) {
		drivertest.Test(t, func(t *testing.T) driver.Device {
			withFake(t).slowly(t)
			return first(t)
		})
	})
}

// TestLost: behind an error that the device does not get over, each submission and wait fails with it.
func TestLost(t *testing.T) {
	for _, during := range []int{cuMemcpyAsync, cuEventRecord, cuEventQuery} {
		f := withFake(t)
		plan := counter()
		x := open(t, plan)
		f.failIn, f.fails = during, 700
		for range 2 {
			if err := runtime.Run(t.Context(), x, &plan.Entries[0], 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%s fails: %v", symbols[during], err)
			}
			f.failIn = 0
		}
		if err := x.dev.Wait(0, time.Second); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a wait: %v", err)
		}
		if _, err := x.dev.Submit(); !errors.Is(err, driver.ErrLost) {
			t.Errorf("a submission: %v", err)
		}
		x.Close()
		if left := f.leaked(); left != nil {
			t.Errorf("left: %v", left)
		}
	}
}

// TestCloseBusy: Close does not wait for ever, and leaves what may be in use.
func TestCloseBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := withFake(t)
		x := open(t, counter())
		f.busy = true
		memory, began := f.live["memory"], time.Now()
		x.Close()
		if took := time.Since(began); took < closeTimeout || took > 2*closeTimeout || f.live["memory"] != memory || memory == 0 {
			t.Errorf("after %v %d allocations of %d are left", took, f.live["memory"], memory)
		}
		f.busy = false
		x.Close()
		if left := f.leaked(); left != nil {
			t.Errorf("left: %v", left)
		}
	})
}
