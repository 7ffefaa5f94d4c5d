package cpu

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
)

// Dispatch runs dispatch i of the entry alone. With Read and Overwrite it is for tools that compare.
func (x *Executor) Dispatch(ctx context.Context, e *plans.Entry, i int) error {
	if i < 0 || i >= len(e.Dispatches) {
		return fmt.Errorf("entry %s has no dispatch %d", e.Name, i)
	}
	var p *program
	mem, err := layOut(func(b *builder) error {
		r, err := x.dispatch(b, &e.Dispatches[i])
		if err == nil {
			p = b.program([]native.Dispatch{r}, len(x.team.threads), each)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer mem.Free()
	defer x.team.leave()
	return x.run(ctx, p, 1, false)
}

// Read fills dst with the bytes at the place of a.
func (x *Executor) Read(_ context.Context, a plans.Arg, dst []byte) error {
	b, err := x.memory.locate(a, int64(len(dst)))
	copy(dst, b)
	return err
}

// Overwrite puts src at the place of a. Weights may lie in a file that was mapped: they stay what they are.
func (x *Executor) Overwrite(_ context.Context, a plans.Arg, src []byte) error {
	if a.Space == weightSpace {
		return fmt.Errorf("weight %q is not written", a.Region)
	}
	b, err := x.memory.locate(a, int64(len(src)))
	copy(b, src)
	return err
}
