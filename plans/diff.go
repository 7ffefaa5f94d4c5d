package plans

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
)

// Diff makes the tables that say how two plans differ: "in short", "plans", "entries", "work",
// "memory", "weights", "fusion", "kernels" and "modules". Each holds only what
// differs; equal plans have no rows. A difference that all layers share is one
// row, and so is one that several entries share.
func Diff(a, b *Plan) []*table.Table {
	sites := compareSites(a, b)
	return []*table.Table{
		headline(a, b), diffHeaders(a, b), diffEntries(a, b), diffWork(a, b), diffMemory(a, b), diffWeights(a, b),
		sites.fusion, sites.kernels, diffModules(a, b),
	}
}

// diffHeaders takes the rows that differ from Inspect's tables of both plans. A field that a plan
// lacks, as those of other backends, is "-".
func diffHeaders(a, b *Plan) *table.Table {
	t := &table.Table{Title: "plans", Columns: []string{"field", "a", "b"}, Pair: true}
	for _, make := range []func(*Plan) *table.Table{headerTable, requirementsTable} {
		of := map[any]any{}
		rows := make(b).Rows
		for _, row := range rows {
			of[row[0]] = row[1]
		}
		has := map[any]bool{}
		for _, row := range make(a).Rows {
			has[row[0]] = true
			other, ok := of[row[0]]
			if !ok {
				other = "-"
			}
			if row[1] != other {
				t.Add(row[0], fmt.Sprint(row[1]), fmt.Sprint(other))
			}
		}
		for _, row := range rows {
			if !has[row[0]] {
				t.Add(row[0], "-", fmt.Sprint(row[1]))
			}
		}
	}
	return t
}

// pairs returns the entries of both plans by name in the order of a, then of b; one
// that a plan lacks is an empty entry.
func pairs(a, b *Plan) [][2]*Entry {
	var list [][2]*Entry
	for i := range a.Entries {
		list = append(list, [2]*Entry{&a.Entries[i], b.entry(a.Entries[i].Name)})
	}
	for i := range b.Entries {
		if e := &b.Entries[i]; a.entry(e.Name).Name == "" {
			list = append(list, [2]*Entry{{}, e})
		}
	}
	return list
}

func (p *Plan) entry(name string) *Entry {
	for i := range p.Entries {
		if p.Entries[i].Name == name {
			return &p.Entries[i]
		}
	}
	return &Entry{}
}

func pairName(e [2]*Entry) string { return e[0].Name + strings.TrimPrefix(e[1].Name, e[0].Name) }

// ofBoth makes cells of a pair, None of an entry that a plan lacks.
func ofBoth(pair [2]*Entry, cell func(*Entry) any) (any, any) {
	cells := [2]any{table.None, table.None}
	for i, e := range pair {
		if e.Name != "" {
			cells[i] = cell(e)
		}
	}
	return cells[0], cells[1]
}

func diffEntries(a, b *Plan) *table.Table {
	t := &table.Table{Title: "entries", Columns: []string{"entry", "dispatches a", "dispatches b", "stages a", "stages b",
		"predicted us a", "predicted us b", "change %"}}
	for _, e := range pairs(a, b) {
		na, nb := ofBoth(e, func(e *Entry) any { return len(e.Dispatches) })
		sa, sb := ofBoth(e, func(e *Entry) any { return e.Stages() })
		ua, ub := ofBoth(e, func(e *Entry) any {
			if seconds := e.Predict(0).Seconds(); seconds > 0 {
				return micro(seconds)
			}
			return table.None // as of a plan for the host
		})
		var by any = table.None
		if x, ok := ua.(float64); ok {
			if y, ok := ub.(float64); ok {
				by = change(x, y)
			}
		}
		if na != nb || sa != sb || ua != ub {
			t.Add(pairName(e), na, nb, sa, sb, ua, ub, by)
		}
	}
	return t
}

// change is by how many percent b is more than a, 0 where a is nothing.
func change(a, b float64) float64 { return percent(b-a, a) }

