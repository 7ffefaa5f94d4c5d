package plans_test

import (
	"testing"

	"github.com/zincc-dev/zincc/plans"
)

// TestMissingOfProcessors: what a processor lacks, and what the system keeps from programs.
func TestMissingOfProcessors(t *testing.T) {
	r := plans.Requirements{CPU: &plans.CPURequirements{Arch: "amd64", Features: []string{"amx-tile", "avx2"}}}
	for want, has := range map[string]plans.CPUCapabilities{
		"":                                   {Arch: "amd64", Features: map[string]bool{"amx-tile": true, "avx2": true}},
		"is arm64, the plan is for amd64":    {Arch: "arm64"},
		"lacks the instructions of avx2":     {Arch: "amd64", Features: map[string]bool{"amx-tile": true}},
		"lacks the instructions of amx-tile": {Arch: "amd64", Features: map[string]bool{"avx2": true}},
		"lacks the instructions of amx-tile: the system refuses them": {
			Arch: "amd64", Features: map[string]bool{"avx2": true}, Refused: map[string]string{"amx-tile": "the system refuses them"},
		},
	} {
		if got := r.Missing(&plans.Capabilities{CPU: has}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
