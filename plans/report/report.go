// Package report writes the page of `--html` for a plan, or for the comparison of two: one
// file with its data, styles and script, which needs no network.
package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
)

// Report is what the page shows. The page has it as JSON: names are short where
// there are many of a thing, and what repeats is stored once and meant by its index.
type Report struct {
	Title string
	Plans []*Plan // one, or the two that are compared
	Diff  []Table `json:",omitempty"` // in what they differ, for people
	// Patterns are the lines of all listings, in which near ids are told by their
	// distance from the last result: "OpFAdd %float %~1 %~4" is what unrolled code has
	// many of. A line with a result begins with how far it is from the one before: "+1 ".
	Patterns []string
}

// Plan is one plan with what its makers added.
type Plan struct {
	Name     string // "a" and "b" of a comparison
	Path     string
	Model    string
	Target   string
	Ctx      int
	Facts    []Fact
	Notes    []string // what the report lacks, and why
	Memory   []Fact   // spaces with their bytes
	Figures  Figures
	Passes   []Pass
	Lines    []string // ops in the text form of the IR
	Calls    []Call
	Groups   []Group
	Launches []Launch
	Entries  []Entry
	Kernels
	Assembler string // which compiler the pipelines' assembly is of
	Coverage  Table
	Measured  []Measured    `json:",omitempty"`
	Offers    [][]Candidate // lists of candidates, which Dispatch.Offer means
}

// Measured is what the dispatches of an entry took on a device behind Depth cached positions, in
// microseconds, 0 where one was not measured.
type Measured struct {
	Entry  string
	Depth  int
	Device string
	Times  []float64
}

// Candidate is one way to compute a call site.
type Candidate struct {
	Name   string // ORDER/SHAPE, as in a tuning file
	Kernel string
	Wave   int
	Grid   [3]int
	Micros float64 `json:",omitempty"` // that its family expects, 0 where it does not say
	Taken  bool    `json:",omitempty"`
}

// Fact is a field and its value.
type Fact struct {
	Name  string
	Value any
}

// Figures are what the target reaches at most, 0 where that is not known.
type Figures struct {
	Bandwidth   float64 // bytes a second
	FLOPs       float64 // a second
	MatrixFLOPs float64
}

// Table is a table for people; numbers are right-aligned.
type Table struct {
	Title   string
	Columns []string
	Numbers []bool // by column
	Rows    [][]string
}

// Launch is what dispatches with the same kernel and work have in common. Times are
// in microseconds, behind an empty cache; each cached position adds ReadPos bytes and
// FLOPsPos operations.
type Launch struct {
	Pipeline          int
	Read, Write       int64
	FLOPs             int64
	ReadPos, FLOPsPos int64
	Bytes             float64
	Operations        float64
	Stage             float64
}

// Options are what a report shows beside the plan.
type Options struct {
	Name, Path string
	Figures    Figures
	Trace      *Trace   // the program after each pass; nil if it was not compiled again
	Assembly   []string // by pipeline, empty where there is none; nil if nobody was asked
	Assembler  string   // who was
	Notes      []string
	Profiles   []*plans.Profile // measured steps
	Candidates [][][]Candidate  // by entry and dispatch; nil where nobody knows them
}

// New makes the report of one plan.
func New(p *plans.Plan, o Options) (*Report, error) {
	l := newListings(1)
	one, err := newPlan(p, o, l)
	if err != nil {
		return nil, err
	}
	all := []*Plan{one}
	return &Report{Title: fmt.Sprintf("%s for %s", one.Model, one.Target), Plans: all, Patterns: l.finish(all)}, nil
}

// Diff makes the report of what differs between two plans.
func Diff(a, b *plans.Plan, oa, ob Options) (*Report, error) {
	oa.Name, ob.Name = "a", "b"
	l := newListings(2)
	pa, err := newPlan(a, oa, l)
	if err != nil {
		return nil, err
	}
	pb, err := newPlan(b, ob, l)
	if err != nil {
		return nil, err
	}
	r := &Report{Title: fmt.Sprintf("%s for %s beside %s for %s", pa.Model, pa.Target, pb.Model, pb.Target), Plans: []*Plan{pa, pb}}
	r.Patterns = l.finish(r.Plans)
	for _, t := range plans.Diff(a, b) {
		if len(t.Rows) > 0 {
			r.Diff = append(r.Diff, newTable(t))
		}
	}
	return r, nil
}

