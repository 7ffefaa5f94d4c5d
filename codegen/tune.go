package codegen

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Tune predicts the times of all candidates of each call site of src from the answers of AMD's compiler,
// o.Choice.Compiler, and returns the best candidates, without a date.
func Tune(ctx context.Context, src Source, o Options) ([]tuning.Row, error) {
	var rows []tuning.Row
	_, _, err := lower(ctx, src, o, ir.Specialize, func(p *ir.Program) (chosen, error) {
		sites, err := sitesOf(p, o.Target)
		if err != nil {
			return chosen{}, err
		}
		sites = differentSites(sites)
		q := newInquiry(o.Target, o.Choice.Compiler)
		q.all = true
		if rows, err = q.predictRows(ctx, p, sites); err != nil {
			return chosen{}, err
		}
		if err := compiled(rows, sites); err != nil {
			return chosen{}, err
		}
		return selectKernels(ctx, p, o.Target, Choice{Tuned: tuning.NewTable(rows)})
	})
	return rows, err
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
func (k *rating) kernel(c *kernels.Candidate) radv.Kernel {
	return radv.Kernel{Name: c.Kernel, Words: k.built.words, Consts: k.spec, Wave: c.Wave, Full: k.workgroup%c.Wave == 0}
}
