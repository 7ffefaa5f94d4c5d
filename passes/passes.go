// Package passes is the pass table of the compiler and the passes that know of a target only what Device tells: they
// turn the program of stage import into fused, scheduled and placed functions. Package codegen joins them with its own
// (passTable): LayWeights, the first of all, and those of stage specialize.
package passes

import (
	"fmt"
	"time"

	"github.com/zincc-dev/zincc/ir"
)

// Pass is one row of the pass table.
type Pass struct {
	Name  string
	Doc   string
	Stage ir.Stage // the stage that the pass works towards
	Run   func(p *ir.Program) error
}

// Order is one constraint on the pass table: Before runs before After.
type Order struct{ Before, After, Reason string }

// Orders are the constraints that hold between the passes of all packages.
var Orders = []Order{
	{"LayWeights", "FuseSSD", "passes from there on ask whether a kernel takes a group, which depends on how its weights lie"},
	{"SplitEntries", "MakeRings", "a ring has room for the rows of the widest entry"},
	{"SplitEntries", "SinkLastRow", "only a prefill entry wants a single row"},
	{"SinkLastRow", "SortExperts", "a single row needs no lists"},
	{"SortExperts", "FuseExperts", "the lists lie between routing and projections"},
	{"SinkLastRow", "FuseExperts", "one row and many rows of experts are grouped in different ways"},
	{"FuseExperts", "FuseProjections", "the shared expert's projections belong to the experts, not to the router that reads the same input"},
	{"FuseDelta", "FuseHeads", "slices and norms around a delta rule belong to it"},
	{"FuseSlices", "FuseHeads", "a slice belongs to the op that reads it"},
	{"FuseGate", "FuseHeads", "the gate's slice belongs to the attention, not to RoPE"},
	{"FuseGate", "SplitAttention", "the merge takes over what was fused behind the attention"},
	{"SinkLastRow", "FuseProjections", "sinking moves ops across groups that fusing joins"},
	{"FuseProjections", "FuseNorm", "a norm moves into a consumer only if it is the only one"},
	{"FuseProjections", "FuseEpilogue", "a GLU joins gate and up once they are one group"},
	{"FusePostNorm", "FuseEpilogue", "the add belongs to the norm, not to a projection whose result it also reads"},
	{"FuseSSD", "FuseSlices", "the slices between convolution and state space model belong to both"},
	{"FuseConv", "FuseSlices", "the slices that a gated convolution reads belong to it"},
	{"FuseConv", "FuseRing", "a projection takes in a convolution with all that is around it"},
	{"FuseNorm", "FuseRing", "a norm moves into projections that are nothing else"},
	{"FuseRing", "NameSites", "a name says what a group computes after all fusing"},
	{"FuseLatent", "FuseHeads", "the rotated part of a head of two belongs to it"},
	{"FuseEpilogue", "NameSites", "a name says what a group computes after all fusing"},
	{"FuseSlices", "FuseStrip", "the slice of the other rows belongs to the GLU"},
	{"FuseNorm", "FuseStrip", "a norm moves into projections that are nothing else"},
	{"FuseStrip", "NameSites", "a name says what a group computes after all fusing"},
	{"FuseHeads", "NameSites", "a name says what a group computes after all fusing"},
	{"NameSites", "SplitAttention", "the halves are named after the whole"},
	{"SplitAttention", "SelectKernels", "each half gets its own kernel"},
	{"SplitAttention", "SplitArgmax", "SplitAttention adds the counters of last-block reductions"},
	{"SplitArgmax", "SelectKernels", "the kernel depends on the parts"},
	{"NameSites", "AddCandidates", "the dispatch has a name of its own"},
	{"AddCandidates", "SelectKernels", "the dispatch gets a kernel"},
	{"SplitDelta", "SelectKernels", "each half gets its own kernel"},
	{"SplitAttention", "ApplyWants", "SplitAttention adds the counters of last-block reductions, and its halves round their input"},
	{"ApplyWants", "ProjectBeside", "the moved projection rounds its input as it did"},
	{"ProjectBeside", "SelectKernels", "kernels depend on what a group has"},
	{"ApplyWants", "SelectKernels", "types and workspaces decide which kernels there are"},
	{"SelectKernels", "AssignStages", "kernels may order what the ops leave open"},
	{"AssignStages", "OrderLaunches", "who shares a stage decides order and queues"},
	{"OrderLaunches", "OverlapCalls", "which dispatches begin early, and behind which other, follows from their order"},
	{"OrderLaunches", "PlaceArena", "lifetimes are counted in stages, from what a dispatch waits for"},
}

