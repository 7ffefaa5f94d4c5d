package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cache"
)

// A tail is what a prompt goes on with at a cut, beside the rows of its pieces: rows of layers that see a window, and
// the recurrent state. It is kept where slots have it when nothing runs: states where the tree has them, windows where
// a prompt's turn or its last piece ends, and where it parted from others. Behind a restart a prompt goes on at the
// last cut whose tail is kept, and all pieces up to there. Nothing of it counts before the tail is in the slot.

// restoring is the way of a prompt to a kept tail.
type restoring struct {
	to      int    // where that is; 0: nothing is restored
	tail    []byte // nil: not read yet
	rows    int    // those before are not restored: slots had them
	windows int    // slot.windows before
	below   int    // tails that are not below it have not come; 0: all may
}

// mostTail bounds the bytes of a tail.
const mostTail = 1<<30 - 4096

// Keeps says why Options.Keeper keeps nothing of a plan's prompts; nil: it does.
func Keeps(plan *plans.Plan) error {
	bytes, pos := int64(0), plan.Header.Ctx-1
	for _, s := range plan.Memory.Checkpoint(0, pos) {
		bytes += s.Bytes
	}
	for _, r := range plan.Memory.KV {
		if k := r.Kept; ofWindow(k) {
			bytes += int64(pos-ir.FirstKept(pos, k.Window)) * k.RowBytes
		}
	}
	if bytes > mostTail {
		return fmt.Errorf("prompts are not kept: a turn's state and window take %.1f GiB, more than 1", float64(bytes)/(1<<30))
	}
	return nil
}

// ofWindow says whether a cache loses rows that no row sees any more.
func ofWindow(k *plans.Kept) bool {
	return k.Kind == ir.KeepRing.String() || k.Page > 0 && k.Group == ir.WindowGroup
}

// caches says whether some of a plan see a window, and whether none has a row for each position.
func caches(plan *plans.Plan) (windows, bare bool) {
	bare = true
	for _, r := range plan.Memory.KV {
		if ofWindow(r.Kept) {
			windows = true
		} else {
			bare = false
		}
	}
	return windows, bare
}

// tailOf is the name of the tail behind a piece.
func tailOf(piece string) string { return piece + ".tail" }

// windowRows lists what caches of a window have for a row at pos, in pages of which only those from position own on are
// listed. skipped is how many bytes the others have.
func (e *Engine) windowRows(slot, pos, own int) (spans []plans.Span, skipped int64) {
	if e.pages == nil {
		return e.plan.SeenInRings(slot, pos), 0
	}
	k := e.plan.PagedIn(ir.WindowGroup)
	if k == nil {
		return nil, 0
	}
	first := ir.FirstKept(pos, k.Window)
	from := max(first, own/k.Page*k.Page)
	return e.rowsIn(ir.WindowGroup, slot, from, pos), plans.SpanBytes(e.rowsIn(ir.WindowGroup, slot, first, from))
}

// tailBytes is how many a tail has.
func (e *Engine) tailBytes(pos int) int64 {
	rows, _ := e.windowRows(0, pos, 0)
	return plans.SpanBytes(rows) + plans.SpanBytes(e.plan.Memory.Checkpoint(0, pos))
}

// tailsIn lists the cuts of a slot's prompt whose tails it has now, the last one first.
func (e *Engine) tailsIn(l *slot) (places []int) {
	if !e.recurrent {
		for _, pos := range append(l.places[:], e.tree.At(l.index)) {
			if pos > 0 && pos <= e.tree.At(l.index) && e.sound(l.index, pos) {
				places = append(places, pos)
			}
		}
		slices.Sort(places)
		places = slices.Compact(places)
		slices.Reverse(places)
		return places
	}
	for pos := range e.tree.States(l.index) {
		if e.sound(l.index, pos) {
			places = append(places, pos)
		}
	}
	return places
}

