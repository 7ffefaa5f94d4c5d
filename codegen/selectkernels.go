package codegen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// site is a group that wants a kernel.
type site struct {
	f          *ir.Func
	g          *ir.Group
	outputs    []*ir.Value
	candidates []kernels.Candidate
	rated      []*rated
	key        string   // in tables of what is tuned
	orders     []string // of sums: the compiler is asked about candidates of these; none: of any
	sums       string   // which a candidate must have; empty: any
	chosen     *kernels.Candidate
}

// decodes reports whether the site is of a decode entry.
func (s *site) decodes() bool { return s.f.IsDecode() }

// asked are the candidates that the compiler is asked about.
func (s *site) asked() []*kernels.Candidate {
	var list []*kernels.Candidate
	for i := range s.candidates {
		if c := &s.candidates[i]; (len(s.orders) == 0 || slices.Contains(s.orders, c.Order)) && (s.sums == "" || s.sums == c.Sums) {
			list = append(list, c)
		}
	}
	return list
}

// take makes c the call of the site's group.
func (s *site) take(c *kernels.Candidate, why string) {
	s.chosen = c
	s.g.Call = &ir.Call{Candidate: c.Base(), Form: c.Form, Kernel: c.Kernel, Consts: c.Consts, Grid: c.Grid, Wave: c.Wave, Why: why}
	if s.f.Class == ir.AlikeStep {
		s.g.Call.Sums = c.Sums
	}
	for _, o := range c.Arguments() {
		s.g.Call.Args = append(s.g.Call.Args, o.Value)
	}
}

// sitesOf lists the groups of all functions with their candidates. Functions are looked at side by side.
func sitesOf(p *ir.Program, t *target.Target) ([]*site, error) {
	each := make([][]*site, len(p.Funcs))
	err := parallel(len(p.Funcs), func(i int) error {
		f := p.Funcs[i]
		uses := f.Uses()
		for _, g := range f.Groups {
			s := &site{f: f, g: g, outputs: g.Outputs(uses), key: tuning.SiteOf(f, g)}
			s.candidates = strategy.Candidates(&kernels.Site{Program: p, Func: f, Group: g, Outputs: s.outputs, Target: t})
			if len(s.candidates) == 0 {
				if n := indexable(p, t, p.Ctx); 0 < n && n < p.Ctx {
					return ir.Unsupported("context %d: kernels of target %s cannot index so large a cache: the largest context is %d", p.Ctx, t.Name, n)
				}
				return ir.Unsupported("%s: %s: no kernel of target %s computes this group (%s)", f.Name, g.Name, t.Name, describe(g))
			}
			each[i] = append(each[i], s)
		}
		return nil
	})
	return slices.Concat(each...), err
}

// selectKernels chooses a candidate for every group: the one that was best when the
// target was tuned; for other sites, with a compiler to ask, the one that the cost model
// predicts to be fastest; else the first of those that package strategy ranks.
func selectKernels(ctx context.Context, p *ir.Program, t *target.Target, c Choice) (chosen, error) {
	p.Target = t.Name
	if t.IsHost() {
		for _, f := range p.Funcs {
			for _, g := range f.Groups {
				g.Call = &ir.Call{Kernel: "oracle", Grid: [3]int{1, 1, 1}, Why: "the host evaluates the ops as they are"}
			}
		}
		return chosen{}, nil
	}
	all := chosen{of: map[*ir.Call]*kernels.Candidate{}, tables: []*tuning.Table{c.Tuned}}
	sites, err := sitesOf(p, t)
	if err != nil {
		return all, err
	}
	if err := chooseSums(sites, t, c.Tuned); err != nil {
		return all, err
	}
	orders := sumOrders{} // of decode entries
	q := newInquiry(t, c.Compiler)
	for _, round := range rounds(sites) {
		predicted, err := chooseAll(ctx, p, round, orders, q, c)
		if err != nil {
			return all, err
		}
		all.tables = append(all.tables, predicted)
	}
	if c.Copies != "" {
		if sites, err = takeAll(p, t, sites, &c); err != nil {
			return all, err
		}
	}
	for _, s := range sites {
		all.of[s.g.Call] = s.chosen
	}
	return all, nil
}

