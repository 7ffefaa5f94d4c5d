// Package kernels holds the kernels, one file per family, written in the kernel
// language. A family looks at a dispatch group and offers candidates: a kernel,
// its specialization constants and its grid. The strategy in package codegen
// chooses among them.
package kernels

import (
	"fmt"

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
	Kernel string // module key: the family and all that shapes the code
	Wave   int    // subgroup size
	// Order names the order of the candidate's sums, which families may share, and Shape the
	// rest of what tells it from the site's others; both are short, and empty where there is
	// one only.
	Order, Shape string
	Build        func() (*kernel.Func, error)
	Consts       []ir.Const // for the kernel's specialization constants, by name
	Grid         [3]int
	Operands     []Operand // in the order of the kernel's arguments
	// Sequences is how many sequences the kernel takes in a step. It matters only in groups that
	// use slots.
	Sequences ir.Sequences
	Cover     []plans.Cover
	// Seconds is what the family expects a step of so many rows to take on the target, from
	// measurements; nil where it has none.
	Seconds func(rows int) float64
}

// Operand is one argument of a kernel: its name there and the value bound to it.
type Operand struct {
	Name   string
	Value  *ir.Value
	Access kernel.Access
}

// Family is one row of the kernel table.
type Family struct {
	Name string
	Doc  string
	// Candidates returns the ways to compute the site, best guess first; none
	// when the group is not of this family. Entries of different widths have to give the
	// same bits: at a site of few rows, candidates of the same Order add in the same order,
	// and a family offers the same orders at every width.
	Candidates func(s *Site) []Candidate
}

// Candidates asks every family for its ways to compute s, and leaves out those that take the
// rows of a step as one sequence where they may not be. Where the target leaves the
// subgroup size open, those of few rows are offered for each, that of the target first.
func Candidates(s *Site) []Candidate {
	var all []Candidate
	for _, wave := range s.waves() {
		on := *s.Target
		on.Wave = wave
		at := *s
		at.Target = &on
		for _, f := range families {
			for _, c := range f.Candidates(&at) {
				if c.Sequences == ir.OneSequence && s.mixes() && s.Group.UsesSlots() {
					continue
				}
				c.Wave = wave
				if c.Order == "" {
					c.Order = fmt.Sprintf("%s w%d", f.Name, wave)
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// mixes reports whether a step can have rows of different sequences.
func (s *Site) mixes() bool { return s.Program.Mixes(s.Func) }

// waves returns the subgroup sizes to offer kernels for.
func (s *Site) waves() []int {
	if len(s.Target.Waves) == 0 || s.Func.Rows > ir.DecodeRows {
		return []int{s.Target.Wave}
	}
	return s.Target.Waves
}

// Name tells the candidate from the others of its site: ORDER/SHAPE, see tuning.Order.
func (c *Candidate) Name() string { return c.Order + "/" + c.Shape }
