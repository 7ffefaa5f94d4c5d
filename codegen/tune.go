package codegen

import (
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Tune predicts all candidates of each call site of a program at stage import by what
// AMD's compiler makes of them, and returns the best, without a date.
func Tune(ctx context.Context, p *ir.Program, t *target.Target, o *radv.Oracle) ([]tuning.Row, error) {
	var rows []tuning.Row
	err := selectBy(p, t, p.Funcs[0].Rows, func(p *ir.Program) error {
		sites, err := sitesOf(p, t)
		if err != nil {
			return err
		}
		sites = differentSites(sites)
		if rows, err = predictRows(ctx, p, sites, t, o); err != nil {
			return err
		}
		if err := compiled(rows, sites); err != nil {
			return err
		}
		return selectKernels(ctx, p, t, Choice{Tuned: tuning.NewTable(rows)})
	})
	return rows, err
}

// selectBy runs the passes up to stage specialize, with choose in the place of SelectKernels.
func selectBy(p *ir.Program, t *target.Target, maxRows int, choose func(p *ir.Program) error) error {
	table := Table(t, maxRows)
	at := slices.IndexFunc(table, func(p passes.Pass) bool { return p.Name == "SelectKernels" })
	table[at].Run = choose
	_, err := passes.Run(p, table, passes.Options{StopAfter: ir.Specialize})
	return err
}

// compiled adds to each row what the compiler said of its best candidate.
func compiled(rows []tuning.Row, sites []*site) error {
	at := map[string]*site{}
	for _, s := range sites {
		at[s.key] = s
	}
	for i := range rows {
		r := &rows[i]
		for _, c := range at[r.Site].rated {
			if c.Name() == r.Best {
				k := c.kernel(c.Candidate)
				r.Compiled = radv.Line(&k, &c.Result)
			}
		}
		if r.Compiled == "" {
			return fmt.Errorf("%s: no candidate %q", r.Site, r.Best)
		}
	}
	return nil
}

// kernel is what AMD's compiler is asked about c.
func (k *specialized) kernel(c *kernels.Candidate) radv.Kernel {
	return radv.Kernel{Name: c.Kernel, Words: k.words, Consts: k.spec, Wave: c.Wave, Full: k.workgroup%c.Wave == 0}
}
