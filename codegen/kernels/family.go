// Package kernels holds the kernels, one file per family, written in the kernel
// language. A family looks at a dispatch group and offers candidates: a kernel,
// its specialization constants and its grid. The strategy in package codegen
// chooses among them.
package kernels

import (
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
	Kernel   string // module key: the family and all that shapes the code
	Build    func() (*kernel.Func, error)
	Consts   []ir.Const // for the kernel's specialization constants, by name
	Grid     [3]int
	Operands []Operand // in the order of the kernel's arguments
	Cover    []plans.Cover
	// Seconds is what the family expects it to take on the target, from measurements; 0
	// where it has none.
	Seconds float64
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
	// when the group is not of this family. Those of a site of few rows must all
	// add in the same order: entries of different widths, which have to give the
	// same bits, may be given different ones.
	Candidates func(s *Site) []Candidate
}

// Candidates asks every family for its ways to compute s.
func Candidates(s *Site) []Candidate {
	var all []Candidate
	for _, f := range families {
		all = append(all, f.Candidates(s)...)
	}
	return all
}
