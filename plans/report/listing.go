package report

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/modules"
)

// Kernels are the kernels of a plan.
type Kernels struct {
	Modules   []Module
	Pipelines []Pipeline
}

// Module is the listing of a module, open constants open.
type Module struct {
	Name    string
	Format  string // of the code, for people
	Open    bool   // specialization constants are
	Listing []int  // patterns
}

// Pipeline is a module with its constants.
type Pipeline struct {
	Module    int
	Consts    string
	Wave      int
	Workgroup int
	Shared    int
	Machine   *plans.Machine `json:",omitempty"`
	Assembly  []int          `json:",omitempty"` // patterns
}

// listings collects the lines of all listings.
type listings struct {
	patterns []string
	at       map[string]int
	bytes    int // of patterns and lists, about
	// budget is how many bytes of assembly are still taken: its registers repeat less
	// than the ids of SPIR-V, and reports should stay small enough to be sent.
	budget int
}

// maxAssembly is the budget of a report.
const maxAssembly = 2 << 20

func newListings(plans int) *listings {
	return &listings{at: map[string]int{}, budget: maxAssembly / plans}
}

func (l *listings) kernels(p *plans.Plan, assembly []string) (Kernels, error) {
	var k Kernels
	for i := range p.Modules {
		m := &p.Modules[i]
		text, err := modules.Disassemble(m, nil)
		if err != nil {
			return k, fmt.Errorf("module %q: %w", m.Name, err)
		}
		format, err := plans.FormatOf(m.Format)
		if err != nil {
			return k, fmt.Errorf("module %q: %w", m.Name, err)
		}
		k.Modules = append(k.Modules, Module{m.Name, format.Doc, format.Open, l.listing(text)})
	}
	for _, pl := range p.Pipelines {
		out := Pipeline{Module: pl.Module, Wave: pl.Wave, Workgroup: pl.Workgroup, Shared: pl.Shared, Machine: pl.Machine}
		var consts []string
		for _, c := range pl.Consts {
			consts = append(consts, c.String())
		}
		out.Consts = strings.Join(consts, " ")
		k.Pipelines = append(k.Pipelines, out)
	}
	for _, i := range Slowest(p) {
		if assembly == nil || assembly[i] == "" || l.budget < 0 {
			continue
		}
		before := l.bytes
		k.Pipelines[i].Assembly = l.listing(assembly[i])
		l.budget -= l.bytes - before
	}
	return k, nil
}

// Slowest returns the pipelines by the largest share that they have of an entry's
// time.
func Slowest(p *plans.Plan) []int {
	share := make([]float64, len(p.Pipelines))
	for _, e := range p.Entries {
		times := make([]float64, len(p.Pipelines))
		for _, d := range e.Dispatches {
			if d.Pipeline >= 0 {
				times[d.Pipeline] += d.Cost.Predicted.Seconds()
			}
		}
		if all := e.Predict(0).Seconds(); all > 0 {
			for i, t := range times {
				share[i] = max(share[i], t/all)
			}
		}
	}
	order := make([]int, len(share))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(share[b], share[a]) })
	return order
}

// listing stores the lines of text.
func (l *listings) listing(text string) []int {
	list := []int{}
	last := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		pattern, result := distances(line, last)
		last = result
		n := len(l.patterns)
		list = append(list, once(l.at, &l.patterns, pattern, pattern))
		l.bytes += len(",12345")
		if len(l.patterns) > n {
			l.bytes += len(pattern) + len(`"",`)
		}
	}
	return list
}

// finish returns the patterns, those that many lines have first: their indices are
// the shortest.
func (l *listings) finish(all []*Plan) []string {
	var lists [][]int
	for _, p := range all {
		for _, m := range p.Modules {
			lists = append(lists, m.Listing)
		}
		for _, pl := range p.Pipelines {
			lists = append(lists, pl.Assembly)
		}
	}
	uses := make([]int, len(l.patterns))
	for _, list := range lists {
		for _, i := range list {
			uses[i]++
		}
	}
	order := make([]int, len(uses)) // old indices
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(uses[b], uses[a]) })
	sorted, now := make([]string, len(order)), make([]int, len(order))
	for i, old := range order {
		sorted[i], now[old] = l.patterns[old], i
	}
	for _, list := range lists {
		for i := range list {
			list[i] = now[list[i]]
		}
	}
	return sorted
}

// near is how far an id may be from the result to be told by its distance. Those that
// are farther are often of what every iteration of a loop that was unrolled uses.
const near = 256

// distances writes line with the ids that are near as distances from its result, or
// from the last result if it has none. It returns the result that counts for the next
// line.
func distances(line string, last int) (string, int) {
	var b strings.Builder
	if id, n := number(line); n > 0 && strings.HasPrefix(line[n:], " = ") {
		fmt.Fprintf(&b, "%+d ", id-last)
		last = id
		line = line[n+len(" = "):]
	}
	for line != "" {
		if id, n := number(line); n > 0 && -near <= last-id && last-id <= near {
			fmt.Fprintf(&b, "%%~%d", last-id)
			line = line[n:]
			continue
		}
		next := strings.IndexByte(line[1:], '%') + 1
		if next == 0 {
			next = len(line)
		}
		b.WriteString(line[:next])
		line = line[next:]
	}
	return b.String(), last
}

// number reads an id such as "%12" at the beginning of s; n is its length, 0 if there
// is none. Longer numbers than those of ids are left as they are.
func number(s string) (id, n int) {
	if s == "" || s[0] != '%' {
		return 0, 0
	}
	n = 1
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == 1 || n > 10 || n < len(s) && isWord(s[n]) {
		return 0, 0
	}
	id, err := strconv.Atoi(s[1:n])
	if err != nil {
		return 0, 0
	}
	return id, n
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func writeInts(h hash.Hash, ints ...int) {
	for _, n := range ints {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
}
