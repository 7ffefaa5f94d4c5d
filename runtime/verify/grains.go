package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/step"
)

// Grains is the site of the results that compare steps of prompts cut at multiples of their entry's grain.
const Grains = "grains"

// cutter compares steps with the same steps cut; it needs less of an executor than what compares dispatches.
type cutter struct {
	*verifier
	dev interface {
		runtime.Executor
		runtime.SpanCopier
	}
}

// compare gives the tokens of one step of a prompt to its entry once more in pieces of one grain, two, three and so on,
// and compares the bits of caches, states and logits. Steps of several prompts it compares with steps of each. An entry
// that failed is left out: what its dispatches did not write may be anything.
func (c *cutter) compare(ctx context.Context) error {
	failed := map[string]bool{}
	for _, r := range c.report.Results {
		failed[r.Entry] = failed[r.Entry] || r.Difference != nil
	}
	for i := range c.plan.Entries {
		e := &c.plan.Entries[i]
		if e.Exact() || e.Grain == 0 || failed[e.Name] || c.opts.Entry != "" && c.opts.Entry != e.Name {
			continue
		}
		if s := c.whole(e); len(s.rows) > e.Grain {
			if err := c.compareCut(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
		}
		if e.Part == 0 {
			continue
		}
		if err := c.compareParts(ctx, c.trial(e, c.rows(e)), c.narrowest()); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

// rows is how many a step of an entry has.
func (c *cutter) rows(e *plans.Entry) int {
	if c.opts.Rows > 0 {
		return min(e.Rows, c.opts.Rows)
	}
	return e.Rows
}

// whole is a step that begins at a multiple of the grain and, if that is more than one position, ends within one.
func (c *cutter) whole(e *plans.Entry) trial {
	slot, rows := c.slots()-1, min(e.Run, c.plan.Header.Ctx)
	if c.opts.Rows > 0 {
		rows = min(rows, c.opts.Rows)
	}
	rows -= min(1, e.Grain-1)
	from := min(c.context(slot), c.plan.Header.Ctx-rows) / e.Grain * e.Grain
	s := trial{entry: e}
	for r := range rows {
		s.rows = append(s.rows, c.row(slot, from+r))
	}
	return s
}

// pieces cuts the step into pieces of one grain, two, three and so on.
func (s trial) pieces() (list []trial) {
	for done, n := 0, s.entry.Grain; done < len(s.rows); n += s.entry.Grain {
		list = append(list, s.part(s.entry, done, min(n, len(s.rows)-done)))
		done += n
	}
	return list
}

// compareCut compares the step with its pieces.
func (c *cutter) compareCut(ctx context.Context, s trial) error {
	r := s.result(Grains)
	var err error
	r.Difference, err = c.difference(ctx, s, s.pieces())
	if r.Difference != nil {
		r.Difference.Problem = fmt.Sprintf("in %d steps from multiples of %d on, the entry's grain, not the bits of one step, which is said to be the oracle's",
			len(s.pieces()), s.entry.Grain)
	}
	c.add(r)
	return err
}

// difference is what differs of what other steps with the same rows leave. Before both, caches have the rows of other
// tokens, so that rows that nobody writes show.
func (c *cutter) difference(ctx context.Context, s trial, others []trial) (*Difference, error) {
	before := trial{entry: s.entry}
	for _, r := range s.rows {
		before.rows = append(before.rows, step.Row{Token: (r.Token + 1) % int32(c.plan.Header.Model.Vocab), Pos: r.Pos, Slot: r.Slot})
	}
	slot, from, to := int(s.rows[0].Slot), int(s.rows[0].Pos), int(s.rows[0].Pos)+len(s.rows)
	spans := spansOf(append(c.cached(slot, from, to), c.states(slot, from)...))
	after := append(c.cached(slot, from, to), c.states(slot, to)...)
	if _, err := c.follow(ctx, []trial{before}); err != nil {
		return nil, err
	}
	begin := make([]byte, plans.SpanBytes(spans))
	if err := c.dev.ReadSpans(ctx, spans, begin); err != nil {
		return nil, err
	}
	var kept, results [2][]byte
	for i, steps := range [][]trial{{s}, others} {
		if err := c.dev.WriteSpans(ctx, spans, begin); err != nil {
			return nil, err
		}
		var err error
		if results[i], err = c.follow(ctx, steps); err != nil {
			return nil, err
		}
		kept[i] = make([]byte, plans.SpanBytes(spansOf(after)))
		if err := c.dev.ReadSpans(ctx, spansOf(after), kept[i]); err != nil {
			return nil, err
		}
	}
	if d := c.otherParts(after, kept[1], kept[0]); d != nil {
		return d, nil
	}
	d := otherBits(results[1], results[0], c.plan.Header.Model.Vocab)
	if d != nil {
		d.Value = others[0].entry.Logits
	}
	return d, nil
}

// follow runs steps one behind the other and returns the logits of all rows or, of a prefill entry, those of the last,
// of each sequence that it has.
// Vectors of texts need no comparison: caches and states have what they follow from.
func (c *cutter) follow(ctx context.Context, steps []trial) (all []byte, err error) {
	for _, s := range steps {
		b := step.Block{Rows: s.rows, Count: count, Heads: s.heads()}
		b.Masked, b.Mask = c.masks(s)
		if err := b.Store(c.dev); err != nil {
			return nil, err
		}
		if err := runtime.Run(ctx, c.dev, s.entry, 1); err != nil {
			return nil, err
		}
		if s.entry.Kind == "embed" {
			continue
		}
		x, err := c.dev.Floats(s.entry.Logits)
		if err != nil {
			return nil, err
		}
		heads := 1
		switch {
		case s.entry.Kind == "score":
			heads = len(s.rows)
		case s.entry.Part > 0:
			heads = len(s.ends())
			fallthrough
		default:
			all = nil
		}
		for _, f := range x[:heads*c.plan.Header.Model.Vocab] {
			all = binary.LittleEndian.AppendUint32(all, math.Float32bits(f))
		}
	}
	return all, nil
}

// part is a span that has so many rows, the first of which has a number.
type part struct {
	plans.Span
	first, rows int
}

func spansOf(parts []part) (list []plans.Span) {
	for _, p := range parts {
		list = append(list, p.Span)
	}
	return list
}

// cached lists what positions [from, to) of a slot take in caches, and its rings whole.
func (c *cutter) cached(slot, from, to int) (list []part) {
	add := func(spans []plans.Span, first, rows int) {
		for _, s := range spans {
			list = append(list, part{s, first, rows})
		}
	}
	add(c.plan.Rows(slot, from, to), from, to-from)
	for group := range ir.PageGroups {
		table := c.plan.OwnPages(group)
		for p := from; p < to && table.Page > 0; {
			within := p % table.Page
			n := min(table.Page-within, to-p)
			add(c.plan.PageRows(group, table.At(slot, p), within, within+n), p, n)
			p += n
		}
	}
	for _, s := range c.plan.Rings(slot) {
		add([]plans.Span{s}, 0, 1)
	}
	return list
}

// states lists the recurrent state of a slot at a position.
func (c *cutter) states(slot, pos int) (list []part) {
	for _, s := range c.plan.Memory.Checkpoint(slot, pos) {
		list = append(list, part{s, 0, 1})
	}
	return list
}

// otherParts returns the first element that differs of what parts hold, one behind the other.
func (c *cutter) otherParts(parts []part, got, want []byte) *Difference {
	for _, p := range parts {
		n := int(p.Bytes)
		if !bytes.Equal(got[:n], want[:n]) {
			t := c.plan.Program.Global(p.Region).Type.DType
			if c.plan.IsHost() { // it holds elements as float32, whatever their type
				t = ir.F32
			}
			unit, number := elementOf(t)
			at := 0
			for bytes.Equal(got[at:at+unit], want[at:at+unit]) {
				at += unit
			}
			row := n / p.rows
			return &Difference{Value: "@" + p.Region, Row: p.first + at/row, Column: at % row / unit, Device: number(got[at:]), Oracle: number(want[at:])}
		}
		got, want = got[n:], want[n:]
	}
	return nil
}

// elementOf returns how many bytes an element of a cache or state has on the device, and its number: of a type of
// blocks a byte, of codes or of a scale.
func elementOf(t ir.DType) (bytes int, number func(b []byte) Number) {
	switch t {
	case ir.F32:
		return 4, func(b []byte) Number { return Number(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
	case ir.F16:
		return 2, func(b []byte) Number { return Number(gguf.F16ToF32(binary.LittleEndian.Uint16(b))) }
	}
	return 1, func(b []byte) Number { return Number(b[0]) }
}
