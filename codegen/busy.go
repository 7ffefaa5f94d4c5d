package codegen

import (
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Busy is the answer of AMD's compiler about the kernel of a call site.
type Busy struct {
	Entry, Site, Kernel string
	// Cycles is the number of cycles for which the dispatch keeps SIMDs busy, summed over all SIMDs: the
	// compiler's figure, corrected by the loop iterations that workgroups really execute.
	Cycles float64
	Waves  int // subgroups that a SIMD holds
	radv.Figures
	Candidate *kernels.Candidate
}

// BusyCycles chooses the kernels of a program at stage fuse by asking the compiler, and returns
// its answer about each.
func BusyCycles(ctx context.Context, p *ir.Program, t *target.Target, o *radv.Oracle) ([]Busy, error) {
	var list []Busy
	_, _, err := lower(ctx, Source{Program: p}, Options{Target: t}, ir.Specialize, func(p *ir.Program) error {
		sites, err := sitesOf(p, t)
		if err != nil {
			return err
		}
		sites = differentSites(sites)
		rows, err := newInquiry(t, o).predictRows(ctx, p, sites)
		if err != nil {
			return err
		}
		if _, err := selectKernels(ctx, p, t, Choice{Tuned: tuning.NewTable(rows)}); err != nil {
			return err
		}
		for _, s := range sites {
			i := slices.IndexFunc(s.rated, func(r *rated) bool { return r.Name() == s.g.Call.Candidate })
			if i < 0 || !s.rated[i].Known {
				return fmt.Errorf("%s %s: the compiler says nothing of %s", s.f.Name, s.g.Name, s.g.Call.Kernel)
			}
			r := s.rated[i]
			k := r.dispatched(r.Candidate)
			list = append(list, Busy{Entry: s.f.Name, Site: s.g.Name, Kernel: r.Kernel, Cycles: float64(k.Subgroups()) * k.Issue,
				Waves: r.Waves, Figures: r.Figures, Candidate: r.Candidate})
		}
		return nil
	})
	return list, err
}
