package modules

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/spirv"
)

// TestRoundingIsRequired: a module that states how it rounds to f16 needs the plan to require that of a device, and
// states nothing of other floats.
func TestRoundingIsRequired(t *testing.T) {
	half := &spirv.Interface{Capabilities: []spirv.Capability{spirv.CapabilityRoundingModeRTE}, Rounded: []uint32{16}}
	single := &spirv.Interface{Capabilities: half.Capabilities, Rounded: []uint32{16, 32}}
	required := &plans.VulkanRequirements{Features: []string{"shaderRoundingModeRTEFloat16"}}
	for _, c := range []struct {
		of   *spirv.Interface
		r    *plans.VulkanRequirements
		want string
	}{
		{half, required, ""},
		{half, &plans.VulkanRequirements{}, "needs feature shaderRoundingModeRTEFloat16, which the plan does not require"},
		{single, required, "states how floats of 32 bits are rounded, which plans may not"},
	} {
		if got := strings.Join(lackedBySPIRV(c.of, c.r), "; "); got != c.want {
			t.Errorf("%v: %q, want %q", c.of.Rounded, got, c.want)
		}
	}
}
