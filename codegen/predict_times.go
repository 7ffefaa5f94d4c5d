package codegen

import (
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// predictTimes replaces the rooflines of the plan by the final prediction of each dispatch: the time in the row
// that chose its kernel, else its roofline with the target's fit. The reach of entries
// was decided before, by comparing rooflines, which are all of one kind.
func (e *emitter) predictTimes() {
	for i := range e.plan.Entries {
		f := e.p.Funcs[i]
		for j := range e.plan.Entries[i].Dispatches {
			d := &e.plan.Entries[i].Dispatches[j]
			early := d.Order.Early == ir.LoadsFirst
			d.Cost.Predicted = strategy.Fitted(&strategy.Launch{Candidate: e.chosen[f.Groups[j]], Cost: &d.Cost, Rows: rowsOf(f, f.Groups[j]),
				Shared: e.plan.Pipelines[d.Pipeline].Shared, Matrix: e.onMatrices(d.Pipeline), Early: early}, e.t)
			if row, ok := e.rowOf(f, f.Groups[j]); ok {
				seconds := 1e-6 * row.Micros
				switch {
				case row.Predicted:
				case early:
					seconds = max(0, seconds-e.t.Fit.Overlap)
				default:
					seconds = max(0, seconds-e.t.Fit.Timestamp)
				}
				d.Cost.Predicted = strategy.Measured(d.Cost, float32(seconds), row.Predicted)
				d.Cost.Measured = !row.Predicted
			}
		}
	}
}

// rowOf is the row of a table that names the candidate of a group's call.
func (e *emitter) rowOf(f *ir.Func, g *ir.Group) (tuning.Row, bool) {
	for _, t := range e.known.tables {
		if row, ok := t.Lookup(tuning.SiteOf(f, g)); ok && e.chosen[g].Name() == row.Best {
			return row, true
		}
	}
	return tuning.Row{}, false
}
