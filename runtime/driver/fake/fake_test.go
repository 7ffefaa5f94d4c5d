package fake

import (
	"testing"

	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/drivertest"
)

func TestDriver(t *testing.T) {
	drivertest.Test(t, func(*testing.T) driver.Device {
		d := New(nil)
		d.Largest = 1 << 30
		return d
	})
}