// Device is what the passes of this package know about the target.
type Device struct {
	Matrices bool // many rows are multiplied on matrix units
	// Apart: dispatches are so cheap that saving some is not worth a kernel for each mix of weight types. Each
	// projection is a dispatch, except that gate and up of a GLU share one if they have one type.
	Apart bool
	// FloatsApart: projections of so many rows (few) and so many products or more are multiplied together in kernels
	// that take no weights in float32, which stay beside them; zero rows: none are.
	FloatsApart struct {
		Rows int
		Work int64
	}
	// Queues: dispatches of a stage run side by side, on a queue each, so one may use units that others leave idle.
	Queues bool
	// Overlaps: a dispatch may begin while the one before it runs.
	Overlaps bool
	// Widest is the rows of the widest exact step.
	Widest  int
	Kernels Kernels
}

// Kernels answers what kernels of the device compute. It changes nothing.
type Kernels interface {
	// Computes reports whether a kernel that is worth considering computes g, a group of f.
	Computes(p *ir.Program, f *ir.Func, g *ir.Group) bool
	// Unites reports whether the down projection of experts has a kernel in f that reads the weights of an expert once
	// for all rows, and whose results are those of narrower steps, as are those of the shared expert's; shared is nil
	// if there is none.
	Unites(f *ir.Func, down, shared *ir.Op) bool
	// Finishes reports whether products with weights take in an op behind them that computes each element from one of
	// theirs, in exact steps.
	Finishes(op *ir.Op) bool
	// NormsRuns reports whether a linear op of rows rows (few) can take in the norm over runs that it reads.
	NormsRuns(norm, linear *ir.Op, rows int) bool
}

// EarlyOf returns how dispatches of f begin that begin early on a device, which overlaps them or not. In a step of few
// rows weights are most of what a dispatch reads, so it loads some before it waits.
func EarlyOf(f *ir.Func, overlaps bool) ir.Early {
	switch {
	case !overlaps:
		return ir.NotEarly
	case f.IsDecode():
		return ir.LoadsFirst
	}
	return ir.WaitsFirst
}

// Table returns the passes of this package in order; the passes of stage
// specialize belong between stage fuse and stage schedule.
func Table(entries []Entry, d Device) []Pass {
	return []Pass{
		{"SplitEntries", "one function per entry of the plan, with its own bound on the rows of a step", ir.Fuse,
			func(p *ir.Program) error { return splitEntries(p, entries) }},
		{"MakeRings", "layers with a sliding window keep only the cached positions that a step can see, and some to go back", ir.Fuse, makeRings},
		{"SinkLastRow", "behind the last attention, prefill computes only the row whose logits are wanted", ir.Fuse, each(sinkLastRow)},
		{"SortExperts", "experts of many rows get a list of the rows that chose each", ir.Fuse, each(sortExperts)},
		{"FuseExperts", "routing, the experts' projections and the sums over experts become two dispatches", ir.Fuse,
			each(func(f *ir.Func) error { return fuseExperts(f, d) })},
		{"FuseDelta", "the ops that prepare the operands of a delta rule and normalize its result join it", ir.Fuse, each(fuseDelta)},
		{"FuseSSD", "in exact steps, the convolution before a state space model and the gate after it join it", ir.Fuse,
			func(p *ir.Program) error { return fuseSSD(p, d) }},
		{"FuseConv", "in exact steps, the products before and after a gated convolution and the write of its ring join it", ir.Fuse,
			func(p *ir.Program) error { return fuseConv(p, d) }},
		{"FuseLatent", "the heads of latent attention, of two parts each, are normed, rotated and written to the cache by one dispatch", ir.Fuse,
			func(p *ir.Program) error { return fuseLatent(p, d) }},
		{"FuseGate", "a gate on the attention's result moves into the attention", ir.Fuse, each(fuseGate)},
		{"FuseSlices", "slices disappear. A product or GLU reads two in place, a convolution or state space model one; in exact steps, so does a product with a matrix per head", ir.Fuse,
			func(p *ir.Program) error { return fuseSlices(p, d) }},
		{"FuseProjections", "linear ops over one input become one dispatch", ir.Fuse,
			each(func(f *ir.Func) error { return fuseProjections(f, d) })},
		{"FusePostNorm", "a norm behind attention or FFN takes in the residual add that follows it, and a second norm of the sum with its own", ir.Fuse,
			func(p *ir.Program) error { return fusePostNorm(p, d) }},
		{"FuseNorm", "a row norm moves into the only dispatch that reads it", ir.Fuse,
			each(func(f *ir.Func) error { return fuseNorm(f, d) })},
		{"FuseEpilogue", "GLU, activation and residual add move into the dispatch that produces their operand", ir.Fuse, each(func(f *ir.Func) error { return fuseEpilogue(f, d) })},
		{"FuseStrip", "in exact steps, a GLU of a projection's result and a slice of other rows moves into the projection", ir.Fuse,
			func(p *ir.Program) error { return fuseStrip(p, d) }},
		{"FuseRing", "a gated convolution of an exact step moves into the projection that makes what it convolves", ir.Fuse,
			func(p *ir.Program) error { return fuseRing(p, d) }},
		{"FuseHeads", "q/k norm, RoPE and KV writes of a layer become one dispatch", ir.Fuse, each(fuseHeads)},
		{"FuseArgmax", "the dispatch that chooses the token also advances the step block", ir.Fuse, each(fuseArgmax)},
		{"NameSites", "every dispatch gets a name from its weights and ops", ir.Fuse, nameSites},
		{"AssignStages", "independent dispatches share a stage; a barrier stands between stages", ir.Schedule, each(func(f *ir.Func) error {
			assignStages(f)
			if d.Queues && f.Class == ir.PromptStep {
				fillStages(f)
			}
			if d.Queues && f.Class == ir.ExactStep {
				inTurn(f)
			}
			return nil
		})},
		{"OrderLaunches", "dispatches get an order of launches: what each waits for, its queue, and whether it begins early", ir.Schedule, each(func(f *ir.Func) error {
			orderLaunches(f, d)
			return nil
		})},
		{"PlaceArena", "values get arena offsets from their lifetimes", ir.Place, placeArena},
	}
}

