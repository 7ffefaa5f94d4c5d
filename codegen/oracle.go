package codegen

import (
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
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

// rated is a candidate of a site with what AMD's compiler makes of it.
type rated struct {
	*kernels.Candidate
	*rating
	strategy.Prediction
}

// rating is what the candidates of many sites share: kernel, constants and grid.
type rating struct {
	*specialized
	words []uint32 // of the kernel in SPIR-V
	radv.Result
	// mean and most are how much a workgroup executes of what the compiler takes
	// it to: on average over the grid, and the busiest.
	mean, most float64
}

// samples is how many workgroups of a grid are weighed.
const samples = 16

// weigh sets mean and most from workgroups all over the grid.
func (r *rating) weigh(grid [3]int) {
	total := grid[0] * grid[1] * grid[2]
	n := min(samples, total)
	for i := range n {
		at := i * (total - 1) / max(1, n-1)
		executed, assumed := r.fn.Weigh(r.spec, [3]uint32{uint32(at % grid[0]), uint32(at / grid[0] % grid[1]), uint32(at / grid[0] / grid[1])})
		share := executed / max(1, assumed)
		r.mean += share / float64(n)
		r.most = max(r.most, share)
	}
}

// dispatched is what the cost model knows of candidate c.
func (r *rating) dispatched(c *kernels.Candidate) *strategy.AMDKernel {
	return &strategy.AMDKernel{Wave: c.Wave, Workgroup: r.workgroup, Grid: c.Grid, VGPRs: r.VGPRs, LDS: r.LDS,
		Issue: float64(r.InverseThroughput) * r.mean, Latency: float64(r.Latency) * r.most}
}

// refusal says why a candidate is not to be used; empty if it is.
func (r *rated) refusal() string {
	switch {
	case r.Refused != "":
		return r.Refused
	case r.Scratch > 0 || r.VGPRSpills > 0 || r.SGPRSpills > 0:
		return fmt.Sprintf("%d bytes of scratch, %d registers spilled", r.Scratch, r.VGPRSpills+r.SGPRSpills)
	}
	return ""
}

// lowered is a kernel with its code.
type lowered struct {
	fn    *kernel.Func
	words []uint32
}

// rate asks the oracle about the sites' candidates. Kernels are built on all processors.
func rate(ctx context.Context, sites []*site, t *target.Target, o *radv.Oracle) error {
	type question struct {
		*kernels.Candidate
		*rating
	}
	var asked []question
	var different []*kernels.Candidate // by kernel
	ratings, built := map[string]*rating{}, map[string]*lowered{}
	for _, s := range sites {
		for _, c := range s.asked() {
			key := fmt.Sprint(c.Kernel, c.Consts, c.Grid, c.Wave)
			r, ok := ratings[key]
			if !ok {
				r = &rating{}
				ratings[key] = r
				asked = append(asked, question{c, r})
			}
			if built[c.Kernel] == nil {
				built[c.Kernel] = &lowered{}
				different = append(different, c)
			}
			s.rated = append(s.rated, &rated{Candidate: c, rating: r})
		}
	}
	err := parallel(len(different), func(i int) (err error) {
		k := built[different[i].Kernel]
		if k.fn, err = different[i].Build(); err == nil {
			k.words, err = kernelspirv.Lower(k.fn)
		}
		return err
	})
	if err != nil {
		return err
	}
	questions := make([]radv.Kernel, len(asked))
	err = parallel(len(asked), func(i int) (err error) {
		q, k := asked[i], built[asked[i].Kernel]
		if q.specialized, err = specialize(k.fn, q.Candidate, t); err != nil {
			return err
		}
		q.words = k.words
		q.weigh(q.Grid)
		questions[i] = q.kernel(q.Candidate)
		return nil
	})
	if err != nil {
		return err
	}
	results, err := o.Compile(ctx, questions)
	if err != nil {
		return err
	}
	for i, q := range asked {
		q.Result = results[i]
	}
	return nil
}

// predictSites returns a table with the candidate that the cost model predicts to be
// fastest for each site that is not tuned; nil without an oracle. Of a decode entry's sites it asks
// only about candidates that add in the order of orders, by group.
func predictSites(ctx context.Context, p *ir.Program, sites []*site, orders map[string]string, t *target.Target, c Choice) (*tuning.Table, error) {
	if c.Oracle == nil {
		return nil, nil
	}
	open := slices.DeleteFunc(differentSites(sites), func(s *site) bool {
		row, ok := c.Tuned.Lookup(s.key)
		return ok && slices.ContainsFunc(s.candidates, func(c kernels.Candidate) bool { return c.Name() == row.Best })
	})
	byKey := map[string]*site{}
	for _, s := range open {
		byKey[s.key] = s
	}
	for _, s := range sites {
		if order, ok := orders[s.g.Name]; ok && s.decodes() && byKey[s.key] != nil {
			byKey[s.key].orders = append(byKey[s.key].orders, order)
		}
	}
	rows, err := predictRows(ctx, p, open, t, c.Oracle)
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

// predictRows asks the oracle about all candidates of the sites and returns a row for each
// site whose candidates it knows all.
func predictRows(ctx context.Context, p *ir.Program, sites []*site, t *target.Target, o *radv.Oracle) ([]tuning.Row, error) {
	if err := rate(ctx, sites, t, o); err != nil {
		return nil, err
	}
	var timings []tuning.Timing
	for _, s := range sites {
		work, err := cost(p, t, s.f, s.g, s.outputs)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.f.Name, s.g.Name, err)
		}
		timings = append(timings, s.predict(t, work)...)
	}
	rows := tuning.Decide(timings, strategy.Margin)
	for i := range rows {
		rows[i].Predicted, rows[i].Device, rows[i].Driver = true, t.AMD.Family, o.Driver()
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
			list = append(list, tuning.Timing{Site: s.key, Candidate: r.Name(), Micros: 1e6 * r.Seconds,
				Note: fmt.Sprintf("%d VGPRs, %d waves, %s", r.VGPRs, r.Waves, r.Bound)})
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

// Annotate records in the plan's pipelines what AMD's compiler makes of them, as far
// as that is known. A pipeline that it does not compile is an error.
func Annotate(ctx context.Context, plan *plans.Plan, t *target.Target, o *radv.Oracle) error {
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