func diffWork(a, b *Plan) *table.Table {
	t := &table.Table{Title: "work", Columns: []string{"entry", "read a", "read b", "written a", "written b", "flops a", "flops b"}}
	for _, e := range pairs(a, b) {
		ra, rb := ofBoth(e, func(e *Entry) any { read, _, _ := e.Work(0); return table.Bytes(read) })
		wa, wb := ofBoth(e, func(e *Entry) any { _, written, _ := e.Work(0); return table.Bytes(written) })
		fa, fb := ofBoth(e, func(e *Entry) any { _, _, flops := e.Work(0); return table.Count(flops) })
		if ra != rb || wa != wb || fa != fb {
			t.Add(pairName(e), ra, rb, wa, wb, fa, fb)
		}
	}
	return t
}

func diffMemory(a, b *Plan) *table.Table {
	t := &table.Table{Title: "memory", Columns: []string{"space", "a", "b"}}
	of := memoryTable(b).Rows
	for i, row := range memoryTable(a).Rows {
		if row[2] != of[i][2] {
			t.Add(row[0], row[2], of[i][2])
		}
	}
	return t
}

// diffWeights compares the tensors by name, folded over the layers.
func diffWeights(a, b *Plan) *table.Table {
	f := newFold()
	of := map[string]*Weight{}
	for i := range b.Weights {
		of[b.Weights[i].Name] = &b.Weights[i]
	}
	for i := range a.Weights {
		w := &a.Weights[i]
		f.site("", w.Name)
		v := of[w.Name]
		delete(of, w.Name)
		if v == nil {
			v = &Weight{}
		}
		diffWeight(f, w, v)
	}
	for i := range b.Weights {
		if w := &b.Weights[i]; of[w.Name] != nil {
			f.site("", w.Name)
			diffWeight(f, &Weight{Name: w.Name}, w)
		}
	}
	t := &table.Table{Title: "weights", Columns: []string{"tensor", "what", "a", "b"}, Pair: true}
	for _, r := range f.rows() {
		t.Add(r.site, r.what, r.a, r.b)
	}
	return t
}

func diffWeight(f *fold, a, b *Weight) {
	show := func(w *Weight, s string) string {
		if w.Layout == "" { // the plan lacks it
			return "-"
		}
		return s
	}
	for _, c := range [][3]string{
		{"type", a.DType.String(), b.DType.String()},
		{"shape", fmt.Sprint(a.Shape), fmt.Sprint(b.Shape)},
		{"layout", a.Layout, b.Layout},
	} {
		f.add(siteChange{"", a.Name, c[0], show(a, c[1]), show(b, c[2])})
	}
}

// diffModules lists the kernels of both plans that have the same name and format and other
// code, which is what another version of the compiler makes. Several may have one name: those that have
// their like in the other plan are no difference.
func diffModules(a, b *Plan) *table.Table {
	t := &table.Table{Title: "modules", Columns: []string{"kernel", "a", "b"}}
	left := without(b.Modules, a.Modules)
	for _, m := range without(a.Modules, b.Modules) {
		j := slices.IndexFunc(left, func(n Module) bool { return n.Name == m.Name && n.Format == m.Format })
		if j >= 0 {
			t.Add(m.Name, codeName(m.Bytes), codeName(left[j].Bytes))
			left = slices.Delete(left, j, j+1)
		}
	}
	return t
}

// without returns the modules that others do not have.
func without(modules, others []Module) []Module {
	return slices.DeleteFunc(slices.Clone(modules), func(m Module) bool {
		return slices.ContainsFunc(others, func(o Module) bool { return o.Name == m.Name && bytes.Equal(o.Bytes, m.Bytes) })
	})
}

func codeName(code []byte) string {
	return fmt.Sprintf("%d bytes, %08x", len(code), checksum(code))
}

// siteTables compare the dispatches.
type siteTables struct {
	fusion  *table.Table // sites of only one plan, and those that compute other ops
	kernels *table.Table // how the sites of both are computed
}