// chooseSums chooses the sums of the call sites of all functions that are alike.
func chooseSums(sites []*site, t *target.Target, tuned *tuning.Table) error {
	var names []string
	of := map[string][]*site{}
	for _, s := range sites {
		if s.f.Class == ir.AlikeStep {
			if of[s.g.Name] == nil {
				names = append(names, s.g.Name)
			}
			of[s.g.Name] = append(of[s.g.Name], s)
		}
	}
	for _, name := range names {
		var list []strategy.SumsSite
		for _, s := range of[name] {
			list = append(list, strategy.SumsSite{Key: s.key, Rows: s.f.Rows, Candidates: s.candidates})
		}
		sums, err := strategy.Sums(list, t, tuned)
		if err != nil {
			return err
		}
		for _, s := range of[name] {
			s.sums = sums
		}
	}
	return nil
}

// chosen are the candidates of calls, and the tables that they were chosen by.
type chosen struct {
	of     map[*ir.Call]*kernels.Candidate
	tables []*tuning.Table
}

// candidate is that of the group's call: the one that the call was made of, else the one that it names.
func (c chosen) candidate(p *ir.Program, f *ir.Func, g *ir.Group, uses map[*ir.Value][]*ir.Op, t *target.Target) (*kernels.Candidate, error) {
	if of := c.of[g.Call]; of != nil {
		return of, nil
	}
	return findCandidate(p, f, g, uses, t)
}

// rounds splits the sites into rounds: the orders of sums in the narrowest decode entry decide which candidates the
// other decode entries may have.
func rounds(sites []*site) [2][]*site {
	var list [2][]*site
	var first *ir.Func
	for _, s := range sites {
		round := 0
		if s.decodes() {
			if first == nil {
				first = s.f
			}
			if s.f != first {
				round = 1
			}
		}
		list[round] = append(list[round], s)
	}
	return list
}

// sumOrders are the orders of sums, by group and by weight: a projection of one row may belong to another group than
// the same of more rows.
type sumOrders map[string]string

func (o sumOrders) of(g *ir.Group) (order string, ok bool) {
	for _, name := range namesOf(g) {
		if order, ok = o[name]; ok {
			break
		}
	}
	return order, ok
}

func (o sumOrders) set(g *ir.Group, order string) {
	for _, name := range namesOf(g) {
		o[name] = order
	}
}

func namesOf(g *ir.Group) []string {
	has := func(kind string) bool {
		return slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == kind })
	}
	names := []string{g.Name}
	switch {
	case has("expert_linear") && has("expert_sum"):
		// Wide steps have these sums in a dispatch behind the experts' own (see expert_weigh). The order of that one
		// says nothing of these.
		return []string{g.Name + " summed"}
	case has("expert_linear"):
		return names // whose sums are in the order of the experts
	}
	for _, op := range g.Ops {
		if op.Kind.Name == "linear" || op.Kind.Name == "linear_parts" {
			names = append(names, "weight "+op.Args[1].Name)
		}
	}
	return names
}

// chooseAll chooses kernels for sites. orders has the orders of sums of decode entries; it
// adds those of sites. It returns the predictions for sites that are not tuned.
func chooseAll(ctx context.Context, p *ir.Program, sites []*site, orders sumOrders, q *inquiry, c Choice) (predicted *tuning.Table, err error) {
	if predicted, err = q.predictSites(ctx, p, sites, orders, c.Tuned); err != nil {
		return nil, err
	}
	for _, s := range sites {
		list, decode := s.candidates, s.decodes()
		if s.sums != "" {
			list = slices.DeleteFunc(slices.Clone(list), func(c kernels.Candidate) bool { return c.Sums != s.sums })
		}
		if order, ok := orders.of(s.g); ok && decode {
			list = slices.DeleteFunc(slices.Clone(list), func(c kernels.Candidate) bool { return c.Order != order })
			if len(list) == 0 {
				return nil, fmt.Errorf("%s: %s: no candidate adds in the order %q of the narrower entries", s.f.Name, s.g.Name, order)
			}
		}
		best, why := strategy.Choose(s.key, list, len(s.candidates), q.t, c.Tuned, predicted)
		if decode {
			orders.set(s.g, best.Order)
		}
		s.take(best, why)
	}
	return predicted, nil
}

