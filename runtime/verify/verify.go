// Package verify compares a device with the oracle, dispatch by dispatch.
//
// It runs an entry on a realistic step: tokens at positions behind a context that
// the plan's own prefill has put into the KV cache. For each dispatch it copies the
// inputs from the device to the oracle, fills the outputs on the device with
// NaNs, runs the dispatch alone on the device and its ops on the oracle, and
// compares every element that the dispatch had to write. The memory around the outputs must
// be unchanged. So each dispatch is judged on its own: earlier dispatches cannot
// spoil its result. Last, it replays the entry as recorded, which must give
// the same bytes as its dispatches one at a time. Then entries of prompts get the tokens of one step
// again, in steps cut at multiples of their grain, and must leave the same bits in caches and states. If all
// entries are compared, the decode entries get the same tokens and must give the same bits.
//
// # Tolerance
//
// Device and oracle add in different orders. A run is the elements that are
// reduced or normalized together: a head, for ops on heads, else a row. An
// element may be off by
//
//	2^-24 * (64 + 4*sqrt(k)) * (largest magnitude of the oracle's run)
//
// where k is the number of products and squares behind the element: the columns of a matrix, the width of a norm, head
// size plus positions of attention. Attention counts 16 times, since an error of a score is in an exponent, and the
// head size also as often as scores are larger than those divided by its root, as in gemma4; so does an error of a
// decay of the delta rule, in every row of the step. The error of a sum in random order grows with sqrt(k); the factors
// leave room for drivers whose exp and division are as bad as Vulkan allows. Special cases:
//
//   - A run of the delta rule's state is a whole head. Each of its rows
//     takes in one element of the value, a sum that may be near 0 by chance and then has no more
//     right digits than its terms leave it.
//   - For an element of a gated product, act(gate) * up, of matrices, the effect of an error of
//     either factor, relative to that factor's row, counts if it is larger.
//   - For an element of attention, and of what its dispatch makes of it, the effect of an error of q counts if it is
//     larger: the size of the largest change of the head, if the elements of q change by a share, over that share.
//   - A matrix whose other operand is float16 may be rounded to float16 as well, which adds 8 * 2^-11
//     to the first factor. If its rows are narrow, the largest magnitude is taken over all
//     rows.
//   - An input in fixed point of 12 or 8 bits adds 2 * 2^-12 or 2 * 2^-8, since a value between two numbers may be
//     rounded to either.
//   - A float16 may also be off by one unit in its last place, and
//     an element of a q8_0 cache by one code plus the effect of the last place of the scale.
//   - Integers must be equal: argmax reads the same logits on both sides. Rows beyond the
//     step's are not compared.
//   - Packed rows are what follows from the codes and the scales that the device chose: the layouts, the totals, and
//     the zeros behind the last row. A scale may be off by 2^-21 of itself, and a code by half a step and 2^-10 of one,
//     since devices divide as badly; and by what an element may be off, if the dispatch computes it.
package verify

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// Device is an executor that lets us look inside.
type Device interface {
	runtime.Executor
	runtime.SpanCopier
	// Dispatch runs dispatch i of an entry alone.
	Dispatch(ctx context.Context, e *plans.Entry, i int) error
	// Read fills dst with the bytes at a; Overwrite is the inverse.
	Read(ctx context.Context, a plans.Arg, dst []byte) error
	Overwrite(ctx context.Context, a plans.Arg, src []byte) error
}

// Options bound the work.
type Options struct {
	Entry  string // only this one; empty for all
	Layers []int  // compare only the dispatches of these, and those of no layer; nil for all
	// NoOracle compares no dispatch, but only what the device computes in several ways: replays, cuts and widths.
	NoOracle bool
	// Only, if not nil, chooses the dispatches to compare instead, and so the entries.
	Only    func(entry string, dispatch int) bool
	Rows    int // rows of a step, at most; 0 leaves that to the entry
	Context int // positions in the KV cache before a step, where the plan has room for them
	// Tokens are those of positions, in all slots; behind them, they are random.
	Tokens []int32
	// Progress, if not nil, is called after every dispatch.
	Progress func(done, total int)
}

// Report is the outcome.
type Report struct {
	Device  string
	Failed  int // results that are not ok
	Results []Result
}

// First returns the first result that is not ok, or nil.
func (r *Report) First() *Result {
	for i := range r.Results {
		if r.Results[i].Difference != nil {
			return &r.Results[i]
		}
	}
	return nil
}

// Result is one dispatch in one step. Its Error is the largest over all of its
// outputs, measured against what is tolerated: both relative to the largest
// magnitude of the run, see the package documentation.
type Result struct {
	Entry      string
	Rows       int // of the step
	Sequences  int // that they are of
	From       int // position of the first row
	Site       string
	Kernel     string
	Output     string // where the error is largest
	Error      Number
	Tolerance  Number
	Difference *Difference // nil if ok
}

