package cpu

import (
	"os"

	"golang.org/x/sys/unix"
)

// theseNodes are those of this computer.
func theseNodes() nodes {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return nil
	}
	return readNodes(os.DirFS("/sys/devices/system/node"), mask.IsSet)
}

// pin keeps the calling thread on some processors. Where the system refuses, it goes on anywhere.
func pin(processors []int) {
	var mask unix.CPUSet
	for _, p := range processors {
		mask.Set(p)
	}
	_ = unix.SchedSetaffinity(0, &mask)
}
