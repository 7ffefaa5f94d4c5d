package strategy

import (
	"fmt"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Functions of class ir.AlikeStep add in one order at each call site. Which order that is follows from the times of all
// of these functions, so each of them decides alike.

// widthsOf are the rows of the functions that decide with that of the site: those of its class if that is
// ir.AlikeStep, else its own.
func widthsOf(s *kernels.Site) (list []int) {
	if s.Func.Class != ir.AlikeStep {
		return []int{s.Func.Rows}
	}
	for _, f := range s.Program.Funcs {
		if f.Class == ir.AlikeStep {
			list = append(list, f.Rows)
		}
	}
	return list
}

// alike reports whether the ranked site is of a function of class ir.AlikeStep.
func (r *ranking) alike() bool { return r.class == ir.AlikeStep }

// product is a tiled product that a site may get, as it is or by a rewrite.
type product struct {
	family, sums string
	tiling       *kernels.Tiling
}

// together returns the index of the product that is best for a site of an alike function: of those whose sums take the
// least time over all widths, the fastest one at the site's own width. Of equal ones the first counts.
func (r *ranking) together(list []product) int {
	total := func(sums string) (all float64) {
		for _, rows := range r.widths {
			least := math.Inf(1)
			for _, p := range list {
				if p.sums == sums {
					least = min(least, tileSeconds(r.t, p.family, p.tiling, rows))
				}
			}
			all += least
		}
		return all
	}
	best, least, own := -1, 0.0, 0.0
	for i, p := range list {
		all, mine := total(p.sums), tileSeconds(r.t, p.family, p.tiling, r.rows)
		if best < 0 || all < least || p.sums == list[best].sums && mine < own {
			best, least, own = i, all, mine
		}
	}
	return best
}

// SumsSite is a call site in one of the functions of class ir.AlikeStep.
type SumsSite struct {
	Key        string // in tuning tables
	Rows       int
	Candidates []kernels.Candidate // best guess first
}

// Sums returns the sums that the candidates of one call site get in all functions of class ir.AlikeStep: those whose
// predicted times, or measured ones, have the least sum; where times are not known, those that are ranked first.
func Sums(sites []SumsSite, t *target.Target, tuned *tuning.Table) (string, error) {
	best, least := "", price{}
	for _, c := range sites[0].Candidates {
		if p, ok := priceOf(sites, c.Sums, t, tuned); ok && (best == "" || p.less(least)) {
			best, least = c.Sums, p
		}
	}
	if best == "" {
		return "", fmt.Errorf("%s: no order of sums is that of some candidate in each entry that reads prompts alike", sites[0].Key)
	}
	return best, nil
}

// price is what an order of sums costs at all sites.
type price struct {
	seconds float64 // NaN if not known
	rank    int
}

func (p price) less(o price) bool {
	if p.seconds != o.seconds && !math.IsNaN(p.seconds+o.seconds) {
		return p.seconds < o.seconds
	}
	return p.rank < o.rank
}

// priceOf adds up what is best of the sums at each site; false if a site has no such candidate.
func priceOf(sites []SumsSite, sums string, t *target.Target, tuned *tuning.Table) (all price, ok bool) {
	for _, s := range sites {
		row, _ := tuned.Lookup(s.Key)
		rank, least := -1, math.Inf(1)
		for i, c := range s.Candidates {
			if c.Sums != sums {
				continue
			}
			if rank < 0 {
				rank = i
			}
			seconds := math.NaN()
			switch {
			case row.Best == c.Name():
				seconds, rank = 1e-6*row.Micros, 0
			case c.Tiling != nil:
				seconds = tileSeconds(t, c.Family, c.Tiling, s.Rows)
			}
			least = min(least, seconds)
		}
		if rank < 0 {
			return price{}, false
		}
		all.seconds += least
		all.rank += rank
	}
	return all, true
}

// alikeTiles is how many workgroups attention has in the widest function of the site's class, if it has so many here.
func alikeTiles(s *kernels.Site, tiles int) int {
	return tiles * slices.Max(widthsOf(s)) / s.Func.Rows
}