func newPlan(p *plans.Plan, o Options, l *listings) (*Plan, error) {
	h := &p.Header
	r := &Plan{Name: o.Name, Path: o.Path, Model: h.Model.Name, Target: h.Target, Ctx: h.Ctx, Notes: o.Notes, Figures: o.Figures, Assembler: o.Assembler}
	for _, t := range plans.Inspect(p) {
		switch t.Title {
		case "plan", "requirements":
			for _, row := range t.Rows {
				r.Facts = append(r.Facts, Fact{row[0].(string), table.Text(row[1])})
			}
		case "memory":
			for _, row := range t.Rows {
				r.Memory = append(r.Memory, Fact{row[0].(string), row[2]})
			}
		case "coverage":
			r.Coverage = foldLayers(t)
		}
	}
	trace := o.Trace
	if trace == nil {
		trace = &Trace{}
	}
	b := newBuilder(r)
	for i := range p.Entries {
		var candidates [][]Candidate
		if o.Candidates != nil {
			candidates = o.Candidates[i]
		}
		r.Entries = append(r.Entries, b.entry(p, &p.Entries[i], trace, candidates))
	}
	r.addMeasured(p, o.Profiles)
	var err error
	r.Kernels, err = l.kernels(p, o.Assembly)
	left := 0
	for i, text := range o.Assembly {
		if text != "" && err == nil && r.Pipelines[i].Assembly == nil {
			left++
		}
	}
	if left > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("The assembly of %d of %d pipelines, those with the least of an entry's time, is left out: the report would be too large.", left, len(p.Pipelines)))
	}
	return r, err
}

// addMeasured holds what was measured against the dispatches of the plan.
func (r *Plan) addMeasured(p *plans.Plan, profiles []*plans.Profile) {
	for _, m := range profiles {
		times, found := m.Times(p)
		if found == 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("The profile of %s on %s is of another plan: none of its kernels is in this one.", m.Entry, m.Device))
			continue
		}
		if found < len(times) {
			r.Notes = append(r.Notes, fmt.Sprintf("The profile of %s on %s has %d of %d dispatches: the others have other kernels in this plan.", m.Entry, m.Device, found, len(times)))
		}
		r.Measured = append(r.Measured, Measured{m.Entry, m.Depth, m.Device, times})
	}
}

func newTable(t *table.Table) Table {
	out := Table{Title: t.Title, Columns: t.Columns, Numbers: make([]bool, len(t.Columns))}
	for i := range out.Numbers {
		out.Numbers[i] = len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(row []any) bool { return table.IsText(row[i]) })
	}
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, c := range row {
			line[i] = table.Text(c)
		}
		out.Rows = append(out.Rows, line)
	}
	return out
}

// foldLayers joins the rows of tensors that differ in their layer only, adds up their
// bytes and counts them.
func foldLayers(t *table.Table) Table {
	at := map[string]int{}
	out := &table.Table{Title: t.Title, Columns: slices.Insert(slices.Clone(t.Columns), 1, "tensors")}
	for _, row := range t.Rows {
		row = slices.Insert(slices.Clone(row), 1, any(1))
		row[0] = plans.FoldSite(row[0].(string))
		key := ""
		bytes := -1
		for i, c := range row {
			switch c.(type) {
			case table.Bytes:
				bytes = i
			case int:
			default:
				key += fmt.Sprintf("%q", c)
			}
		}
		if i, ok := at[key]; ok {
			same := out.Rows[i]
			same[1] = same[1].(int) + 1
			same[bytes] = same[bytes].(table.Bytes) + row[bytes].(table.Bytes)
			continue
		}
		at[key] = len(out.Rows)
		out.Rows = append(out.Rows, row)
	}
	return newTable(out)
}

// micro is a time in microseconds, to the picosecond: a prediction has no more.
func micro(seconds float32) float64 { return math.Round(float64(seconds)*1e12) / 1e6 }
