// Package oracle evaluates programs of the op IR in plain Go. It is the truth
// that device kernels are compared with, so every op is written from the formula
// in its row of the op table; it is also the executor for hosts without a GPU,
// so matrix products and attention are blocked and spread over the cores.
//
// Activations are float32. Sums of norms and softmax are float64; matrix products
// and attention sum in float32. A result does not depend on the number of
// threads or on how the tokens are split into steps.
package oracle

import (
	"context"
	"fmt"
	"runtime"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/ir"
)

// Source supplies weights.
type Source interface {
	// Weight returns the elements of the weight global name, row-major in the
	// dtype and shape of its type. The machine keeps and never writes the slice.
	Weight(name string) ([]byte, error)
}

// Options tune a machine; they change no result.
type Options struct {
	Threads int // 0 means GOMAXPROCS
	// CacheBytes bounds the memory for matrices kept as float32. Rows of the
	// others are dequantized at each use.
	CacheBytes int64
	// MostBytes bounds what New allocates; 0 for no bound.
	MostBytes int64
}

// Machine holds the memory of one program and runs its functions. It is not safe
// for concurrent use.
type Machine struct {
	prog    *ir.Program
	threads int
	budget  int64 // what is left of Options.CacheBytes

	weights map[*ir.Value]*matrix
	values  map[*ir.Value][]float32 // what is held now; see memory.go
	free    map[int][][]float32     // temporaries by length
	n       []int32                 // @n, nil when the program has none
	pos     []int32                 // @pos and @slot, of the rows; nil likewise
	slot    []int32
	funcs   map[*ir.Func]*lifetimes
	scratch [][]float32 // one a worker
}

// New checks p, allocates its globals, zeroed, and computes its tables. It works
// at every stage.
func New(ctx context.Context, p *ir.Program, src Source, o Options) (*Machine, error) {
	if err := ir.Verify(p); err != nil {
		return nil, err
	}
	if need, err := Bytes(p); err != nil {
		return nil, err
	} else if o.MostBytes > 0 && need > o.MostBytes {
		return nil, fmt.Errorf("context %d needs %.2f GiB of memory, there are %.2f GiB", p.Ctx, float64(need)/(1<<30), float64(o.MostBytes)/(1<<30))
	}
	m := &Machine{
		prog:    p,
		threads: o.Threads,
		budget:  o.CacheBytes,
		weights: map[*ir.Value]*matrix{},
		values:  map[*ir.Value][]float32{},
		free:    map[int][][]float32{},
		funcs:   map[*ir.Func]*lifetimes{},
	}
	if m.threads <= 0 {
		m.threads = runtime.GOMAXPROCS(0)
	}
	m.scratch = make([][]float32, m.threads)
	for _, g := range p.Globals {
		if err := m.addGlobal(ctx, g, src); err != nil {
			return nil, fmt.Errorf("global @%s: %w", g.Name, err)
		}
	}
	if err := m.placeArena(); err != nil {
		return nil, err
	}
	for _, f := range p.Funcs {
		m.funcs[f] = findLifetimes(f)
	}
	if g := p.Global(ir.StepN); g != nil {
		if g.Class != ir.Step || !g.Type.Equal(ir.MakeType(ir.I32, 1)) {
			return nil, fmt.Errorf("global @n: %s %s is not step i32[1]", g.Class, g.Type)
		}
		m.n = m.Ints(g)
	}
	m.pos, m.slot = m.rowInts(ir.StepPos), m.rowInts(ir.StepSlot)
	return m, nil
}

// rowInts returns the elements of the step global of that name, if it is i32[T], else nil.
func (m *Machine) rowInts(name string) []int32 {
	if g := m.prog.Global(name); g != nil && g.Class == ir.Step && g.Type.Equal(ir.MakeType(ir.I32, ir.T)) {
		return m.Ints(g)
	}
	return nil
}

// Run runs all groups of f in order on the current step block. The step has @n rows, or f.Rows in a program without @n,
// which belong to one or many sequences as f says. After an error the values that the groups have written are
// undefined.
func (m *Machine) Run(ctx context.Context, f *ir.Func) error {
	return m.RunGroups(ctx, f, 0, len(f.Groups))
}

// RunGroups is Run for groups from to to, behind a run of those before them.
func (m *Machine) RunGroups(ctx context.Context, f *ir.Func, from, to int) error {
	if m.funcs[f] == nil {
		return fmt.Errorf("func %q is not of this program", f.Name)
	}
	if err := m.checkRows(f); err != nil {
		return fmt.Errorf("func %q: %w", f.Name, err)
	}
	for i, g := range f.Groups[:to] {
		if i < from {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("func %q: %w", f.Name, err)
		}
		if err := m.runGroup(f, g, i, nil); err != nil {
			return err
		}
		m.release(m.funcs[f].last[i])
	}
	return nil
}

// RunGroup runs one group of f. Everything that the group reads must have storage: globals, values
// with a place in the arena, results of earlier groups, and values that Write has set.
func (m *Machine) RunGroup(f *ir.Func, g *ir.Group) error { return m.RunGroupWith(f, g, nil) }

// RunGroupWith is like RunGroup and also calls then, if it is not nil, after each op.
func (m *Machine) RunGroupWith(f *ir.Func, g *ir.Group, then func(op *ir.Op) error) error {
	for i, h := range f.Groups {
		if g == h && m.funcs[f] != nil {
			return m.runGroup(f, g, i, then)
		}
	}
	return fmt.Errorf("func %q: group %q is not of this program", f.Name, g.Name)
}

