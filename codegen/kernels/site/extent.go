package site

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// Indexable reports whether a kernel can index a cache in units of vec elements.
func Indexable(s *Site, cache *ir.Value, vec int) bool {
	n, err := cache.Type.Elements(s.Func.Rows, s.Program.Ctx)
	if cache.Type.DType == ir.Q8_0 {
		vec = 1 // behind the codes, scales are counted
	}
	return err == nil && n/int64(vec) < 1<<31
}

// Rows of a step. A value of T rows holds up to Func.Rows rows; a step computes the first
// @n. The rest hold what earlier steps left there, so a kernel
// writes no row at or beyond @n and follows no position or slot of one. It loads
// @n along with what else it needs before it looks at any of it: a load that waits
// for another costs a stage of a decoded token a tenth of its time.

// Extent is the rows of a value in a site.
type Extent struct {
	Max int       // rows that it has room for
	N   *ir.Value // step value with the rows of this step; nil when it is max, as it is when that is 1
	// Run is how many of them may be of one sequence.
	Run int
	// Part is ir.Func.Part: runs begin at its multiples, and rows behind them are dead.
	Part int
	// Exact: each row has the bits that it has alone.
	Exact bool
}

// ExtentOf returns the rows of v. It fails for values of T rows in a program
// without @n. Where kernels are few, those of one row (which every step has) read @n, too, and are the same as
// kernels of many rows.
func ExtentOf(s *Site, v *ir.Value) (Extent, bool) {
	n := s.Program.Global(ir.StepN)
	if s.Target.FewKernels && n != nil && (v.Type.Shape[0] == 1 || s.Func.Rows == 1) {
		return Extent{Max: 1, N: n, Run: 1, Exact: true}, true
	}
	if v.Type.Shape[0] != ir.T {
		rows := int(v.Type.Shape[0])
		return Extent{Max: rows, Run: rows, Exact: s.Func.Exact(v)}, true
	}
	if s.Func.Rows == 1 && n != nil { // a step has one row at least
		return Extent{Max: 1, Run: 1, Exact: true}, true
	}
	return Extent{Max: s.Func.Rows, N: n, Run: s.Func.Run, Part: s.Func.Part, Exact: s.Func.Exact(v)}, n != nil
}

// Tiled reports whether there is room for more rows than one sequence can have: kernels look at the rows of a run, and
// have its rows on an axis of the grid.
func (e Extent) Tiled() bool { return e.Run < e.Max }

// RunKey is the part of a module key of kernels that look for the rows of a run.
func (e Extent) RunKey() string {
	if !e.Tiled() {
		return ""
	}
	return fmt.Sprintf(" of=%d", e.Max)
}

// PartKey is the part of a module key of kernels that follow slots.
func (e Extent) PartKey() string {
	if e.Part == 0 {
		return ""
	}
	return " parts"
}

// FollowsParts reports whether a kernel that takes the slot of the first of so many rows for that of all follows the
// slots of a step with parts.
func (e Extent) FollowsParts(rows int) bool { return e.Part > 0 && rows > 0 && e.Part%rows == 0 }

// Dead reports in a kernel whether a row with that slot is of no sequence; false where all rows are of one.
func (e Extent) Dead(b *kernel.Builder, slot kernel.Value) kernel.Value {
	if e.Part == 0 {
		return b.Bool(false)
	}
	return b.Eq(slot, uint32(noSlot))
}

// noSlot is ir.NoSlot as kernels load it.
const noSlot = 1<<32 + ir.NoSlot

// Key is the part of a module key that tells whether the kernel reads @n.
func (e Extent) Key() string {
	if e.N == nil {
		return ""
	}
	return " n"
}

// Declare declares the argument or constant from which the kernel knows the rows of a step.
func (e Extent) Declare(s *Signature) StepRows {
	if e.N == nil {
		return StepRows{rows: s.U32("rows", e.Max, 1, "rows of a step")}
	}
	return StepRows{n: s.Read("n", e.N)}
}

// StepRows is an extent in a kernel.
type StepRows struct {
	n    *kernel.Buffer
	rows kernel.Value // where there is no n
}

// Load returns the rows of this step.
func (r StepRows) Load(b *kernel.Builder) kernel.Value {
	if r.n == nil {
		return r.rows
	}
	return r.n.Load(kernel.U32, 0)
}
