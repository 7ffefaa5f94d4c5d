package plans

import "fmt"

// measure is one row of the table of what --fail-on can name.
type measure struct {
	name string
	of   func(p *Plan, e *Entry) float64
}

// measures count what a step of an entry takes, with full rows behind an empty cache.
var measures = []measure{
	{"stages", func(_ *Plan, e *Entry) float64 { return float64(e.Stages()) }},
	{"bytes", func(_ *Plan, e *Entry) float64 { read, write, _ := e.Work(0); return float64(read + write) }},
	{"time", func(_ *Plan, e *Entry) float64 { return micro(e.Predict(0).Seconds()) }},
	{"registers", func(p *Plan, e *Entry) float64 { return float64(p.registers(e)) }},
}

// registers is the most vector registers that a kernel of the entry takes; 0 in plans
// whose target's compiler was not asked.
func (p *Plan) registers(e *Entry) int {
	most := 0
	for i := range e.Dispatches {
		if n := e.Dispatches[i].Pipeline; n >= 0 && p.Pipelines[n].Machine != nil {
			most = max(most, p.Pipelines[n].Machine.VGPRs)
		}
	}
	return most
}

// Measures lists the names that Worse takes.
func Measures() []string {
	var names []string
	for _, m := range measures {
		names = append(names, m.name)
	}
	return names
}

// Worse describes the entries in which b takes more than a of a named measure. It skips
// measures without a figure in a. An entry that b lacks is worse in all measures.
func Worse(a, b *Plan, names []string) []string {
	var worse []string
	for i := range a.Entries {
		e := &a.Entries[i]
		other := b.entry(e.Name)
		if other.Name == "" {
			worse = append(worse, fmt.Sprintf("%s is missing", e.Name))
			continue
		}
		for _, m := range measures {
			for _, name := range names {
				if x, y := m.of(a, e), m.of(b, other); name == m.name && x > 0 && y > x {
					worse = append(worse, fmt.Sprintf("%s of %s %.6g -> %.6g", m.name, e.Name, x, y))
				}
			}
		}
	}
	return worse
}
