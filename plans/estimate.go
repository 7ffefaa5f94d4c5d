package plans

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
)

// depths are the numbers of cached positions that Estimate predicts speed at.
var depths = []int{0, 1 << 10, 16 << 10, 128 << 10}

// topSites is how many call sites Estimate lists of a test.
const topSites = 5

// Estimate makes the tables that say what a plan needs and how fast it should be:
// "memory", "context", "predicted speed" and, with the slowest of each test,
// "predicted call sites". memory is that of the target in bytes, 0 where it is not
// known, own the context that the model was trained for, largest the one that fits, cores
// those of a processor. Call sites of plans for processors have shares alone.
func Estimate(p *Plan, memory int64, own, largest, cores int) []*table.Table {
	return append([]*table.Table{memoryEstimate(p), contextEstimate(p, memory, own, largest)}, speedEstimate(p, cores)...)
}

func memoryEstimate(p *Plan) *table.Table {
	m := &table.Table{Title: "memory", Columns: []string{"what", "bytes"}}
	weights, kv, state := p.WeightBytes(), SumBytes(p.Memory.KV), SumBytes(p.Memory.State)
	m.Add("weights", table.Bytes(weights))
	m.Add("KV cache", table.Bytes(kv))
	m.Add("KV cache, a position", table.Bytes(p.cacheRow()))
	if k := p.Paged(); k != nil {
		all := p.PoolBytes(p.MostPages())
		m.Add(fmt.Sprintf("KV cache, a page of %d positions", k.Page), table.Bytes(p.PageBytes()))
		if w := p.PagedIn(ir.WindowGroup); w != nil {
			m.Add(fmt.Sprintf("of layers with a window, %d pages", w.Pages), table.Bytes(int64(w.Pages)*p.pageBytes(ir.WindowGroup)))
		}
		m.Add(fmt.Sprintf("with %d pages, as here, at least", k.Pages), table.Bytes(p.MemoryBytes()))
		m.Add(fmt.Sprintf("with %d pages, at most", p.MostPages()), table.Bytes(all))
	}
	m.Add("recurrent state", table.Bytes(state))
	m.Add("arena", table.Bytes(p.Memory.Arena))
	m.Add("tables and results", table.Bytes(p.MemoryBytes()-weights-kv-state-p.Memory.Arena))
	m.Add("sum", table.Bytes(p.MemoryBytes()))
	return m
}

func contextEstimate(p *Plan, memory int64, own, largest int) *table.Table {
	c := &table.Table{Title: "context", Columns: []string{"what", "positions"}}
	c.Add("this estimate", p.Header.Ctx)
	c.Add("the model's own", own)
	if memory != 0 {
		c.Add(fmt.Sprintf("largest that fits %s", table.Bytes(memory)), largest)
	}
	return c
}

// test is one row of the predicted speed.
type test struct {
	name  string
	entry *Entry
	depth int
}

// tests are prompts of the widest prefill entries and single tokens, as llama-bench
// calls them, at the depths that the plan has.
func tests(p *Plan) []test {
	var prefill []*Entry // those of 512 rows, as llama-bench has, and more; else the widest
	var decode *Entry
	for i := range p.Entries {
		switch e := &p.Entries[i]; {
		case e.Kind == "prefill" || e.Kind == "embed":
			if len(prefill) > 0 && prefill[0].Rows < 512 {
				prefill = nil
			}
			prefill = append(prefill, e)
		case e.Kind == "decode" && e.Rows == 1:
			decode = e
		}
	}
	var list []test
	add := func(name string, e *Entry) {
		for _, depth := range depths {
			if depth <= p.Header.Ctx {
				list = append(list, test{name, e, min(depth, p.Header.Ctx-e.Rows)})
			}
		}
	}
	for _, e := range prefill {
		add(fmt.Sprintf("pp%d", e.Rows), e)
	}
	if decode != nil {
		add("tg", decode)
	}
	return list
}

func speedEstimate(p *Plan, cores int) []*table.Table {
	speed := &table.Table{Title: "predicted speed", Columns: []string{"test", "depth", "tokens/s", "us a step", "bytes %", "operations %", "stages %", "bound"}}
	sites := &table.Table{Title: "predicted call sites", Columns: []string{"test", "depth", "site", "dispatches", "us", "share %", "bound"}}
	if p.OfReference() {
		sites.Columns = slices.DeleteFunc(sites.Columns, func(c string) bool { return c == "us" })
	}
	for _, t := range tests(p) {
		sum := t.entry.Predict(t.depth)
		all := sum.Seconds()
		speed.Add(t.name, t.depth, p.Rate(t.entry, t.depth, cores).cell(), p.Seconds(t.entry, t.depth, cores).each(micro).cell(), 100*sum.Bytes/all, 100*sum.Operations/all, 100*sum.Stages/all, sum.Bound())
		top := t.entry.PredictSites(t.depth)
		for _, s := range top[:min(len(top), topSites)] {
			row := []any{t.name, t.depth, s.Site, s.Dispatches}
			if !p.OfReference() {
				row = append(row, micro(s.Seconds()))
			}
			sites.Add(append(row, 100*s.Seconds()/all, s.Bound())...)
		}
	}
	return []*table.Table{speed, sites}
}
