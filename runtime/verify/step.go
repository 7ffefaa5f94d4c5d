package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/step"
)

// trial is a step of an entry that is compared.
type trial struct {
	entry  *plans.Entry
	rows   []step.Row
	masked bool // some choices are bounded
}

// depth is the positions that a row may attend to, at most.
func (s trial) depth() int {
	n := 0
	for _, r := range s.rows {
		n = max(n, int(r.Pos)+1)
	}
	return n
}

// sequences lists the slots of the step's rows, in the order of the rows.
func (s trial) sequences() []int32 {
	var list []int32
	for _, r := range s.rows {
		if r.Slot != ir.NoSlot {
			list = append(list, r.Slot)
		}
	}
	return slices.Compact(list)
}

// end is the positions that slot holds behind the step.
func (s trial) end(slot int32) int {
	n := 0
	for _, r := range s.rows {
		if r.Slot == slot {
			n = int(r.Pos) + 1
		}
	}
	return n
}

// ends are the last rows of the runs of a step with parts.
func (s trial) ends() (list []int32) {
	for r := range s.rows {
		if s.live(r) && (r+1 == len(s.rows) || s.rows[r+1].Slot != s.rows[r].Slot) {
			list = append(list, int32(r))
		}
	}
	return list
}

// heads are the rows that get logits in a step of an entry with parts: the last row of each run, and again the last of
// all; nil without parts.
func (s trial) heads() []int32 {
	if s.entry.Part == 0 {
		return nil
	}
	list := s.ends()
	for len(list) < s.entry.Heads() {
		list = append(list, int32(len(s.rows)-1))
	}
	return list
}

// live reports whether a row is of a sequence.
func (s trial) live(r int) bool { return s.rows[r].Slot != ir.NoSlot }

// begins reports whether a row is the first of a run.
func (s trial) begins(r int) bool { return s.live(r) && (r == 0 || s.rows[r-1].Slot != s.rows[r].Slot) }

// part is n rows of the step from row first on, for another entry.
func (s trial) part(e *plans.Entry, first, n int) trial {
	return trial{entry: e, rows: s.rows[first : first+n]}
}

// result is what all results of the step have in common.
func (s trial) result(site string) Result {
	return Result{Entry: s.entry.Name, Rows: len(s.rows), Sequences: len(s.sequences()), From: int(s.rows[0].Pos), Site: site}
}

// count is the step block's count before a step: not 0, so that an entry that
// forgets it shows.
const count = 3

