package plans

import (
	"fmt"
	"slices"
)

// Capabilities are what a device offers of what plans require. A limit of 0 is not known.
type Capabilities struct {
	Features      map[string]bool
	Extensions    []string
	SubgroupOps   []string
	Subgroup      [2]int // smallest and largest
	PushConstants int64  // bytes
	Workgroup     int64  // invocations
	Shared        int64  // bytes
	Memory        int64  // bytes of its own
}

// Missing says what a device lacks of the requirements, such as "lacks the feature
// shaderInt8"; nothing if it has all. Compilers ask it of a probe, runtimes of the device.
func (r *Requirements) Missing(c *Capabilities) string {
	for _, name := range r.Features {
		switch {
		case c.Features[name]:
		case name == "cooperativeMatrix":
			return fmt.Sprintf("lacks the feature %s; zincc compiles for such drivers with --target NAME-nomatrix", name)
		default:
			return fmt.Sprintf("lacks the feature %s", name)
		}
	}
	for _, name := range r.Extensions {
		if !slices.Contains(c.Extensions, name) {
			return fmt.Sprintf("lacks the extension %s", name)
		}
	}
	if s := c.Subgroup; r.Subgroup[0] != 0 && s[1] != 0 && (r.Subgroup[0] < s[0] || r.Subgroup[1] > s[1]) {
		return fmt.Sprintf("has subgroups of %d to %d, %d to %d are needed", s[0], s[1], r.Subgroup[0], r.Subgroup[1])
	}
	for _, name := range r.SubgroupOps {
		if !slices.Contains(c.SubgroupOps, name) {
			return fmt.Sprintf("lacks subgroup operations of class %s", name)
		}
	}
	for _, row := range []struct {
		what       string
		need, have int64
	}{
		{"bytes of push constants", int64(r.PushConstants), c.PushConstants},
		{"invocations of a workgroup", int64(r.Workgroup), c.Workgroup},
		{"bytes of shared memory", int64(r.Shared), c.Shared},
		{"bytes of device memory", r.Memory, c.Memory},
	} {
		if row.have != 0 && row.need > row.have {
			return fmt.Sprintf("has %d %s, %d are needed", row.have, row.what, row.need)
		}
	}
	return ""
}
