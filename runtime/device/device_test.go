package device_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/device"
)

// TestKeepElsewhere checks that a folder for a processor's weights is refused where another device was asked for by name, and hinders no plan that goes to
// its own.
func TestKeepElsewhere(t *testing.T) {
	const refusal = "weights are kept for the processor alone, and this plan runs on cuda"
	plan := &plans.Plan{Require: plans.Requirements{Backend: plans.CUDA}} // which runs nowhere
	for _, name := range []string{"cuda", "cuda:0", "auto"} {
		var said string
		_, err := device.Open(t.Context(), name, plan, nil, device.Options{Keep: t.TempDir(), Said: func(line string) { said += line }})
		if err == nil {
			t.Fatalf("%s: an empty plan runs", name)
		}
		refused, told := strings.Contains(err.Error(), refusal), strings.Contains(said, refusal)
		if byName := name != "auto"; refused != byName || told == byName {
			t.Errorf("%s: %v, said %q", name, err, said)
		}
	}
}