// trials lists a full and a partial step for each entry.
func (v *verifier) trials() ([]trial, error) {
	var list []trial
	for i := range v.plan.Entries {
		e := &v.plan.Entries[i]
		if v.opts.Entry != "" && v.opts.Entry != e.Name {
			continue
		}
		if !v.wanted(e) {
			continue
		}
		rows := min(e.Rows, v.plan.Header.Ctx)
		if v.opts.Rows > 0 {
			rows = min(rows, v.opts.Rows)
		}
		list = append(list, v.trial(e, rows))
		if part := rows - rows/3 - 1; part > 0 { // ends within a tile
			if e.Run < e.Rows {
				list = append(list, v.trialOf(e, part, (part+e.Run-1)/e.Run))
				continue
			}
			list = append(list, v.trial(e, part))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the plan has no entry %q", v.opts.Entry)
	}
	for i := range list {
		list[i].masked = true
	}
	return list, nil
}

// wanted reports whether a dispatch of e is to be compared.
func (v *verifier) wanted(e *plans.Entry) bool {
	for i := range e.Dispatches {
		if v.opts.Only == nil || v.opts.Only(e.Name, i) {
			return true
		}
	}
	return false
}

// trial gives an entry so many rows: of as many sequences as it and the plan take, those of
// the highest slots first, each behind what fill has put into its cache.
func (v *verifier) trial(e *plans.Entry, rows int) trial {
	n := 1
	if v.plan.Program.Mixes(v.plan.Program.Func(e.Name)) {
		n = min(rows, v.slots())
	}
	return v.trialOf(e, rows, n)
}

// slots is how many sequences have places for all of their context when an executor begins.
func (v *verifier) slots() int {
	n := v.plan.Header.Slots
	for group := range ir.PageGroups {
		if k := v.plan.PagedIn(group); k != nil {
			n = min(n, (k.Pages-1)/(k.Rows/k.Page))
		}
	}
	return n
}

// trialOf is trial for n sequences: of an entry that takes runs shorter than itself, with the longest runs.
func (v *verifier) trialOf(e *plans.Entry, rows, n int) trial {
	slots := v.slots()
	rows = min(rows, n*e.Run)
	if e.Part > 0 {
		return v.trialOfParts(e, rows)
	}
	s := trial{entry: e}
	for i := range n {
		run := rows*(i+1)/n - rows*i/n
		slot := slots - 1 - i
		from := min(v.context(slot), v.plan.Header.Ctx-run)
		for r := range run {
			s.rows = append(s.rows, v.row(slot, from+r))
		}
	}
	return s
}

// context is the positions that a slot holds before the steps: Options.Context in the last
// one, fewer in the others, none in the first of several.
func (v *verifier) context(slot int) int {
	n := v.slots()
	return min(v.opts.Context, v.plan.Header.Ctx) * max(slot, 2-n) / max(n-1, 1)
}

// row is the row at a position of a slot, the same in every step.
func (v *verifier) row(slot, pos int) step.Row {
	if pos < len(v.opts.Tokens) {
		return step.Row{Token: v.opts.Tokens[pos], Pos: int32(pos), Slot: int32(slot)}
	}
	token := rand.New(rand.NewPCG(uint64(pos), uint64(slot)+1)).IntN(v.plan.Header.Model.Vocab)
	return step.Row{Token: int32(token), Pos: int32(pos), Slot: int32(slot)}
}

// fill puts into the KV cache of each slot what the steps find there. A step at a lower position writes what is there.
// Before that it fills all recurrent state with ones: what no position has written is compared, too, and a device may
// have left NaNs in that memory.
func (v *verifier) fill(ctx context.Context, trials []trial) error {
	for _, r := range v.plan.Memory.State {
		ones := bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)), int(r.Bytes/4))
		if err := v.dev.Overwrite(ctx, plans.Arg{Space: "state", Region: r.Name}, ones); err != nil {
			return err
		}
	}
	longest := map[int32]int{}
	for _, s := range trials {
		for i, r := range s.rows {
			if s.begins(i) {
				longest[r.Slot] = max(longest[r.Slot], int(r.Pos))
			}
		}
	}
	e := v.filler()
	for _, slot := range slices.Sorted(maps.Keys(longest)) {
		for from := 0; from < longest[slot]; from += e.Run {
			s := trial{entry: e}
			for pos := from; pos < min(longest[slot], from+e.Run); pos++ {
				s.rows = append(s.rows, v.row(int(slot), pos))
			}
			if err := v.write(s); err != nil {
				return err
			}
			if err := runtime.Run(ctx, v.dev, e, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// filler is the narrowest entry for prompts, so that no submission is long; in a plan that
// has none, the widest of the others.
func (v *verifier) filler() *plans.Entry {
	list := make([]*plans.Entry, len(v.plan.Entries))
	for i := range list {
		list[i] = &v.plan.Entries[i]
	}
	return slices.MinFunc(list, func(a, b *plans.Entry) int {
		prefill := func(e *plans.Entry) int {
			if e.Kind == "prefill" {
				return 0
			}
			return 1
		}
		if prefill(a) != prefill(b) {
			return prefill(a) - prefill(b)
		}
		return (a.Rows - b.Rows) * (1 - 2*prefill(a))
	})
}

// write writes the step block.
func (v *verifier) write(s trial) error {
	b := step.Block{Rows: s.rows, Count: count, Heads: s.heads()}
	b.Masked, b.Mask = v.masks(s)
	return b.Store(v.dev)
}

// kept is the recurrent state that a step finds.
type kept struct {
	spans []plans.Span
	bytes []byte
}

// keepStates returns the recurrent state that the sequences of a step have before it: plans for many sequences have
// gigabytes of others.
func (v *verifier) keepStates(ctx context.Context, s trial) (*kept, error) {
	k := &kept{}
	for i, r := range s.rows {
		if s.begins(i) {
			k.spans = append(k.spans, v.plan.Memory.Checkpoint(int(r.Slot), int(r.Pos))...)
		}
	}
	k.bytes = make([]byte, plans.SpanBytes(k.spans))
	return k, v.dev.ReadSpans(ctx, k.spans, k.bytes)
}

// replay runs the entry as recorded, from the recurrent state before the step,
// and compares what the host would see with what the dispatches gave.
func (v *verifier) replay(ctx context.Context, s trial, state *kept) error {
	var want, got []byte
	read := func(into *[]byte) error {
		for _, name := range []string{s.entry.Logits, s.entry.Next} {
			b, err := v.results(ctx, s, name)
			if err != nil {
				return err
			}
			*into = append(*into, b...)
		}
		return nil
	}
	if err := read(&want); err != nil {
		return err
	}
	if err := v.dev.WriteSpans(ctx, state.spans, state.bytes); err != nil {
		return err
	}
	if err := v.write(s); err != nil {
		return err
	}
	if err := runtime.Run(ctx, v.dev, s.entry, 1); err != nil {
		return err
	}
	if err := read(&got); err != nil {
		return err
	}
	r := s.result(Replay)
	if !bytes.Equal(got, want) {
		r.Difference = &Difference{
			Problem: "the recorded entry gives other bytes than its dispatches one at a time: a barrier is missing or a kernel is not deterministic",
			Value:   s.entry.Logits,
		}
	}
	v.add(r)
	return nil
}

// results returns an io region of the entry, those of its rows that the step has.
func (v *verifier) results(ctx context.Context, s trial, name string) ([]byte, error) {
	for _, r := range v.plan.Memory.IO {
		if r.Name == name {
			size := r.Bytes
			if s.entry.Kind != "prefill" {
				size = size / int64(s.entry.Rows) * int64(len(s.rows))
			}
			b := make([]byte, size)
			return b, v.dev.Read(ctx, plans.Arg{Space: "io", Region: name}, b)
		}
	}
	return nil, nil
}

// masks bounds the choice of every second row of a step that is to have masks, and of the row of a step of one: each
// mask has half of the vocabulary.
func (v *verifier) masks(s trial) (masked, mask []int32) {
	g := v.plan.Program.Global(ir.StepMask)
	if g == nil {
		return nil, nil
	}
	masked = make([]int32, len(s.rows))
	if !s.masked {
		return masked, nil
	}
	mask = make([]int32, g.Type.Shape[0]*g.Type.Shape[1])
	random := rand.New(rand.NewPCG(3, uint64(len(s.rows))))
	for i := range mask {
		mask[i] = int32(random.Uint32())
	}
	for r := range masked {
		if len(masked) == 1 || r%2 == 1 {
			masked[r] = 1 + int32(r%int(g.Type.Shape[0]))
		}
	}
	return masked, mask
}
