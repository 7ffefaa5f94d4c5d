package kernel_test

import (
	"testing"

	"github.com/zincc-dev/zincc/spirv"
)

func TestRMSNormValidates(t *testing.T) {
	f, err := RMSNorm("rms_norm")
	if err != nil {
		t.Fatal(err)
	}
	words, err := f.SPIRV()
	if err != nil {
		t.Fatal(err)
	}
	if err := spirv.Validate(words, spirv.Vulkan12); err != nil {
		t.Fatal(err)
	}
	if _, err := spirv.Optimize(words, map[uint32]uint32{0: 512}); err != nil {
		t.Fatal(err)
	}
}
