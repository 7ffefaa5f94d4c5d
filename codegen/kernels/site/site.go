// Package site is the interface between families of kernels and the compiler: the dispatch group that
// needs a kernel, the candidates for it, the rows of a step, grids, and the last-block
// reduction of workgroups that share a result.
package site

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Site is a dispatch group that needs a kernel.
type Site struct {
	Program *ir.Program
	Func    *ir.Func
	Group   *ir.Group
	Outputs []*ir.Value // results of the group that others read
	Target  *target.Target
}

// Candidate is one way to compute a site.
type Candidate struct {
	Family string // its row of the kernel table
	Kernel string // module key: the family and all that shapes the code
	Wave   int    // subgroup size
	// Order names the order of the candidate's sums; families may share it. Shape tells it from
	// the site's other candidates of that order. Both are short, and empty where there is
	// only one.
	Order, Shape string
	// Sums is what else the sums of a row of a prompt depend on, such as how many workgroups share its elements. If the
	// family leaves it empty, they depend on the shape. From Candidates on it names all that the sums depend on, the
	// order included: candidates that share it give the same bits.
	Sums    string
	Build   func() (*kernel.Func, error)
	declare Kernel // what Implement was given
	Grid    [3]int
	// Operands are the kernel's arguments, Consts its specialization constants, both in its order; Units
	// says what each constant counts. Implement sets them and Build.
	Operands []Operand
	Consts   []ir.Const
	Units    []string
	// Sequences is how many sequences the kernel takes in a step. It matters only in groups that
	// use slots.
	Sequences ir.Sequences
	// Parts: the kernel follows the slots of steps with parts (ir.Func.Part), too.
	Parts bool
	// Grain is how many neighbours among the rows of a prompt's step share what a row's bits depend on. Families whose
	// row of the table says a number leave it 0.
	Grain int
	Cover []plans.Cover
	// Tiling is what the time of a tiled matrix product depends on; nil for other kernels.
	Tiling *Tiling
	// Work is what else the time of a kernel depends on, for predictions alone.
	Work Work
	// Lanes is the lanes of a workgroup, Rows the rows of x of the group, and Kept the elements of these rows that a
	// lane keeps; 0 if the family does not say.
	Lanes, Rows, Kept int
	// Staging is the buffer of copied weights in shared memory; nil if there is none.
	Staging *Staging
	// AtOnce: a subgroup loads all of its rows before it multiplies the first.
	AtOnce bool
	// Timed: only times on a device tell which of several such shapes is best.
	Timed bool
	// Room is the number of lanes of a compute unit for which registers must suffice, if the driver's
	// compiler accepts such a bound; 0: it chooses.
	Room int
	// Early: where kernels load before they wait, this one loads more than weights and tables.
	Early bool
	// EarlyOf names the argument whose early load is worth that the dispatch before lets this one begin later; empty:
	// any.
	EarlyOf string
	// Form is what package kernels adds to what the family wrote, and Prefetches the parts of a later dispatch's
	// weights that this means. Families leave both empty.
	Form       ir.Form
	Prefetches []Prefetch
}

// Mixes reports whether the kernel takes rows of different sequences in steps of f.
func (c *Candidate) Mixes(f *ir.Func) bool {
	if f.Part > 0 {
		return c.Parts
	}
	return c.Sequences == ir.ManySequences
}

// RoomFor is the number of lanes of a compute unit for which registers must suffice: that of the form, else the
// candidate's own; 0: the driver's compiler chooses.
func (c *Candidate) RoomFor() int { return cmp.Or(c.Form.Room, c.Room) }

// Arguments are the operands and what the kernel prefetches, each once: what a call passes.
func (c *Candidate) Arguments() []Operand {
	list := slices.Clip(c.Operands)
	for _, p := range c.Prefetches {
		if p.Argument == len(list) {
			list = append(list, Operand{Name: fmt.Sprint("ahead", len(list)-len(c.Operands)), Value: p.Value, Access: kernel.Read})
		}
	}
	return list
}

// Staging describes a circular buffer of tiles of weights in shared memory: one is multiplied while copies fill the
// others.
type Staging struct {
	Tiles     int // how many
	Bytes     int // of a tile, for all subgroups
	Besides   int // bytes of shared memory that the workgroup takes besides the buffer
	Subgroups int // of a workgroup
}

// Prefetch is one of parts of an argument, while the kernel waits for the dispatch before it or, if After, when it
// has no more weights to load: of each part so many lines of 128 bytes from First on.
type Prefetch struct {
	Value                         *ir.Value
	Argument, Parts, Lines, First int
	Stride                        int64 // bytes from part to part
	After                         bool
}

// Operand is one argument of a kernel: its name there and the value bound to it.
type Operand struct {
	Name   string
	Value  *ir.Value
	Access kernel.Access
}

// Mixes reports whether a step can have rows of different sequences.
func (s *Site) Mixes() bool { return s.Program.Mixes(s.Func) }

// Waves returns the subgroup sizes to offer kernels for.
func (s *Site) Waves() []int {
	if len(s.Target.Waves) == 0 || s.Func.Class != ir.ExactStep {
		return []int{s.Target.Wave}
	}
	return s.Target.Waves
}

// Base returns ORDER/SHAPE, which is unique among what families offer at the site; see tuning.Order.
func (c *Candidate) Base() string { return c.Order + "/" + c.Shape }

// Name returns ORDER/SHAPE with the form, which is unique at the site.
func (c *Candidate) Name() string { return c.Form.Of(c.Base()) }

// Same sets *to to v at its first use; later it reports whether *to is v.
func Same(to **ir.Value, v *ir.Value) bool {
	if *to == nil {
		*to = v
	}
	return *to == v
}

// Alone reports whether the group is op and nothing else, and others read its result.
func Alone(s *Site, op *ir.Op) bool {
	return len(s.Group.Ops) == 1 && s.Group.Ops[0] == op && (op.Result == nil || len(s.Outputs) == 1 && s.Outputs[0] == op.Result)
}