// readTailBack copies the tail of a slot at pos from the device to the buffer, as readBack does.
func (e *Engine) readTailBack(l *slot, pos int) bool {
	k := e.kept
	k.buffer = k.buffer[:0]
	rows, _ := e.windowRows(l.index, pos, 0)
	if !e.readSpans(rows) {
		return false
	}
	var state runtime.State
	for at, s := range e.tree.States(l.index) {
		if at == pos {
			state = s
		}
	}
	if state == nil {
		return true
	}
	for from, all := int64(0), state.Bytes(); from < all; {
		n := min(all-from, keepAtOnce)
		at := len(k.buffer)
		k.buffer = slices.Grow(k.buffer, int(n))[:at+int(n)]
		if e.requestWaits() || k.rows.ReadState(context.Background(), state, from, k.buffer[at:]) != nil {
			return false
		}
		from += n
	}
	return true
}

// keptTail is the last cut behind a hit at which a prompt can go on with a tail that is kept, as the pieces are that no
// slot has; 0: there is none.
func (e *Engine) keptTail(s *seq, h cache.Hit) int {
	k, cuts := e.kept, e.prompts.cuts
	if k == nil || !k.tails || s.req.NoCache || k.isLate() {
		return 0
	}
	most := len(s.req.Prompt) - 1
	if s.below > 0 {
		most = min(most, s.below-1)
	}
	if e.keepsAnswers() {
		most = min(most, s.req.Turn)
	}
	known := h.Pos
	if !k.windows {
		known = h.Known
	}
	i, _ := slices.BinarySearch(cuts, h.Pos)
	for i < len(s.names) && cuts[i+1] <= most && (cuts[i+1] <= known || k.hasPiece(s.names[i])) {
		i++
	}
	for ; cuts[i] > h.Pos; i-- {
		if k.Has(tailOf(s.names[i-1])) {
			return cuts[i]
		}
	}
	return 0
}

// headFor has a prompt's slot take what is kept up to a tail, or nothing.
func (e *Engine) headFor(s *seq, to int) {
	s.restoring = restoring{to: to, rows: len(s.slot.tokens), windows: s.slot.windows, below: s.below}
	if to > 0 && e.kept.windows {
		s.slot.windows = to // what windows have of the positions before is not what is there
	}
}

// without goes back to where a prompt's slot was, and looks for what is kept below a position.
func (e *Engine) without(s *seq, below int) error {
	l := s.slot
	l.windows, s.below = s.windows, below
	e.tree.Trim(l.index, s.from)
	l.tokens = l.tokens[:s.from]
	return e.find(s)
}

// toTail takes the next piece of a prompt, which is piece i, on the way to its tail, and behind the last one that.
func (e *Engine) toTail(s *seq, i int) error {
	if tail := e.readOn(s, i); tail != "" {
		if s.tail = e.kept.wait(tail); s.tail == nil {
			return e.without(s, s.to)
		}
	}
	if pos := len(s.slot.tokens); pos < s.to {
		ok, err := e.takePiece(s, i)
		switch {
		case err != nil:
			return err
		case !ok:
			return e.without(s, pos+1)
		}
		e.lay(s, e.prompts.cuts[i+1]-pos)
	}
	if len(s.slot.tokens) < s.to {
		return nil
	}
	return e.arrive(s)
}

// lay notes that the rows of the next n tokens of a prompt are in the slot.
func (e *Engine) lay(s *seq, n int) {
	l := s.slot
	l.tokens = append(l.tokens, s.req.Prompt[len(l.tokens):len(l.tokens)+n]...)
	e.tree.Extend(l.index, s.req.Prompt, e.now())
}

// arrive has a prompt go on with its tail, whose rows the slot has.
func (e *Engine) arrive(s *seq) error {
	l, pos := s.slot, s.to
	rows, skipped := e.windowRows(l.index, pos, s.from)
	spans := append(rows, e.plan.Memory.Checkpoint(l.index, pos)...)
	if err := e.kept.rows.WriteSpans(context.Background(), spans, s.tail[skipped:]); err != nil {
		return err
	}
	l.at, l.end = pos, pos
	if e.recurrent && !e.tree.HasState(l.index) {
		if state := e.save(l, pos); state != nil {
			e.tree.Keep(l.index, state, e.now())
		}
	}
	if !e.recurrent {
		e.tree.Left(l.index)
	}
	if e.o.ReuseAnswers {
		e.turned(s, pos)
	}
	e.cached(s, pos)
	e.wentOn(s, pos-s.rows)
	s.restoring = restoring{}
	return nil
}
