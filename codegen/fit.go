package codegen

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// CheckMemory fails if the plan needs more memory than the target has, and says with
// which context it would fit.
func CheckMemory(p *plans.Plan, t *target.Target) error {
	need := p.MemoryBytes()
	if t.Memory == 0 || need <= t.Memory {
		return nil
	}
	advice := "no context fits"
	if n := p.LargestCtx(t.Memory); n > 0 {
		advice = fmt.Sprintf("the largest context that fits is %d", n)
	}
	return fmt.Errorf("context %d needs %s, target %s has %s: %s", p.Header.Ctx, gib(need), t.Name, gib(t.Memory), advice)
}

func gib(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }
