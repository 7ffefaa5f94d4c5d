package plans

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
)

// worstSites is how many call sites Page lists of an entry.
const worstSites = 5

// Page makes the tables of a plan that fit on a page: "plan", "memory", "entries", "layers" by kind, of a
// decoded token and the widest step of a prompt, the worst "call sites" of both, and "warnings", if
// there are any. memory is the device's in bytes, 0 where it is not known. Times are predictions
// behind an empty cache.
func Page(p *Plan, memory int64) []*table.Table {
	tables := []*table.Table{summaryTable(p, memory), memoryTable(p), entriesTable(p), layersTable(p), worstTable(p)}
	if w := warningsTable(p); len(w.Rows) > 0 {
		tables = append(tables, w)
	}
	return tables
}

func summaryTable(p *Plan, memory int64) *table.Table {
	h, m := &p.Header, &p.Header.Model
	t := &table.Table{Title: "plan", Columns: []string{"what", "is"}}
	t.Add("model", fmt.Sprintf("%s: %s, %d layers, %s parameters, vocabulary of %d", printable.Name(m.Name), m.Arch, m.Layers, table.Count(m.Parameters), m.Vocab))
	t.Add("file", fmt.Sprintf("%s, fingerprint %.12s", printable.Name(m.Path), m.Fingerprint))
	t.Add("target", fmt.Sprintf("%s, by %s", printable.Name(h.Target), h.Compiler))
	t.Add("holds", fmt.Sprintf("%d positions a sequence, KV cache in %s; sequences: %d", h.Ctx, h.KV, h.Slots))
	fits := table.Bytes(p.MemoryBytes()).String()
	if memory > 0 {
		fits += fmt.Sprintf(" of the target's %s", table.Bytes(memory))
	}
	t.Add("memory", fits)
	chat := "no template"
	if p.Dialect.Name != "" {
		chat = "dialect " + p.Dialect.Name
	}
	t.Add("chat", chat)
	if p.OfReference() {
		t.Add("times", reference())
	}
	return t
}

// shown are the entries that the page looks into: a token, and the widest step of a prompt.
func shown(p *Plan) []*Entry {
	var decode, prefill *Entry
	for i := range p.Entries {
		switch e := &p.Entries[i]; {
		case e.Kind == "decode" && e.Rows == 1:
			decode = e
		case (e.Kind == "prefill" || e.Kind == "embed") && (prefill == nil || e.Rows > prefill.Rows):
			prefill = e
		}
	}
	return slices.DeleteFunc([]*Entry{decode, prefill}, func(e *Entry) bool { return e == nil })
}

// mixers name a layer by the ops that tell what kind it is.
var mixers = []struct{ op, name string }{
	{"deltanet", "delta rule"}, {"delta_chunk", "delta rule"}, {"ssd", "state space"}, {"attention", "attention"}, {"expert_linear", "experts"},
}

// layerKind says what layer number n of f is, such as "attention, experts".
func layerKind(f *ir.Func, groups []int) string {
	var names []string
	for _, m := range mixers {
		has := slices.ContainsFunc(groups, func(g int) bool {
			return slices.ContainsFunc(f.Groups[g].Ops, func(op *ir.Op) bool { return strings.HasPrefix(op.Kind.Name, m.op) })
		})
		if has && !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	if len(names) == 0 {
		return "dense"
	}
	return strings.Join(names, ", ")
}

// layersTable joins the layers of a kind.
func layersTable(p *Plan) *table.Table {
	t := &table.Table{Title: "layers", Columns: []string{"entry", "kind", "layers", "dispatches", "read", "us a layer", "share %"}}
	for _, e := range shown(p) {
		f, whole := p.Program.Func(e.Name), e.Predict(0).Seconds()
		byLayer := map[int][]int{} // dispatches
		for i, d := range e.Dispatches {
			if m := layerNumber.FindStringSubmatch(d.Site); m != nil {
				n, _ := strconv.Atoi(m[1]) // digits
				byLayer[n] = append(byLayer[n], i)
			}
		}
		type sum struct {
			layers, dispatches int
			read               int64
			seconds            float64
		}
		kinds := map[string]*sum{}
		var order []string
		for n := range p.Header.Model.Layers {
			if len(byLayer[n]) == 0 {
				continue
			}
			kind := layerKind(f, byLayer[n])
			if kinds[kind] == nil {
				kinds[kind] = &sum{}
				order = append(order, kind)
			}
			s := kinds[kind]
			s.layers++
			for _, i := range byLayer[n] {
				c := &e.Dispatches[i].Cost
				s.dispatches, s.read, s.seconds = s.dispatches+1, s.read+c.ReadBytes, s.seconds+c.Predicted.Seconds()
			}
		}
		for _, kind := range order {
			s := kinds[kind]
			t.Add(e.Name, kind, s.layers, float64(s.dispatches)/float64(s.layers), table.Bytes(s.read/int64(s.layers)),
				micro(s.seconds)/float64(s.layers), percent(s.seconds, whole))
		}
	}
	return t
}

// worstTable lists the call sites that take the longest.
func worstTable(p *Plan) *table.Table {
	t := &table.Table{Title: "call sites", Columns: []string{"entry", "site", "times", "us", "share %", "bound", "kernel"}}
	for _, e := range shown(p) {
		f, whole := p.Program.Func(e.Name), e.Predict(0).Seconds()
		kernel := map[string]string{}
		for i, d := range e.Dispatches {
			if site := FoldSite(d.Site); kernel[site] == "" {
				kernel[site] = f.Groups[i].Call.Kernel
			}
		}
		sites := e.PredictSites(0)
		for _, s := range sites[:min(len(sites), worstSites)] {
			t.Add(e.Name, shortSite(s.Site), s.Dispatches, micro(s.Seconds()), percent(s.Seconds(), whole), s.Bound(), kernel[s.Site])
		}
	}
	return t
}

// shortSite leaves out of a long name what is between the first and the last tensor or op.
func shortSite(name string) string {
	parts := strings.Split(name, "+")
	if len(name) <= 40 || len(parts) < 3 {
		return name
	}
	return parts[0] + "+..+" + parts[len(parts)-1]
}

// warningsTable says what a person may want to do something about.
func warningsTable(p *Plan) *table.Table {
	t := &table.Table{Title: "warnings", Columns: []string{"what", "where", "why"}}
	spills := 0
	for _, pl := range p.Pipelines {
		if pl.Machine != nil && pl.Machine.Spills > 0 {
			spills++
		}
	}
	if spills > 0 {
		t.Add("registers spill", fmt.Sprintf("%d of %d pipelines", spills, len(p.Pipelines)), "the target's compiler found no room")
	}
	grown := map[string]int64{}
	var order []string
	for _, w := range p.Weights {
		if w.Bytes > w.Size+w.Size/8 && w.Size > 1<<10 {
			name := w.DType.String()
			if grown[name] == 0 {
				order = append(order, name)
			}
			grown[name] += w.Bytes - w.Size
		}
	}
	for _, name := range order {
		t.Add("weights grow", name, fmt.Sprintf("by %s on the device: no kernel reads the type as it is", table.Bytes(grown[name])))
	}
	if p.IsHost() {
		t.Add("slow", "all entries", "the oracle evaluates them on this computer's processor")
	}
	if p.Vocab.Model == "" {
		t.Add("no text", "the model", "it has no tokenizer: the plan takes token ids")
	}
	return t
}

// EntryNamed returns the entry of that name; its error lists the plan's entries.
func (p *Plan) EntryNamed(name string) (*Entry, error) {
	e := p.entry(name)
	if e.Name == "" {
		return nil, fmt.Errorf("the plan has no entry %q; it has %s", name, strings.Join(p.entryNames(), ", "))
	}
	return e, nil
}

// EntryTable lists the dispatches of an entry; SiteTable describes one in detail.
func EntryTable(p *Plan, name string) (*table.Table, error) {
	e, err := p.EntryNamed(name)
	if err != nil {
		return nil, err
	}
	f := p.Program.Func(name)
	t := &table.Table{Title: name, Columns: []string{"#", "stage", "site", "read", "us", "bound", "kernel"}}
	begins := slices.ContainsFunc(e.Dispatches, func(d Dispatch) bool { return begin(d.Order) != "" })
	if begins {
		t.Columns = slices.Insert(t.Columns, 2, "begins")
	}
	for i, d := range e.Dispatches {
		times := d.Cost.Predicted
		row := []any{i, d.Stage, d.Site, table.Bytes(d.Cost.ReadBytes), micro(times.Seconds()), times.Bound(), f.Groups[i].Call.Kernel}
		if begins {
			row = slices.Insert(row, 2, any(begin(d.Order)))
		}
		t.Add(row...)
	}
	return t, nil
}

// begin says how a dispatch begins, if it does so in another way than behind all stages before its own and on queue 0.
func begin(o ir.Order) string {
	var parts []string
	if o.Waits != o.Stage {
		parts = append(parts, fmt.Sprintf("behind %d", o.Waits))
	}
	if o.Queue != 0 {
		parts = append(parts, fmt.Sprintf("queue %d", o.Queue))
	}
	if o.Early != ir.NotEarly {
		parts = append(parts, "early, "+string(o.Early))
	}
	return strings.Join(parts, ", ")
}

func (p *Plan) entryNames() []string {
	var names []string
	for i := range p.Entries {
		names = append(names, p.Entries[i].Name)
	}
	return names
}

// SiteTable describes the call sites whose name contains part, in all entries or the named one: what is
// computed, by which kernel, of what size and why. Equal layers appear once.
func SiteTable(p *Plan, entry, part string) (*table.Table, error) {
	t := &table.Table{Title: "call sites", Columns: []string{"entry", "site", "stage", "begins", "grid", "grain", "read", "write", "flops", "us", "bound",
		"ops", "candidate", "kernel", "constants", "why"}}
	for i := range p.Entries {
		if e := &p.Entries[i]; entry == "" || e.Name == entry {
			siteRows(t, e, p.Program.Funcs[i], part)
		}
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("no call site has %q in its name", part)
	}
	return t, nil
}

func siteRows(t *table.Table, e *Entry, f *ir.Func, part string) {
	seen := map[string]bool{}
	for j, d := range e.Dispatches {
		call, c := f.Groups[j].Call, d.Cost
		same := fmt.Sprint(FoldSite(d.Site), call.Name(), call.Kernel, call.Consts, d.Grid)
		if !strings.Contains(d.Site, part) || seen[same] {
			continue
		}
		seen[same] = true
		var ops []string
		for _, op := range f.Groups[j].Ops {
			ops = append(ops, op.Kind.Name)
		}
		t.Add(e.Name, d.Site, d.Stage, begin(d.Order), gridName(d.Grid), d.Grain, table.Bytes(c.ReadBytes), table.Bytes(c.WriteBytes), table.Count(c.FLOPs),
			micro(c.Predicted.Seconds()), c.Predicted.Bound(), strings.Join(ops, " "), call.Name(),
			call.Kernel, constants(call.Consts), d.Why)
	}
}
