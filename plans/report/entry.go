package report

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Entry is an entry of the plan.
type Entry struct {
	Name       string
	Rows       int
	Sections   []Section
	Columns    []Column
	Dispatches []Dispatch
	Arena      int64 // bytes that its values take together
	Values     []Value
}

// Section is a part of a function. Layers that are the same in every column, but for
// numbers of layers and values, are one section, shown by the first of them.
type Section struct {
	Layers []int  `json:",omitempty"`
	Name   string // of what is no layer
}

// Column is the function after a pass.
type Column struct {
	Pass     int
	Sections [][]int // groups by section
	Groups   int     // of all layers
	Ops      int
}

// Group is what one dispatch computes, once ops are grouped.
type Group struct {
	Site string `json:",omitempty"`
	ir.Order
	Call int   // -1 before kernels are chosen
	Ops  []int // lines
}

// Dispatch is a launch in an entry, in order.
type Dispatch struct {
	Section int      `json:"s"`
	Group   int      `json:"g"` // which of the section's groups in the last column
	Layer   int      `json:"l"` // -1: none
	Stage   int      `json:"t"`
	Waits   int      `json:"w"`
	Queue   int      `json:"q,omitempty"`
	Early   ir.Early `json:"e,omitempty"`
	Launch  int      `json:"c"`
	Offer   int      `json:"o"` // which of the plan's Offers; -1: none is known
}

// Value is a value of the arena: bytes from Offset on are its own in stages First to
// Last.
type Value struct {
	Name   string `json:"v"` // that of the layer which is shown
	Layer  int    `json:"l"`
	First  int    `json:"f"`
	Last   int    `json:"t"`
	Offset int64  `json:"o"`
	Bytes  int64  `json:"n"`
}

// builder stores what repeats once.
type builder struct {
	r        *Plan
	lines    map[string]int
	calls    map[Call]int
	groups   map[string]int
	launches map[Launch]int
	passes   map[Pass]int
	offers   map[string]int
}

func newBuilder(r *Plan) *builder {
	return &builder{r, map[string]int{}, map[Call]int{}, map[string]int{}, map[Launch]int{}, map[Pass]int{}, map[string]int{}}
}

// once returns the index of v in list, to which it is added if it is new.
func once[K comparable, V any](at map[K]int, list *[]V, key K, v V) int {
	i, ok := at[key]
	if !ok {
		i = len(*list)
		at[key] = i
		*list = append(*list, v)
	}
	return i
}

func (b *builder) entry(p *plans.Plan, e *plans.Entry, t *Trace, candidates [][]Candidate) Entry {
	f := p.Program.Func(e.Name)
	out := Entry{Name: e.Name, Rows: e.Rows}
	steps := changed(t, e.Name)
	// The last column is the plan's own program: the dispatches are its groups.
	final := newColumn(f)
	if n := len(steps); n == 0 || of(steps[n-1], e.Name).sum != final.sum {
		pass := Pass{Name: "plan", Stage: p.Program.Stage.String(), Doc: "the program as the plan holds it"}
		steps = append(steps, step{pass, map[string]*column{e.Name: final}})
	}
	sections := foldColumns(steps, e.Name)
	for _, s := range sections {
		out.Sections = append(out.Sections, s.Section)
	}
	for _, s := range steps {
		c := of(s, e.Name)
		col := Column{Pass: once(b.passes, &b.r.Passes, s.pass, s.pass), Groups: len(c.groups)}
		for i := range c.groups {
			col.Ops += len(c.groups[i].ops)
		}
		for _, s := range sections {
			var groups []int
			for i := range c.groups {
				if c.groups[i].layer == s.first {
					groups = append(groups, b.group(&c.groups[i]))
				}
			}
			col.Sections = append(col.Sections, groups)
		}
		out.Columns = append(out.Columns, col)
	}
	b.dispatches(&out, e, final, sections, candidates)
	b.values(&out, p, f, final, sections)
	return out
}

// of is the entry's function after a step; before entries are split it is the one
// that all are made from.
func of(s step, entry string) *column {
	if c := s.funcs[entry]; c != nil {
		return c
	}
	for _, c := range s.funcs {
		if len(s.funcs) == 1 {
			return c
		}
	}
	return nil
}

// changed returns the steps that changed the entry.
func changed(t *Trace, entry string) []step {
	var steps []step
	var last *column
	for _, s := range t.steps {
		if c := of(s, entry); c != nil && (last == nil || c.sum != last.sum) {
			steps, last = append(steps, s), c
		}
	}
	return steps
}

// section is a Section with the layer that stands for it.
type section struct {
	Section
	first int
}

