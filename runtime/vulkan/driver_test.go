package vulkan

import (
	"testing"

	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/drivertest"
)

func TestDriver(t *testing.T) {
	drivertest.Test(t, func(t *testing.T) driver.Device { return Driver(openTest(t)) })
}