// Again evaluates an op that has just been evaluated, on what its operands hold now.
func (m *Machine) Again(f *ir.Func, op *ir.Op) error { return m.eval(f, op) }

func (m *Machine) runGroup(f *ir.Func, g *ir.Group, i int, then func(op *ir.Op) error) error {
	for _, op := range g.Ops {
		if err := m.eval(f, op); err != nil {
			return fmt.Errorf("func %q: group %d %q: %s: %w", f.Name, i, g.Name, op.Kind.Name, err)
		}
		if then != nil {
			if err := then(op); err != nil {
				return err
			}
		}
	}
	m.release(m.funcs[f].inner[i])
	return nil
}

func (m *Machine) eval(f *ir.Func, op *ir.Op) error {
	n, err := m.rowsOf(f)
	if err != nil {
		return err
	}
	for i, a := range op.Args {
		switch {
		case m.weights[a] == nil && m.values[a] == nil:
			return fmt.Errorf("operand %s has no value yet", op.Kind.Params[i])
		case m.weights[a] != nil && a.Type.DType == ir.I32:
			return fmt.Errorf("operand %s is a weight of integers", op.Kind.Params[i])
		}
	}
	if op.Result != nil {
		if err := m.Hold(f, op.Result); err != nil {
			return err
		}
	}
	return mapped.Read(func() error { return evaluators[op.Kind.Name](&call{Machine: m, op: op, n: n, parts: f.Part > 0}) }) // of weights
}

// call is the evaluation of one op.
type call struct {
	*Machine
	op    *ir.Op
	n     int  // rows of this step
	parts bool // some of them may be dead: ir.Func.Part
}

func (c *call) arg(i int) []float32 { return c.floats(c.op.Args[i]) }
func (c *call) result() []float32   { return c.floats(c.op.Result) }

// ints returns an operand of which the op table may not have checked the dtype.
func (c *call) ints(i int) ([]int32, error) {
	if v := c.op.Args[i]; v.Type.DType != ir.I32 {
		return nil, fmt.Errorf("%s: %s is not i32", c.op.Kind.Params[i], v.Type)
	}
	return asInts(c.arg(i)), nil
}

// rows is the number of rows of operand i that this step has.
func (c *call) rows(i int) int {
	switch d := c.op.Args[i].Type.Shape[0]; d {
	case ir.T:
		return c.n
	case ir.L:
		return c.prog.Ctx
	default:
		return int(d)
	}
}

func width(v *ir.Value) int { return int(v.Type.Last()) }

// inRange fails unless the first rows of operand i lie in [0, limit).
func (c *call) inRange(i, rows, limit int) error {
	for r, x := range asInts(c.arg(i))[:rows] {
		if x < 0 || int(x) >= limit {
			return fmt.Errorf("row %d: %s %d is not in [0, %d)", r, c.op.Kind.Params[i], x, limit)
		}
	}
	return nil
}

// slots fails unless the first rows of operand i are slots of so many sequences, or of dead rows where there are some.
func (c *call) slots(i, rows, sequences int) error {
	for r, x := range asInts(c.arg(i))[:rows] {
		if !(c.parts && x == ir.NoSlot) && (x < 0 || int(x) >= sequences) {
			return fmt.Errorf("row %d: %s %d is not in [0, %d)", r, c.op.Kind.Params[i], x, sequences)
		}
	}
	return nil
}

// evaluators has one row for each op of the op table.
var evaluators = map[string]func(c *call) error{
	"embed":            embed,
	"rmsnorm":          rmsnorm,
	"workspace":        func(*call) error { return nil },
	"linear":           linear,
	"half":             half,
	"tile":             tile,
	"untile":           untile,
	"fixed12":          fixedPoint(2047, 256),
	"fixed8":           fixedPoint(127, 32),
	"squares":          squares,
	"pack12":           pack12,
	"unpack12":         unpack12,
	"linear_parts":     linearParts,
	"add_parts":        addParts,
	"bfloat16":         bfloat16,
	"add":              add,
	"mul":              mul,
	"scale":            scale,
	"softcap":          softcap,
	"glu":              glu,
	"rope":             rope,
	"hadamard":         hadamard,
	"kvwrite":          kvwrite,
	"attention":        attention,
	"attention_split":  attentionSplit,
	"attention_merge":  attentionMerge,
	"last_row":         lastRow,
	"take_rows":        takeRows,
	"argmax":           argmax,
	"argmax_split":     argmaxSplit,
	"argmax_merge":     argmaxMerge,
	"candidates":       candidates,
	"advance":          advance,
	"topk":             topk,
	"route":            route,
	"expert_linear":    expertLinear,
	"expert_bias":      expertBias,
	"expert_scale":     expertScale,
	"expert_order":     expertOrder,
	"expert_offsets":   expertOffsets,
	"expert_sum":       expertSum,
	"gate_rows":        gateRows,
	"slice":            slice,
	"head_slice":       headSlice,
	"gate":             gate,
	"sigmoid":          sigmoid,
	"l2norm":           l2norm,
	"gated_rmsnorm":    gatedRMSNorm,
	"decay":            decay,
	"conv1d":           conv1d,
	"conv_write":       convWrite,
	"deltanet":         deltanet,
	"delta_chunk":      deltaChunks,
	"deltanet_chunked": deltanetChunked,
	"head_cut":         headCut,
	"head_join":        headJoin,
	"head_ids":         headIDs,
	"ssd":              ssd,
	"relu2":            relu2,
}
