package codegen

import (
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/modules"
	"github.com/zincc-dev/zincc/plans/tuning"
	"github.com/zincc-dev/zincc/spirv"
)

// rated is a candidate of a site with the answer of AMD's compiler.
type rated struct {
	*kernels.Candidate
	*rating
	strategy.Prediction
}

// rating is the part that candidates of many sites share: kernel, constants and grid.
type rating struct {
	built *lowered
	rows  int // of a step
	*specialized
	answered bool
	radv.Result
	Weighed
}

// Weighed is how much workgroups of a grid execute of what AMD's compiler takes them to, on average and the busiest,
// and how many operations that is.
type Weighed struct{ Mean, Most, Operations, Busiest float64 }

// samples is how many workgroups of a grid are weighed.
const samples = 16

// Weigh weighs some workgroups all over the grid, in a step of so many rows.
func Weigh(f *kernel.Func, spec map[uint32]uint32, grid [3]int, rows int) (w Weighed) {
	step := map[string]uint32{ir.StepN: uint32(rows)}
	total := grid[0] * grid[1] * grid[2]
	n := min(samples, total)
	for i := range n {
		at := i * (total - 1) / max(1, n-1)
		executed, assumed := f.Weigh(spec, [3]uint32{uint32(at % grid[0]), uint32(at / grid[0] % grid[1]), uint32(at / grid[0] / grid[1])}, step)
		share := executed / max(1, assumed)
		w.Mean += share / float64(n)
		w.Most = max(w.Most, share)
		w.Operations += executed / float64(n)
		w.Busiest = max(w.Busiest, executed)
	}
	return w
}

// dispatched is what the cost model knows of candidate c.
func (r *rating) dispatched(c *kernels.Candidate) *strategy.AMDKernel {
	return r.dispatchedAs(c, &r.Figures)
}

// dispatchedAs is the rating of c if the compiler's answer were f.
func (r *rating) dispatchedAs(c *kernels.Candidate, f *radv.Figures) *strategy.AMDKernel {
	return &strategy.AMDKernel{Wave: c.Wave, Workgroup: r.workgroup, Grid: c.Grid, VGPRs: f.VGPRs, LDS: f.LDS,
		Issue: f.Busy(c.Wave) * r.Mean, Latency: float64(f.Latency) * r.Most, Operations: r.Operations, Busiest: r.Busiest}
}

// refusal says why a candidate must not be used; empty if it may.
func (r *rating) refusal() string {
	switch {
	case r.Refused != "":
		return r.Refused
	case r.Scratch > 0 || r.VGPRSpills > 0 || r.SGPRSpills > 0:
		return fmt.Sprintf("%d bytes of scratch, %d registers spilled", r.Scratch, r.VGPRSpills+r.SGPRSpills)
	}
	return ""
}

// predictSites returns a table with the candidate that the cost model predicts to be
// fastest for each site that is not tuned; nil without a compiler to ask. At sites of a decode entry it asks
// only about candidates that add in the order of orders.
func (q *inquiry) predictSites(ctx context.Context, p *ir.Program, sites []*site, orders sumOrders, tuned *tuning.Table) (*tuning.Table, error) {
	if q.compiler == nil {
		return nil, nil
	}
	open := slices.DeleteFunc(differentSites(sites), func(s *site) bool {
		row, ok := tuned.Lookup(s.key)
		return ok && slices.ContainsFunc(s.candidates, func(c kernels.Candidate) bool { return c.Name() == row.Best })
	})
	byKey := map[string]*site{}
	for _, s := range open {
		byKey[s.key] = s
	}
	for _, s := range sites {
		if order, ok := orders.of(s.g); ok && s.decodes() && byKey[s.key] != nil {
			byKey[s.key].orders = append(byKey[s.key].orders, order)
		}
	}
	rows, err := q.predictRows(ctx, p, open)
	return tuning.NewTable(rows), err
}

// differentSites returns the first site of each key.
func differentSites(sites []*site) []*site {
	var list []*site
	seen := map[string]bool{}
	for _, s := range sites {
		if !seen[s.key] {
			seen[s.key] = true
			list = append(list, s)
		}
	}
	return list
}

