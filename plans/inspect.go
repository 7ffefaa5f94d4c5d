package plans

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
)

// Inspect makes the tables that say what a plan does and needs: "plan",
// "requirements", "numerics", "memory", "caches", "entries", the dispatches of each entry under its name,
// "pipelines", and "coverage". Times are predictions behind an empty cache.
func Inspect(p *Plan) []*table.Table {
	tables := []*table.Table{headerTable(p), chatTable(p), requirementsTable(p), numericsTable(p), memoryTable(p), cachesTable(p), entriesTable(p)}
	for i := range p.Entries {
		tables = append(tables, dispatchTable(p, &p.Entries[i], p.Program.Funcs[i]))
	}
	if !p.IsHost() {
		tables = append(tables, pipelinesTable(p))
	}
	return append(tables, coverageTable(p))
}

func headerTable(p *Plan) *table.Table {
	h, m := &p.Header, &p.Header.Model
	t := &table.Table{Title: "plan", Columns: []string{"field", "value"}}
	for _, row := range [][2]any{
		{"compiler", h.Compiler}, {"target", h.Target},
		{"model", printable.Name(m.Name)}, {"architecture", m.Arch}, {"file", m.Path}, {"fingerprint", m.Fingerprint},
		{"parameters", table.Count(m.Parameters)}, {"layers", m.Layers}, {"vocabulary", m.Vocab}, {"shards", m.Shards},
		{"context", h.Ctx}, {"slots", h.Slots}, {"kv cache", h.KV}, {"kv cache a position", table.Bytes(p.cacheRow())}, {"rows at most", h.MaxRows}, {"output ring", h.Ring},
		{"modules", len(p.Modules)}, {"pipelines", len(p.Pipelines)}, {"embedded weights", table.Bytes(len(p.Embedded))},
	} {
		t.Add(row[0], row[1])
	}
	if k := p.Paged(); k != nil {
		t.Add("pages of the pool", fmt.Sprintf("%d of %d positions, up to %d", k.Pages, k.Page, p.MostPages()))
		t.Add("a page", table.Bytes(p.PageBytes()))
		if w := p.PagedIn(ir.WindowGroup); w != nil {
			t.Add("of layers with a window", fmt.Sprintf("%d pages of %d positions for a window of %d", w.Pages, w.Page, w.Window))
		}
	}
	return t
}

// chatTable says how the model is talked to.
func chatTable(p *Plan) *table.Table {
	t := &table.Table{Title: "chat", Columns: []string{"field", "value"}}
	for _, s := range p.Vocab.Sampling {
		t.Add("default "+printable.Name(s.Name), s.Value)
	}
	d := &p.Dialect
	if d.Name == "" {
		t.Add("template", "none")
		return t
	}
	list := func(s []string) string { return printable.Name(strings.Join(s, " ")) }
	for _, row := range [][2]any{
		{"dialect", d.Name}, {"reasoning opens", printable.Name(d.ReasoningOpen)}, {"reasoning closes", printable.Name(d.ReasoningClose)},
		{"the prompt opens it", d.PromptOpens}, {"switched by", printable.Name(d.Switch)}, {"takes reasoning_effort", d.Effort},
		{"calls", d.Calls}, {"arguments as text", d.TextCalls}, {"one call a message", d.OneCall}, {"content as parts", d.Parts},
		{"roles", list(d.Roles)}, {"an answer ends with", list(d.Ends)},
	} {
		t.Add(row[0], row[1])
	}
	return t
}

// numericsTable counts, by entry, the projections that read x as it is and those that
// read it rounded, by the op that rounds it.
func numericsTable(p *Plan) *table.Table {
	ops := []string{"", "half", "fixed12", "fixed8", "bfloat16"}
	t := &table.Table{Title: "numerics", Columns: append([]string{"entry", "x in f32"}, ops[1:]...)}
	for _, f := range p.Program.Funcs {
		count := make([]int, len(ops))
		for _, op := range f.Ops() {
			if !slices.Contains([]string{"linear", "linear_parts", "expert_linear"}, op.Kind.Name) {
				continue
			}
			rounded := ""
			if d := op.Args[0].Def; d != nil && d.Kind.Name == "unpack12" {
				rounded = "fixed12"
			} else if d != nil && slices.Contains(ops, d.Kind.Name) {
				rounded = d.Kind.Name
			}
			count[slices.Index(ops, rounded)]++
		}
		row := []any{f.Name}
		for _, n := range count {
			row = append(row, n)
		}
		t.Add(row...)
	}
	return t
}

func memoryTable(p *Plan) *table.Table {
	t := &table.Table{Title: "memory", Columns: []string{"space", "regions", "bytes", "share %"}}
	all := p.MemoryBytes()
	add := func(name string, n int, bytes int64) {
		t.Add(name, n, table.Bytes(bytes), percent(float64(bytes), float64(all)))
	}
	add("weight", len(p.Weights), p.WeightBytes())
	for _, s := range p.Memory.spaces() {
		add(s.name, len(s.regions), SumBytes(s.regions))
	}
	add("arena", 1, p.Memory.Arena)
	regions := 0
	for _, row := range t.Rows {
		regions += row[1].(int)
	}
	add("sum", regions, all)
	return t
}

