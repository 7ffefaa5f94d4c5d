package codegen

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// inquiry asks AMD's compiler about candidates of call sites and keeps its answers. A question takes the compiler tens
// of milliseconds. So inquiry asks about all candidates of a site only on request, else about those that can still be
// the best, judged by the time of their bytes and by answers about similar kernels.
type inquiry struct {
	t        *target.Target
	compiler *radv.Compiler
	all      bool

	kernels map[string]*lowered // by Candidate.Kernel
	ratings map[string]*rating  // by all that tells questions apart
	said    map[code]*rating    // the first of each code that was asked about
	paces   map[pair]strategy.Pace
}

// lowered is a kernel with its code, whose constants are open. The code is made for the first question about it.
type lowered struct {
	fn    *kernel.Func
	words []uint32
}

// code is a kernel with a subgroup size; other constants change little in the compiler's result.
type code struct {
	kernel string
	wave   int
}

// pair is two candidates of a family, as they are called at every site.
type pair struct{ family, first, other string }

func newInquiry(t *target.Target, o *radv.Compiler) *inquiry {
	return &inquiry{t: t, compiler: o, kernels: map[string]*lowered{}, ratings: map[string]*rating{}, said: map[code]*rating{}, paces: map[pair]strategy.Pace{}}
}

// search is how far a site is asked about.
type search struct {
	*site
	work  plans.Cost
	left  []*rated // candidates that are not judged, in the order in which they are offered
	first *rated   // the first that the compiler did not refuse
	best  *rated
}

// ask sets the rated candidates of each site, whose work is in works. They are certain to include the candidate that
// would be the best of all, as far as strategy.Slack is enough. Questions go out in waves, at most one per site, so
// that all processors are busy and the questions do not depend on which answer comes first.
func (q *inquiry) ask(ctx context.Context, sites []*site, works []plans.Cost) error {
	searches := make([]*search, len(sites))
	for i, s := range sites {
		searches[i] = &search{site: s, work: works[i]}
		for _, c := range s.asked() {
			searches[i].left = append(searches[i].left, &rated{Candidate: c, rating: q.rating(c, rowsOf(s.f, s.g))})
		}
		s.rated = nil
	}
	for {
		var open []*rated
		for _, s := range searches {
			for len(s.left) > 0 && s.left[0].answered {
				q.judge(s, s.left[0])
			}
			open = append(open, q.open(s)...)
		}
		if err := q.weigh(open); err != nil {
			return err
		}
		wave := q.wave(searches)
		if len(wave) == 0 {
			return nil
		}
		if err := q.compile(ctx, wave); err != nil {
			return err
		}
	}
}

// rating is that of a candidate in a step of so many rows, which others may share.
func (q *inquiry) rating(c *kernels.Candidate, rows int) *rating {
	key := fmt.Sprint(c.Kernel, c.Consts, c.Grid, c.Wave, rows)
	if q.ratings[key] == nil {
		if q.kernels[c.Kernel] == nil {
			q.kernels[c.Kernel] = &lowered{}
		}
		q.ratings[key] = &rating{built: q.kernels[c.Kernel], rows: rows}
	}
	return q.ratings[key]
}

// open returns the candidates of a site whose kernels are needed: the next one and, once it is judged, those that are
// not slower by their bytes alone.
func (q *inquiry) open(s *search) []*rated {
	switch {
	case q.all || s.best != nil && !q.hopeless(s, strategy.AMDKernel{Wave: 1, Workgroup: 1}, 0):
		return s.left
	case s.best != nil:
		s.left = nil
	}
	return s.left[:min(1, len(s.left))]
}

// hopeless reports whether a candidate like k cannot be the best of the site, also if it takes less time than k by a
// share of slack. To be as fast with fewer cycles it needs fewer than k.
func (q *inquiry) hopeless(s *search, k strategy.AMDKernel, slack float64) bool {
	if q.all || s.best == nil {
		return false
	}
	k.Issue *= 1 - slack
	k.Latency *= 1 - slack
	p := strategy.PredictAMD(q.t, &k, s.work)
	p.Busy /= (1 - slack) * (1 - slack)
	return !p.Beats(&s.best.Prediction)
}

