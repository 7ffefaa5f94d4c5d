package engine

import (
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// TestPromptsOfProcessors holds that a prompt which nobody waits beside has the widest steps on a processor, whatever is
// predicted, and that the bound counts elsewhere.
func TestPromptsOfProcessors(t *testing.T) {
	for _, c := range []struct {
		backend string
		itl     time.Duration
		want    int
	}{
		{plans.CPU, Unhurried, 512},
		{plans.CPU, 50 * time.Millisecond, 48},
		{plans.Vulkan, Unhurried, 48},
	} {
		plan := &plans.Plan{Entries: []plans.Entry{{Kind: "decode", Rows: 1}, {Kind: "prefill", Rows: 48}, {Kind: "prefill", Rows: 512}}}
		plan.Header.Ctx, plan.Require.Backend = 1024, c.backend
		p, err := newPrompts(plan, c.itl)
		if err != nil {
			t.Fatal(err)
		}
		if rows := p.widest[0].Rows; rows != c.want {
			t.Errorf("%s within %v: steps of %d rows, want %d", c.backend, c.itl, rows, c.want)
		}
	}
}