// takeAll adds copies of the functions with other candidates. A site
// gets another candidate only where its neighbours keep the chosen ones, since their code reaches
// the compute units before its own and their tails overlap. It returns the sites of all functions.
func takeAll(p *ir.Program, t *target.Target, sites []*site, choice *Choice) ([]*site, error) {
	if !slices.ContainsFunc(p.Funcs, func(f *ir.Func) bool { return choice.copies(f.Name) }) {
		return nil, fmt.Errorf("the model has no entry %q", choice.Copies)
	}
	chosen := map[string]string{}   // by site
	others := map[string][]string{} // candidates that were not chosen
	for _, s := range sites {
		if chosen[s.key] != "" {
			continue
		}
		chosen[s.key] = s.chosen.Name()
		for _, c := range s.candidates {
			if c.Name() != s.chosen.Name() {
				others[s.key] = append(others[s.key], c.Name())
			}
		}
	}
	turns := turnsOf(sites)
	type variant struct{ turn, other int }
	variants := map[*ir.Func]variant{}
	for _, f := range slices.Clone(p.Funcs) {
		if !choice.copies(f.Name) {
			continue
		}
		most := map[int]int{} // others of a turn
		for _, s := range sites {
			if s.f == f {
				most[turns[s.key]] = max(most[turns[s.key]], len(others[s.key]))
			}
		}
		n := 0
		for turn := range len(most) {
			for other := range most[turn] {
				n++
				c := passes.Clone(f)
				c.Name = tuning.VariantName(f.Name, n)
				p.Funcs, variants[c] = append(p.Funcs, c), variant{turn, other}
			}
		}
	}
	sites, err := sitesOf(p, t)
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		name, list := chosen[s.key], others[s.key]
		if v, ok := variants[s.f]; ok && v.turn == turns[s.key] && v.other < len(list) {
			name = list[v.other]
		}
		i := slices.IndexFunc(s.candidates, func(c kernels.Candidate) bool { return c.Name() == name })
		s.take(&s.candidates[i], "to be timed")
	}
	return sites, nil
}

// turnsOf numbers the sites, by key, so that no two sites of one number are neighbours,
// unless they are the same site.
func turnsOf(sites []*site) map[string]int {
	next := map[string]map[string]bool{}
	for i, s := range sites {
		if next[s.key] == nil {
			next[s.key] = map[string]bool{}
		}
		if i > 0 && sites[i-1].f == s.f && sites[i-1].key != s.key {
			before := sites[i-1].key
			next[s.key][before], next[before][s.key] = true, true
		}
	}
	turns := map[string]int{}
	for _, s := range sites {
		if _, ok := turns[s.key]; ok {
			continue
		}
		taken := map[int]bool{}
		for n := range next[s.key] {
			if turn, ok := turns[n]; ok {
				taken[turn] = true
			}
		}
		turn := 0
		for taken[turn] {
			turn++
		}
		turns[s.key] = turn
	}
	return turns
}

// describe says what a group computes and on which weight types.
func describe(g *ir.Group) string {
	var parts []string
	for _, op := range g.Ops {
		s := op.Kind.Name
		for _, a := range op.Args {
			if a.Class == ir.Weight {
				s += " " + a.Type.String()
			}
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// findCandidate returns the candidate that g.Call names, of its family. The call must equal the candidate's, since
// people also edit programs by hand.
func findCandidate(p *ir.Program, f *ir.Func, g *ir.Group, uses map[*ir.Value][]*ir.Op, t *target.Target) (*kernels.Candidate, error) {
	s := &kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t}
	c := kernels.Find(s, g.Call)
	switch {
	case c == nil:
		return nil, fmt.Errorf("%s: %s: no candidate is named %q", f.Name, g.Name, g.Call.Name())
	case f.Class == ir.AlikeStep && c.Sums != g.Call.Sums:
		return nil, fmt.Errorf("%s: %s: candidate %q has sums %q, its call %q", f.Name, g.Name, g.Call.Name(), c.Sums, g.Call.Sums)
	case c.Kernel != g.Call.Kernel || c.Wave != g.Call.Wave || c.Grid != g.Call.Grid || !slices.Equal(c.Consts, g.Call.Consts):
		return nil, fmt.Errorf("%s: %s: candidate %q has another kernel, subgroup size, grid or constants than its call", f.Name, g.Name, g.Call.Name())
	}
	return c, nil
}
