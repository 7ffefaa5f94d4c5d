package plans

import "github.com/zincc-dev/zincc/internal/table"

// headline says what a person asks first of two plans: how fast, how many dispatches, how much memory.
// Rates are predictions behind an empty cache.
func headline(a, b *Plan) *table.Table {
	t := &table.Table{Title: "in short", Columns: []string{"what", "a", "b", "change %"}}
	add := func(what string, x, y float64, show func(float64) any) {
		if x != y && x > 0 && y > 0 {
			t.Add(what, show(x), show(y), change(x, y))
		}
	}
	number := func(v float64) any {
		if v >= 100 {
			return int(v)
		}
		return v
	}
	add("decode, tokens/s", rate(a.entry("decode/1")), rate(b.entry("decode/1")), number)
	wide := &Entry{}
	for _, e := range pairs(a, b) {
		if e[0].Kind == "prefill" && e[1].Kind == "prefill" && e[0].Rows > wide.Rows {
			wide = e[0]
		}
	}
	add("prompts by "+wide.Name+", tokens/s", rate(wide), rate(b.entry(wide.Name)), number)
	count := func(v float64) any { return int(v) }
	add("dispatches a token", float64(len(a.entry("decode/1").Dispatches)), float64(len(b.entry("decode/1").Dispatches)), count)
	size := func(v float64) any { return table.Bytes(v) }
	ra, _, _ := a.entry("decode/1").Work(0)
	rb, _, _ := b.entry("decode/1").Work(0)
	add("read a token", float64(ra), float64(rb), size)
	add("device memory", float64(a.MemoryBytes()), float64(b.MemoryBytes()), size)
	return t
}

// rate is the tokens a second of full steps of the entry, as predicted; 0 where nothing is.
func rate(e *Entry) float64 {
	seconds := e.Predict(0).Seconds()
	if seconds == 0 {
		return 0
	}
	return float64(e.Rows) / seconds
}
