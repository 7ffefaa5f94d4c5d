// Package gpu knows published graphics processors: which architecture a PCI vendor and
// device id stand for, and what makers publish of it. It asks no driver.
package gpu

// PCI vendors. Mesa's is Vulkan's own number for drivers that have no PCI device.
const (
	NVIDIA = 0x10de
	AMD    = 0x1002
	Intel  = 0x8086
	Apple  = 0x106b
	Mesa   = 0x10005
)

// Arch is an instruction set with the figures of one published card. A figure of 0 is one
// that we found no source for.
type Arch struct {
	Name   string // the maker's compiler name, such as "sm_89" or "gfx1100"
	Family string // as people call it
	Vendor uint32
	Card   string // whose figures these are
	// Units are SMs, compute units or Xe cores. FLOPs are of float32, MatrixFLOPs of dense f16
	// products with sums in float32, a second.
	Units              int
	FLOPs, MatrixFLOPs float64
}

// Chip is a row of PCI device ids, First to Last, of one chip.
type Chip struct {
	First, Last uint32
	Name        string
	Arch        *Arch
}

// Find returns the chip of a PCI vendor and device id, nil where it is not known.
func Find(vendor, device uint32) *Chip {
	for i := range chips {
		if c := &chips[i]; c.Arch.Vendor == vendor && c.First <= device && device <= c.Last {
			return c
		}
	}
	return nil
}

// VendorName is the maker's name, "" where it is not known.
func VendorName(vendor uint32) string {
	switch vendor {
	case NVIDIA:
		return "NVIDIA"
	case AMD:
		return "AMD"
	case Intel:
		return "Intel"
	case Apple:
		return "Apple"
	case Mesa:
		return "Mesa"
	}
	return ""
}
