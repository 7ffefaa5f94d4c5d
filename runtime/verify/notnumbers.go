package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/layout"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
	"github.com/zincc-dev/zincc/runtime/step"
)

// NotNumber is the first value of a sequence that is NaN or infinite.
type NotNumber struct {
	Entry  string
	Site   string // call site of the dispatch that wrote it
	Kernel string
	Value  string
	Row    int // of the step
	Column int
	Number Number
}

func (n *NotNumber) String() string {
	return printable.Text(fmt.Sprintf("dispatch %s of %s is the first to write one that is not: %s, row %d, column %d is %v",
		n.Site, n.Entry, n.Value, n.Row, n.Column, float64(n.Number)))
}

// FirstNotNumber feeds tokens to an empty sequence in slot 0 of dev and returns the first value that
// is not a number, nil if there is none. It looks for the first step whose logits are not
// numbers, and then goes through the dispatches of that step only.
func FirstNotNumber(ctx context.Context, plan *plans.Plan, dev Device, tokens []int32) (*NotNumber, error) {
	w := &watch{inspected: dev, plan: plan, bad: -1, within: -1}
	for range 2 {
		if _, err := runtime.NewSession(plan, w).Prefill(ctx, tokens, 0); err != errFound {
			return nil, err
		}
		w.within, w.step = w.bad, 0
	}
	return w.found, nil
}

// inspected is Device, which cannot be embedded under the name of its method.
type inspected = Device

// watch is a device that looks at what the steps of a session write.
type watch struct {
	inspected
	plan   *plans.Plan
	block  step.Block // as the session wrote it
	step   int        // the number of the next one
	bad    int        // the first step whose logits are not numbers
	within int        // the step to go through dispatch by dispatch, or -1
	found  *NotNumber
}

// Write remembers the step block, which says which values a step has.
func (w *watch) Write(region string, data []int32) error {
	if err := w.block.Write(region, data); err != nil {
		return err
	}
	return w.inspected.Write(region, data)
}

// Submit runs steps and checks their logits, or the results of each of their dispatches.
func (w *watch) Submit(ctx context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	for _, l := range launches {
		if err := w.look(ctx, l.Entry, l.Times); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// Wait has nothing to do.
func (w *watch) Wait(context.Context, runtime.Ticket) error { return nil }

func (w *watch) look(ctx context.Context, e *plans.Entry, times int) error {
	if times != 1 {
		return fmt.Errorf("verify: %d steps at once", times)
	}
	step := w.step
	w.step++
	if step == w.within {
		return w.dispatches(ctx, e)
	}
	if err := runtime.Run(ctx, w.inspected, e, 1); err != nil || w.within >= 0 {
		return err
	}
	logits, err := w.Floats(e.Logits)
	if err != nil {
		return err
	}
	if i, _ := notNumber(logits); i >= 0 {
		w.bad = step
		return errFound
	}
	return nil
}

// errFound ends a session behind what was looked for.
var errFound = errors.New("verify: found")

// dispatches runs the dispatches of e up to the first that writes a value that is not a number.
func (w *watch) dispatches(ctx context.Context, e *plans.Entry) error {
	f := w.plan.Program.Func(e.Name)
	uses := f.Uses()
	for i, g := range f.Groups {
		if err := w.Dispatch(ctx, e, i); err != nil {
			return err
		}
		for _, v := range append(g.Outputs(uses), g.Writes()...) {
			data, err := w.written(ctx, e, v)
			if err != nil {
				return err
			}
			if at, x := notNumber(data); at >= 0 {
				w.found = &NotNumber{Entry: e.Name, Site: g.Name, Value: name(v), Row: at / int(v.Type.Last()), Column: at % int(v.Type.Last()), Number: Number(x)}
				if g.Call != nil {
					w.found.Kernel = g.Call.Kernel
				}
				return errFound
			}
		}
	}
	return nil
}

// written reads what the step has written of v: its rows, of a cache those of its positions, of
// state that of slot 0. Integers are all numbers.
func (w *watch) written(ctx context.Context, e *plans.Entry, v *ir.Value) ([]float32, error) {
	if v.Type.DType == ir.I32 {
		return nil, nil
	}
	rows := len(w.block.Rows)
	n, err := v.Type.Elements(rows, w.plan.Header.Ctx)
	if err != nil {
		return nil, err
	}
	whole, err := v.Type.Bytes(rows, w.plan.Header.Ctx)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, whole)
	if err := w.Read(ctx, place(e.Name, v), raw); err != nil {
		return nil, err
	}
	switch v.Class {
	case ir.KV:
		table, err := w.table(ctx, e, v)
		if err != nil {
			return nil, err
		}
		if raw, err = layout.CacheFromDevice(v, w.plan.Header.Ctx, raw); err != nil {
			return nil, err
		}
		row := v.Type.DType.Bytes(int64(v.Type.Last()))
		n = int64(v.Type.Last()) * int64(rows)
		var own []byte
		for _, r := range w.block.Rows {
			at := row * int64(table.Row(v, w.plan.Header.Ctx, int(r.Slot), int(r.Pos)))
			own = append(own, raw[at:at+row]...)
		}
		raw = own
	case ir.State:
		n /= int64(w.plan.Header.Slots)
	}
	data := make([]float32, n)
	return data, oracle.Decode(data, v.Type.DType, raw[:v.Type.DType.Bytes(n)])
}

// table reads the block table of a cache, if it lies in pages.
func (w *watch) table(ctx context.Context, e *plans.Entry, cache *ir.Value) (ir.PageTable, error) {
	g := w.plan.Program.TableFor(cache)
	if g == nil {
		return ir.PageTable{}, nil
	}
	raw := make([]byte, 4*g.Type.Shape[0]*g.Type.Shape[1])
	if err := w.Read(ctx, place(e.Name, g), raw); err != nil {
		return ir.PageTable{}, err
	}
	return w.plan.Program.TableOf(contents.Numbers[int32](raw)), nil
}

// notNumber returns the index of the first value that is NaN or infinite, or -1.
func notNumber(x []float32) (int, float32) {
	for i, v := range x {
		if v-v != 0 {
			return i, v
		}
	}
	return -1, 0
}