// predictRows asks the compiler about candidates of the sites and returns a row for each
// site for which it has all answers.
func (q *inquiry) predictRows(ctx context.Context, p *ir.Program, sites []*site) ([]tuning.Row, error) {
	works, of := make([]plans.Cost, len(sites)), map[string]int{}
	for i, s := range sites {
		var err error
		if works[i], err = cost(p, q.t, s.f, s.g, s.outputs); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.f.Name, s.g.Name, err)
		}
	}
	if err := q.ask(ctx, sites, works); err != nil {
		return nil, err
	}
	var timings []tuning.Timing
	for i, s := range sites {
		timings = append(timings, s.predict(q.t, works[i])...)
		of[s.key] = len(s.asked())
	}
	rows := tuning.Decide(timings, strategy.Margin)
	for i := range rows {
		rows[i].Predicted, rows[i].Device, rows[i].Driver = true, q.t.AMD.Family, q.compiler.Driver()
		if !q.all {
			rows[i].Of = of[rows[i].Site]
		}
	}
	return rows, nil
}

// predict returns the predicted times of the site's candidates that the compiler does
// not refuse; none if it does not know them all.
func (s *site) predict(t *target.Target, work plans.Cost) []tuning.Timing {
	var list []tuning.Timing
	for _, r := range s.rated {
		if !r.Known {
			return nil
		}
		if r.refusal() == "" {
			r.Prediction = strategy.PredictAMD(t, r.dispatched(r.Candidate), work)
			timing := r.Timing()
			timing.Site, timing.Candidate = s.key, r.Name()
			timing.Note = fmt.Sprintf("%d VGPRs, %d waves, %s", r.VGPRs, r.Waves, r.Bound)
			list = append(list, timing)
		}
	}
	if refused := len(s.rated) - len(list); refused > 0 {
		for i := range list {
			list[i].Note += fmt.Sprintf("; %d refused", refused)
		}
	}
	return list
}

// pipelineKernels are the plan's pipelines as AMD's compiler is asked about them.
func pipelineKernels(plan *plans.Plan) ([]radv.Kernel, error) {
	var list []radv.Kernel
	for i := range plan.Pipelines {
		p := &plan.Pipelines[i]
		m := &plan.Modules[p.Module]
		words, err := spirv.Words(m.Bytes)
		if err != nil {
			return nil, fmt.Errorf("kernel %q: %w", m.Name, err)
		}
		list = append(list, radv.Kernel{Name: m.Name, Words: words, Consts: modules.Constants(p), Wave: p.Wave, Full: p.Workgroup%p.Wave == 0})
	}
	return list, nil
}

// Annotate records the answers of AMD's compiler in the plan's pipelines, as far
// as they are known. A pipeline that it cannot compile is an error.
func Annotate(ctx context.Context, plan *plans.Plan, t *target.Target, o *radv.Compiler) error {
	asked, err := pipelineKernels(plan)
	if err != nil {
		return err
	}
	results, err := o.Compile(ctx, asked)
	if err != nil {
		return err
	}
	for i, r := range results {
		p := &plan.Pipelines[i]
		if !r.Known {
			continue
		}
		if r.Refused != "" {
			return fmt.Errorf("%s: kernel %q: %s", r.Driver, asked[i].Name, r.Refused)
		}
		compiler := r.Driver
		if r.StandIn != "" {
			compiler += " for " + r.StandIn
		}
		p.Machine = &plans.Machine{
			Compiler: compiler, SGPRs: r.SGPRs, VGPRs: r.VGPRs, Spills: r.SGPRSpills + r.VGPRSpills, Scratch: r.Scratch,
			Waves: t.AMD.Occupancy(p.Wave, r.VGPRs, p.Workgroup, r.LDS), Code: r.Code, VALU: r.VALU, VMEM: r.VMEM,
			Cycles: r.InverseThroughput, Latency: r.Latency,
		}
	}
	return nil
}