// foldColumns finds the layers that are the same in all columns.
func foldColumns(steps []step, entry string) []section {
	keys := map[int]string{} // by layer
	for _, s := range steps {
		for layer, sum := range of(s, entry).layers {
			keys[layer] += string(sum[:])
		}
	}
	var layers []int
	for layer := range keys {
		if layer >= 0 {
			layers = append(layers, layer)
		}
	}
	slices.Sort(layers)
	var list []section
	if keys[before] != "" {
		list = append(list, section{Section{Name: "before the layers"}, before})
	}
	at := map[string]int{}
	for _, layer := range layers {
		i := once(at, &list, keys[layer], section{Section{}, layer})
		list[i].Layers = append(list[i].Layers, layer)
	}
	if keys[behind] != "" {
		list = append(list, section{Section{Name: "behind the layers"}, behind})
	}
	return list
}

func (b *builder) group(s *shown) int {
	g := Group{Site: s.site, Order: s.order, Call: -1}
	if s.call != nil {
		g.Call = once(b.calls, &b.r.Calls, *s.call, *s.call)
	}
	h := sha256.New()
	writeInts(h, g.Call)
	h.Write([]byte(g.Order.String() + " " + g.Site))
	for _, text := range s.ops {
		line := once(b.lines, &b.r.Lines, text, text)
		g.Ops = append(g.Ops, line)
		writeInts(h, line)
	}
	return once(b.groups, &b.r.Groups, string(h.Sum(nil)), g)
}

// place is where a group is shown: as which of which section's groups.
type place struct{ section, group, layer int }

// places finds for each group of c the section that shows it.
func places(c *column, sections []section) []place {
	of := map[int]int{} // section by layer
	for i, s := range sections {
		of[s.first] = i
		for _, layer := range s.Layers {
			of[layer] = i
		}
	}
	seen := map[int]int{} // groups by layer
	list := make([]place, len(c.groups))
	for i := range c.groups {
		layer := c.groups[i].layer
		list[i] = place{of[layer], seen[layer], max(layer, -1)}
		seen[layer]++
	}
	return list
}

func (b *builder) dispatches(out *Entry, e *plans.Entry, final *column, sections []section, candidates [][]Candidate) {
	at := places(final, sections)
	for i := range e.Dispatches {
		d := &e.Dispatches[i]
		c := &d.Cost
		l := Launch{Pipeline: d.Pipeline, Read: c.ReadBytes, Write: c.WriteBytes, FLOPs: c.FLOPs,
			ReadPos: c.BytesPerPos, FLOPsPos: c.FLOPsPerPos,
			Bytes: micro(c.Predicted.Bytes), Operations: micro(c.Predicted.Operations), Stage: micro(c.Predicted.Stage)}
		out.Dispatches = append(out.Dispatches, Dispatch{Section: at[i].section, Group: at[i].group, Layer: at[i].layer,
			Stage: d.Stage, Waits: d.Waits, Queue: d.Queue, Early: d.Early, Launch: once(b.launches, &b.r.Launches, l, l), Offer: b.offer(candidates, i)})
	}
}

// offer stores the candidates of a dispatch.
func (b *builder) offer(candidates [][]Candidate, i int) int {
	if candidates == nil || len(candidates[i]) == 0 {
		return -1
	}
	return once(b.offers, &b.r.Offers, fmt.Sprint(candidates[i]), candidates[i])
}

// values lists what lies in the arena and when, lowest and earliest first.
func (b *builder) values(out *Entry, p *plans.Plan, f *ir.Func, final *column, sections []section) {
	uses := f.Uses()
	stageOf := map[*ir.Op]int{}
	for _, g := range f.Groups {
		for _, op := range g.Ops {
			stageOf[op] = g.Stage
		}
	}
	at := places(final, sections)
	names := map[[3]int]string{} // of the values of layers that stand for others
	for i, g := range f.Groups {
		n := 0
		for _, op := range g.Ops {
			v := op.Result
			if v == nil || v.Class != ir.Arena || v.Offset < 0 { // of a register, or no value
				continue
			}
			key := [3]int{at[i].section, at[i].group, n}
			n++
			if names[key] == "" { // the first layer comes first
				names[key] = v.String()
			}
			bytes, err := v.Type.Bytes(f.Rows, p.Header.Ctx)
			if err != nil { // a plan that was read has no such type
				continue
			}
			value := Value{Name: names[key], Layer: at[i].layer, First: g.Waits, Last: g.Stage, Offset: v.Offset, Bytes: bytes}
			for _, u := range uses[v] {
				value.Last = max(value.Last, stageOf[u])
			}
			out.Values = append(out.Values, value)
			out.Arena = max(out.Arena, v.Offset+bytes)
		}
	}
	slices.SortStableFunc(out.Values, func(a, b Value) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Offset, b.Offset)) })
}