// cachesTable says what caches and states hold, one row for those of all layers that are alike.
func cachesTable(p *Plan) *table.Table {
	t := &table.Table{Title: "caches", Columns: []string{"space", "region", "regions", "keeps", "sequences", "rows", "bytes a row", "window", "back"}}
	type like struct {
		space, name string
		kept        Kept
	}
	count := map[like]int{}
	var order []like
	for _, s := range p.Memory.spaces() {
		for _, r := range s.regions {
			if r.Kept == nil {
				continue
			}
			l := like{s.name, FoldSite(r.Name), *r.Kept}
			if count[l]++; count[l] == 1 {
				order = append(order, l)
			}
		}
	}
	for _, l := range order {
		k := l.kept
		keeps := k.Kind
		if k.Page > 0 {
			keeps = k.extent()
		}
		t.Add(l.space, l.name, count[l], keeps, k.Sequences, k.Rows, table.Bytes(k.RowBytes), k.Window, k.Back)
	}
	return t
}

func entriesTable(p *Plan) *table.Table {
	t := &table.Table{Title: "entries", Columns: []string{"entry", "rows", "reach", "grain", "part", "dispatches", "stages", "per layer", "read", "write", "flops", p.timeColumn()}}
	for i := range p.Entries {
		e := &p.Entries[i]
		layer := map[int]bool{}
		for _, d := range e.Dispatches {
			if strings.HasPrefix(d.Site, "blk.") {
				layer[d.Stage] = true
			}
		}
		read, write, flops := e.Work(0)
		perLayer := float64(len(layer)) / float64(max(p.Header.Model.Layers, 1))
		t.Add(e.Name, e.Rows, e.Reach, e.Grain, e.Part, len(e.Dispatches), e.Stages(), perLayer,
			table.Bytes(read), table.Bytes(write), table.Count(flops), micro(e.Predict(0).Seconds()))
	}
	return t
}

// micro is a time in microseconds.
func micro(seconds float64) float64 { return 1e6 * seconds }

// percent is the share of part in whole, 0 of nothing.
func percent(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

// dispatchTable takes the kernels from the program, which host plans have, too.
func dispatchTable(p *Plan, e *Entry, f *ir.Func) *table.Table {
	t := &table.Table{Title: e.Name, Columns: []string{"#", "stage", "waits", "queue", "early", "site", "candidate", "kernel", "constants", "grid", "grain", "read", "write", "flops",
		p.timeColumn(), "share %", "bound", "why"}}
	sum := e.Predict(0).Seconds()
	for i, d := range e.Dispatches {
		call := f.Groups[i].Call
		consts := constants(call.Consts)
		t.Add(i, d.Stage, d.Waits, d.Queue, string(d.Early), d.Site, call.Name(), call.Kernel, consts, gridName(d.Grid), d.Grain,
			table.Bytes(d.Cost.ReadBytes), table.Bytes(d.Cost.WriteBytes), table.Count(d.Cost.FLOPs),
			micro(d.Cost.Predicted.Seconds()), percent(d.Cost.Predicted.Seconds(), sum), d.Cost.Predicted.Bound(), d.Why)
	}
	return t
}

// pipelinesTable has the figures of the target's compiler where it was asked.
func pipelinesTable(p *Plan) *table.Table {
	t := &table.Table{Title: "pipelines", Columns: []string{"#", "kernel", "constants", "wave", "workgroup", "shared"}}
	asked := slices.ContainsFunc(p.Pipelines, func(pl Pipeline) bool { return pl.Machine != nil })
	if asked {
		t.Columns = append(t.Columns, "vgprs", "sgprs", "spills", "scratch", "waves", "code", "valu", "vmem", "cycles", "latency", "compiler")
	}
	for i, pl := range p.Pipelines {
		row := []any{i, p.Modules[pl.Module].Name, constants(pl.Consts),
			pl.Wave, pl.Workgroup, table.Bytes(pl.Shared)}
		if asked {
			m := pl.Machine
			if m == nil {
				m = &Machine{}
			}
			row = append(row, m.VGPRs, m.SGPRs, m.Spills, table.Bytes(m.Scratch), m.Waves, table.Bytes(m.Code), m.VALU, m.VMEM, m.Cycles, m.Latency, m.Compiler)
		}
		t.Add(row...)
	}
	return t
}

func constants[C fmt.Stringer](list []C) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, c.String())
	}
	return strings.Join(parts, " ")
}

// coverageTable says of every weight which kernels read it in each kind of entry.
func coverageTable(p *Plan) *table.Table {
	var kinds []string
	readers := map[string]map[string][]string{} // kernels by weight and kind
	for i, f := range p.Program.Funcs {
		kind := p.Entries[i].Kind
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		for _, g := range f.Groups {
			for _, v := range g.Inputs() {
				if v.Class != ir.Weight {
					continue
				}
				if readers[v.Name] == nil {
					readers[v.Name] = map[string][]string{}
				}
				if list := readers[v.Name][kind]; !slices.Contains(list, g.Call.Kernel) {
					readers[v.Name][kind] = append(list, g.Call.Kernel)
				}
			}
		}
	}
	t := &table.Table{Title: "coverage", Columns: append([]string{"tensor", "type", "shape", "layout", "bytes"}, kinds...)}
	for _, w := range p.Weights {
		row := []any{w.Name, w.DType.String(), fmt.Sprint(w.Shape), w.Layout, table.Bytes(w.Bytes)}
		for _, kind := range kinds {
			row = append(row, table.List(readers[w.Name][kind]))
		}
		t.Add(row...)
	}
	return t
}