// Difference is the worst element of a dispatch that went wrong.
type Difference struct {
	Problem     string
	Value       string // output or region
	Row, Column int
	Device      Number
	Oracle      Number
}

// Number is a float64 that may be NaN or infinite, also in JSON.
type Number float64

// MarshalJSON writes NaN and infinities as strings.
func (n Number) MarshalJSON() ([]byte, error) {
	s := strconv.FormatFloat(float64(n), 'g', -1, 64)
	if n != n || n-n != 0 {
		s = strconv.Quote(s)
	}
	return []byte(s), nil
}

// Replay is the site of the result that compares the recorded entry with its
// dispatches one at a time.
const Replay = "replay"

// Plan compares every dispatch of plan, as opts bound it. The error is not nil
// only when a comparison could not be made.
func Plan(ctx context.Context, plan *plans.Plan, src *plans.Source, dev Device, opts Options) (*Report, error) {
	if len(plan.Modules) == 0 {
		return nil, ir.Unsupported("the plan is for target %s and has no kernels to compare", plan.Header.Target)
	}
	var m *oracle.Machine
	err := src.Read(func() (err error) { m, err = oracle.New(ctx, plan.Program, src, oracle.Options{}); return err })
	if err != nil {
		return nil, err
	}
	v := &verifier{plan: plan, dev: dev, machine: m, opts: opts, report: &Report{Device: dev.Device()}}
	trials, err := v.trials()
	if err != nil {
		return nil, err
	}
	for _, s := range trials {
		v.total += len(s.entry.Dispatches)
	}
	if err := v.fill(ctx, trials); err != nil {
		return nil, fmt.Errorf("fill the KV cache: %w", err)
	}
	for _, s := range trials {
		if err := src.Read(func() error { return v.run(ctx, s) }); err != nil { // the oracle reads weights as it needs them
			return nil, fmt.Errorf("%s: %w", s.entry.Name, err)
		}
	}
	if opts.Only == nil {
		if err := (&cutter{v, dev}).compare(ctx); err != nil {
			return nil, fmt.Errorf("grains of prompts: %w", err)
		}
		if err := (&cutter{v, dev}).compareAlike(ctx); err != nil {
			return nil, fmt.Errorf("entries that are alike: %w", err)
		}
	}
	if opts.Entry == "" && opts.Only == nil {
		if err := v.widths(ctx); err != nil {
			return nil, fmt.Errorf("widths of decode entries: %w", err)
		}
	}
	return v.report, nil
}

type verifier struct {
	plan        *plans.Plan
	dev         Device
	machine     *oracle.Machine
	opts        Options
	report      *Report
	done, total int
}

// run goes through the dispatches of an entry.
func (v *verifier) run(ctx context.Context, s trial) error {
	f := v.plan.Program.Func(s.entry.Name)
	if err := v.write(s); err != nil {
		return err
	}
	state, err := v.keepStates(ctx, s)
	if err != nil {
		return err
	}
	failed := v.report.Failed
	uses := f.Uses()
	for i, g := range f.Groups {
		if v.selected(s.entry.Name, i, g.Name) {
			d := &dispatch{verifier: v, step: s, fn: f, group: g, index: i, outputs: g.Outputs(uses), scratch: g.Scratch(uses)}
			if err := d.check(ctx); err != nil {
				return fmt.Errorf("%s: %w", g.Name, err)
			}
			v.add(d.result)
		} else if err := v.dev.Dispatch(ctx, s.entry, i); err != nil {
			return err
		}
		v.done++
		if v.opts.Progress != nil {
			v.opts.Progress(v.done, v.total)
		}
	}
	if v.report.Failed > failed {
		return nil // the oracle's values took the place of wrong ones
	}
	return v.replay(ctx, s, state)
}

func (v *verifier) add(r Result) {
	if r.Difference != nil {
		v.report.Failed++
	}
	v.report.Results = append(v.report.Results, r)
}

// selected reports whether the dispatch of a call site is to be compared.
func (v *verifier) selected(entry string, dispatch int, site string) bool {
	if v.opts.NoOracle {
		return false
	}
	if v.opts.Only != nil {
		return v.opts.Only(entry, dispatch)
	}
	rest, ok := strings.CutPrefix(site, "blk.")
	if !ok || v.opts.Layers == nil {
		return true
	}
	number, _, _ := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	return err != nil || slices.Contains(v.opts.Layers, layer)
}

// place is where a value lies on the device.
func place(entry string, v *ir.Value) plans.Arg {
	switch {
	case v.IsGlobal():
		return plans.Arg{Space: v.Class.String(), Region: v.Name}
	case v.Class == ir.IO:
		return plans.Arg{Space: "io", Region: plans.IORegion(entry, v)}
	}
	return plans.Arg{Space: "arena", Offset: v.Offset}
}