// weigh builds and weighs the kernels of candidates that are not yet weighed, on all processors.
func (q *inquiry) weigh(open []*rated) error {
	var build, weigh []*rated
	seen := map[any]bool{}
	for _, r := range open {
		if r.built.fn == nil && !seen[r.built] {
			seen[r.built] = true
			build = append(build, r)
		}
		if r.specialized == nil && !seen[r.rating] {
			seen[r.rating] = true
			weigh = append(weigh, r)
		}
	}
	err := parallel(len(build), func(i int) (err error) {
		build[i].built.fn, err = build[i].Build()
		return err
	})
	if err != nil {
		return err
	}
	return parallel(len(weigh), func(i int) (err error) {
		r := weigh[i]
		if r.specialized, err = specialize(r.built.fn, r.Candidate, q.t); err == nil {
			r.Weighed = Weigh(r.built.fn, r.spec, r.Grid, r.rows)
		}
		return err
	})
}

// wave judges candidates by the answers so far and returns those to ask about next.
func (q *inquiry) wave(searches []*search) []*rated {
	var wave []*rated
	coming := map[any]bool{} // what this wave's answers will tell
	for _, s := range searches {
		for len(s.left) > 0 {
			r := s.left[0]
			if r.answered {
				q.judge(s, r)
			} else if !q.all && q.beaten(s, r) {
				s.left = s.left[1:]
			} else {
				tells := []any{code{r.Kernel, r.Wave}}
				if s.first != nil {
					tells = append(tells, s.pair(r))
				}
				if s.best == nil || q.all || !coming[tells[0]] && !coming[tells[len(tells)-1]] {
					wave = append(wave, r)
				}
				for _, t := range tells {
					coming[t] = true
				}
				if !q.all {
					break
				}
				s.rated, s.left = append(s.rated, r), s.left[1:]
			}
		}
	}
	return wave
}

func (s *search) pair(r *rated) pair { return pair{r.Family, s.first.Name(), r.Name()} }

// judge takes the next candidate of a site, whose answer is known.
func (q *inquiry) judge(s *search, r *rated) {
	s.rated, s.left = append(s.rated, r), s.left[1:]
	if !r.Known {
		s.left = nil // predict wants to know them all
		return
	}
	if r.refusal() != "" {
		return
	}
	r.Prediction = strategy.PredictAMD(q.t, r.dispatched(r.Candidate), s.work)
	if s.first == nil {
		s.first = r
	} else if p := s.pair(r); q.paces[p] == (strategy.Pace{}) {
		q.paces[p] = strategy.PaceOf(r.dispatched(r.Candidate), s.first.dispatched(s.first.Candidate))
	}
	if s.best == nil || r.Beats(&s.best.Prediction) {
		s.best = r
	}
}

// beaten reports whether a candidate cannot be the best, judged by the answers about others.
func (q *inquiry) beaten(s *search, r *rated) bool {
	if s.best == nil {
		return false
	}
	if said := q.said[code{r.Kernel, r.Wave}]; said != nil {
		if said.refusal() != "" {
			return true
		}
		return q.hopeless(s, *r.dispatchedAs(r.Candidate, &said.Figures), 0)
	}
	first := s.first.dispatched(s.first.Candidate)
	pace, ok := q.paces[s.pair(r)]
	if !ok {
		if r.Family != s.first.Family {
			return false
		}
		if pace, ok = strategy.Alike(r.Family); !ok {
			return false
		}
	}
	return q.hopeless(s, *pace.Expect(first, r.dispatchedAs(r.Candidate, &radv.Figures{VGPRs: s.first.VGPRs, LDS: r.shared})), strategy.Slack)
}

// compile asks the compiler.
func (q *inquiry) compile(ctx context.Context, wave []*rated) error {
	var lower []*lowered
	seen := map[*lowered]bool{}
	for _, r := range wave {
		if r.built.words == nil && !seen[r.built] {
			seen[r.built] = true
			lower = append(lower, r.built)
		}
	}
	err := parallel(len(lower), func(i int) (err error) {
		lower[i].words, err = kernelspirv.Lower(lower[i].fn)
		return err
	})
	if err != nil {
		return err
	}
	questions := make([]radv.Kernel, len(wave))
	for i, r := range wave {
		questions[i] = r.kernel(r.Candidate)
	}
	results, err := q.compiler.Compile(ctx, questions)
	if err != nil {
		return err
	}
	for i, r := range wave {
		r.Result, r.answered = results[i], true
		if k := (code{r.Kernel, r.Wave}); r.Known && q.said[k] == nil {
			q.said[k] = r.rating
		}
	}
	return nil
}