func compareSites(a, b *Plan) siteTables {
	fusion, kernels := newFold(), newFold()
	for _, pair := range pairs(a, b) {
		if pair[0].Name == "" || pair[1].Name == "" {
			continue // the entries' table says so
		}
		name := pairName(pair)
		ours, theirs := sitesOf(a, pair[0]), sitesOf(b, pair[1])
		for _, d := range ours.order {
			fusion.site(name, d.Site)
			e := theirs.by[d.Site]
			fusion.add(siteChange{name, d.Site, "ops", d.ops(), e.ops()})
			if e != nil {
				kernels.site(name, d.Site)
				diffCall(kernels, name, d, e)
			}
		}
		for _, e := range theirs.order {
			if ours.by[e.Site] == nil {
				fusion.site(name, e.Site)
				fusion.add(siteChange{name, e.Site, "ops", "-", e.ops()})
			}
		}
	}
	t := siteTables{
		fusion:  &table.Table{Title: "fusion", Columns: []string{"site", "entries", "a", "b"}, Pair: true},
		kernels: &table.Table{Title: "kernels", Columns: []string{"site", "entries", "what", "a", "b"}, Pair: true},
	}
	for _, r := range fusion.rows() {
		t.fusion.Add(r.site, r.entries, r.a, r.b)
	}
	for _, r := range kernels.rows() {
		t.kernels.Add(r.site, r.entries, r.what, r.a, r.b)
	}
	return t
}

// called is a dispatch with its group and, in plans that have kernels, its pipeline.
type called struct {
	*Dispatch
	group    *ir.Group
	pipeline *Pipeline
}

type entrySites struct {
	order []*called
	by    map[string]*called
}

func sitesOf(p *Plan, e *Entry) entrySites {
	s := entrySites{by: map[string]*called{}}
	for i := range e.Dispatches {
		c := &called{Dispatch: &e.Dispatches[i], group: p.Program.Func(e.Name).Groups[i]}
		if c.Pipeline >= 0 {
			c.pipeline = &p.Pipelines[c.Pipeline]
		}
		if s.by[c.Site] == nil {
			s.by[c.Site] = c
		}
		s.order = append(s.order, c)
	}
	return s
}

// ops lists what the group computes, equal ops in a row as one with their number.
func (c *called) ops() string {
	if c == nil {
		return "-"
	}
	var parts []string
	for i := 0; i < len(c.group.Ops); {
		name, n := c.group.Ops[i].Kind.Name, 0
		for ; i < len(c.group.Ops) && c.group.Ops[i].Kind.Name == name; i++ {
			n++
		}
		if n > 1 {
			name = fmt.Sprintf("%d %s", n, name)
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}

// diffCall compares how the plans compute a site that both have. What follows from
// another kernel is not listed beside it.
func diffCall(f *fold, entry string, a, b *called) {
	add := func(what string, x, y any) {
		f.add(siteChange{entry, a.Site, what, fmt.Sprint(x), fmt.Sprint(y)})
	}
	ca, cb := a.group.Call, b.group.Call
	add("kernel", ca.Kernel, cb.Kernel)
	if ca.Kernel == cb.Kernel {
		add("candidate", ca.Name(), cb.Name())
	}
	add("constants", otherConstants(ca, cb), otherConstants(cb, ca))
	add("grid", gridName(a.Grid), gridName(b.Grid))
	add("subgroup", ca.Wave, cb.Wave)
	if a.pipeline == nil || b.pipeline == nil {
		return
	}
	if ca.Kernel == cb.Kernel {
		add("workgroup", a.pipeline.Workgroup, b.pipeline.Workgroup)
		add("shared memory", table.Bytes(a.pipeline.Shared), table.Bytes(b.pipeline.Shared))
	}
	if x, y := a.pipeline.Machine, b.pipeline.Machine; x != nil && y != nil {
		add("vgprs", x.VGPRs, y.VGPRs)
		add("spills", x.Spills, y.Spills)
		add("waves", x.Waves, y.Waves)
	}
}

// otherConstants writes the constants of c that are not the same in d.
func otherConstants(c, d *ir.Call) string {
	rest := slices.DeleteFunc(slices.Clone(c.Consts), func(k ir.Const) bool { return slices.Contains(d.Consts, k) })
	return constants(rest)
}

func gridName(g [3]int) string { return fmt.Sprintf("%dx%dx%d", g[0], g[1], g[2]) }