func each(fn func(f *ir.Func) error) func(p *ir.Program) error {
	return func(p *ir.Program) error {
		for _, f := range p.Funcs {
			if err := fn(f); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return nil
	}
}

// Timing is the time of one pass and its effect.
type Timing struct {
	Pass    string
	Stage   ir.Stage
	Time    time.Duration
	Changed bool
}

// Options control Run.
type Options struct {
	StopAfter ir.Stage // the last stage to run
	// Dump, if set, is called after every pass that changed the program.
	Dump func(s Snapshot) error
	// Progress, if set, is called before every pass: so many of all are done.
	Progress func(done, total int)
}

// Snapshot is the program after a pass.
type Snapshot struct {
	Number  int // of the pass in the table, from 1
	Pass    *Pass
	Program *ir.Program
	Text    string
}

// Run applies the passes of table whose stage p has not reached, up to
// o.StopAfter, and verifies the program after each.
func Run(p *ir.Program, table []Pass, o Options) ([]Timing, error) {
	if err := CheckOrder(table); err != nil {
		return nil, err
	}
	var times []Timing
	from := p.Stage
	text := ""
	if o.Dump != nil {
		text = ir.Print(p)
	}
	for i, pass := range table {
		if pass.Stage <= from || pass.Stage > o.StopAfter {
			continue
		}
		if o.Progress != nil {
			o.Progress(i, len(table))
		}
		start := time.Now()
		p.Stage = pass.Stage
		if err := pass.Run(p); err != nil {
			return nil, fmt.Errorf("pass %s: %w", pass.Name, err)
		}
		t := Timing{Pass: pass.Name, Stage: pass.Stage, Time: time.Since(start)}
		verify := ir.VerifyStructure
		if last := i+1 == len(table) || table[i+1].Stage != pass.Stage; last {
			verify = ir.Verify // what the stage promises holds at its end
		}
		if err := verify(p); err != nil {
			return nil, fmt.Errorf("pass %s: %w", pass.Name, err)
		}
		if o.Dump != nil {
			now := ir.Print(p)
			t.Changed = now != text
			if t.Changed {
				if err := o.Dump(Snapshot{i + 1, &pass, p, now}); err != nil {
					return nil, err
				}
			}
			text = now
		}
		times = append(times, t)
	}
	return times, nil
}

// CheckOrder reports the first constraint that table violates.
func CheckOrder(table []Pass) error {
	at := map[string]int{}
	for i, p := range table {
		if i > 0 && p.Stage < table[i-1].Stage {
			return fmt.Errorf("pass %s of stage %s stands after stage %s", p.Name, p.Stage, table[i-1].Stage)
		}
		at[p.Name] = i + 1
	}
	for _, o := range Orders {
		if b, a := at[o.Before], at[o.After]; b > 0 && a > 0 && b > a {
			return fmt.Errorf("pass %s must run before %s: %s", o.Before, o.After, o.Reason)
		}
	}
	return nil
}
