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
	{"SortExperts", "FuseExperts", "the sorting stands between routing and projections, which then are no single dispatch"},
	{"SinkLastRow", "FuseExperts", "one row and many rows of experts are grouped in different ways"},
	{"FuseExperts", "FuseProjections", "the shared expert's projections belong to the experts, not to the router that reads the same input"},
	{"FuseDelta", "FuseHeads", "slices and norms around a delta rule belong to it"},
	{"FuseSlices", "FuseHeads", "a slice belongs to the op that reads it"},
	{"FuseGate", "FuseHeads", "the gate's slice belongs to the attention, not to RoPE"},
	{"FuseGate", "SplitAttention", "the merge takes over what was fused behind the attention"},
	{"SinkLastRow", "FuseProjections", "SinkLastRow rebuilds single ops, which must not be fused yet"},
	{"FuseProjections", "FuseNorm", "a norm moves into a consumer only if it is the only one"},
	{"FuseProjections", "FuseEpilogue", "a GLU joins gate and up once they are one group"},
	{"FusePostNorm", "FuseEpilogue", "the add belongs to the norm, not to a projection whose result it also reads"},
	{"FuseSSD", "FuseSlices", "the slices between convolution and state space model belong to both"},
	{"FuseConv", "FuseSlices", "the slices that a gated convolution reads belong to it"},
	{"FuseConv", "FuseRing", "FuseRing joins what FuseConv has made with a projection"},
	{"FuseNorm", "FuseRing", "a norm moves only into groups of projections, to which FuseRing adds other ops"},
	{"FuseRing", "NameSites", "a name says what a group computes after all fusing"},
	{"FuseLatent", "FuseHeads", "the rotated part of a head of two belongs to it"},
	{"FuseEpilogue", "NameSites", "a name says what a group computes after all fusing"},
	{"FuseSlices", "FuseStrip", "the slice of the other operand belongs to the GLU"},
	{"FuseNorm", "FuseStrip", "a norm moves only into groups of projections, to which FuseStrip adds other ops"},
	{"FuseStrip", "NameSites", "a name says what a group computes after all fusing"},
	{"FuseHeads", "NameSites", "a name says what a group computes after all fusing"},
	{"NameSites", "SplitAttention", "split and merge are named after the attention"},
	{"SplitAttention", "SelectKernels", "split and merge get kernels of their own"},
	{"SplitAttention", "SplitArgmax", "SplitAttention adds the counters by which the last workgroup of a reduction is found"},
	{"SplitArgmax", "SelectKernels", "the kernel depends on the parts"},
	{"NameSites", "AddCandidates", "AddCandidates names its dispatch itself"},
	{"AddCandidates", "SplitArgmax", "the choice of rows that candidates decide has few parts"},
	{"AddCandidates", "SelectKernels", "the added dispatch gets a kernel"},
	{"SplitDelta", "SelectKernels", "the two dispatches of a rule get kernels of their own"},
	{"SplitAttention", "ApplyWants", "split-K products need the counters that SplitAttention adds, and a merge can round its result"},
	{"ApplyWants", "FuseHorizontally", "the projection moves with the rounding of its input, which ApplyWants adds"},
	{"FuseHorizontally", "SelectKernels", "a group's kernel depends on its ops"},
	{"ApplyWants", "SelectKernels", "types and workspaces decide which kernels there are"},
	{"SelectKernels", "AssignStages", "kernels with the same counters must not share a stage"},
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
	// FollowParts reports whether kernels of prompts follow the slots of steps with parts, for all ops of p.
	FollowParts(p *ir.Program) bool
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
		{"SplitEntries", "the one function of the import becomes a function for each entry of the plan: `decode/1`, `prefill/256` and so on. Each bounds the rows of its steps, so kernels can be chosen for so many", ir.Fuse,
			func(p *ir.Program) error { return splitEntries(p, entries, d.Kernels) }},
		{"MakeRings", "a layer whose attention has a sliding window gets a cache of fixed length, a ring: the positions that a step can see, and some more so that a sequence can be rolled back. Its memory no longer grows with the context", ir.Fuse, makeRings},
		{"SinkLastRow", "a prefill entry needs the logits of its last row only, or of those of several prompts. Ops behind the last attention that work row by row and lead only there are computed for these rows", ir.Fuse, sinkLastRows},
		{"SortExperts", "in steps of many rows the rows are sorted by the experts that they chose. So a kernel reads the weights of an expert once, for all of its rows", ir.Fuse, each(sortExperts)},
		{"FuseExperts", "the ops between a router's scores and the sum of the experts' results become two dispatches in exact steps: one chooses experts and multiplies with gate and up, one multiplies with down and adds up. In steps of many rows only the GLU joins the projections, and sum, gate and residual become one dispatch", ir.Fuse,
			each(func(f *ir.Func) error { return fuseExperts(f, d) })},
		{"FuseDelta", "what prepares the operands of a delta rule for it alone (convolution, slices, norms, decay) joins it, as does the gated norm of its result. In steps of many rows convolution and norm stay dispatches of their own, since they work on all rows at once and the rule does not", ir.Fuse, each(fuseDelta)},
		{"FuseSSD", "in exact steps, a state space model takes in the convolution before it, the gate after it and the slices that these read, where a kernel computes that. Each head then needs only its own channels, and two dispatches are saved", ir.Fuse,
			func(p *ir.Program) error { return fuseSSD(p, d) }},
		{"FuseConv", "in exact steps, a gated convolution takes in the product before it, the product after it and the write of its ring, the past inputs. One dispatch does what were four", ir.Fuse,
			func(p *ir.Program) error { return fuseConv(p, d) }},
		{"FuseLatent", "latent attention puts each head together of a part with positions and one without. The norms, rotations and the write to the cache that make these parts become one dispatch", ir.Fuse,
			func(p *ir.Program) error { return fuseLatent(p, d) }},
		{"FuseGate", "a gate that multiplies the result of attention joins the attention, with the slice that makes it", ir.Fuse, each(fuseGate)},
		{"FuseSlices", "a slice copies part of a row. It joins the only op that reads it, which then reads that part of the row in place: a product of rows, a GLU, a convolution or a state space model; in exact steps also a product with a matrix for each head, where a kernel computes that", ir.Fuse,
			func(p *ir.Program) error { return fuseSlices(p, d) }},
		{"FuseProjections", "projections that read the same input, such as q, k and v or gate and up, become one dispatch. Float32 weights stay apart from others in steps of many rows, where kernels round the others to f16", ir.Fuse,
			each(func(f *ir.Func) error { return fuseProjections(f, d) })},
		{"FusePostNorm", "a norm whose result is only added to the residual takes in that add, and a factor on the sum. If another norm alone reads the sum, it joins, too: two norms and an add are then one dispatch", ir.Fuse,
			func(p *ir.Program) error { return fusePostNorm(p, d) }},
		{"FuseNorm", "a norm of whole rows joins the dispatch that reads it, or both of two readers, each of which then computes it. That costs less than a barrier. It stays where the readers multiply rows rounded to f16, which must be normed before", ir.Fuse,
			each(func(f *ir.Func) error { return fuseNorm(f, d) })},
		{"FuseEpilogue", "what reads only the result of a projection joins it: the GLU of gate and up, an activation, the residual add. The result need not go to memory and back", ir.Fuse, each(func(f *ir.Func) error { return fuseEpilogue(f, d) })},
		{"FuseStrip", "in exact steps, a projection whose result is one operand of a GLU takes in the GLU; the other operand, or a slice of one, is another row in memory. FuseEpilogue takes only GLUs whose two operands one dispatch makes", ir.Fuse,
			func(p *ir.Program) error { return fuseStrip(p, d) }},
		{"FuseRing", "in exact steps, a gated convolution joins the projection that makes all of its channels, where a kernel computes both: each channel needs only the weights' rows of its own. So the past inputs, its ring, are read and written by the projection", ir.Fuse,
			func(p *ir.Program) error { return fuseRing(p, d) }},
		{"FuseHeads", "what works on single heads of q, k and v in a layer becomes one dispatch: norms, rotations and the writes to the caches", ir.Fuse, each(fuseHeads)},
		{"FuseArgmax", "the choice of the next token also advances the step block: it writes the token and the next position there, behind all that read them. So the next step can run without the host", ir.Fuse, each(fuseArgmax)},
		{"NameSites", "every dispatch gets its name, such as `blk.0.attn_output`, from the weights and ops that it has after fusing. Reports and tuning tables speak of these", ir.Fuse, nameSites},
		{"AssignStages", "a dispatch gets the earliest stage behind all that it depends on. Those of one stage do not wait for each other, and a barrier stands between stages. On devices with queues some move to a later stage, where units would be idle, or take turns", ir.Schedule, each(func(f *ir.Func) error {
			assignStages(f)
			switch {
			case d.Queues && f.Class == ir.ExactStep:
				inTurn(f)
			case d.Queues:
				fillStages(f)
			}
			return nil
		})},
		{"OrderLaunches", "the dispatches of each stage get the order in which they are launched, a queue each where the device has several, and the number of stages that they wait for. A dispatch that is alone in its stage may begin while the one before it runs, on devices that can do so", ir.Schedule, each(func(f *ir.Func) error {
			orderLaunches(f, d)
			return nil
		})},
		{"PlaceArena", "values that one dispatch makes and another reads get offsets in the arena, the scratch memory of a step. Two share bytes only if a barrier lies between the last use of one and the first of the other", ir.Place, placeArena},
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
