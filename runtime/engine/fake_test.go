package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/step"
	"github.com/zincc-dev/zincc/runtime/text"
)

// fakeVocab has letters, halves of code points, a control token and one that ends.
var fakeVocab = plans.Vocab{Model: "gpt2", Pre: "qwen2",
	Tokens: []string{"a", "b", "c", "d", "e", "f", "Ġ", "Ã", "©", "ab", "ca", "bad", "<think>", "</think>", "<ctl>", "<eos>"},
	Types:  []int32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 3, 3}, EOS: new(int32(15))}

// fakeRepeats is the name of a model whose next token follows, seven times of eight, from the last two. So its texts
// repeat themselves.
const fakeRepeats = "repeats"

const (
	fakeThink   = 12
	fakeUnthink = 13
	fakeEOS     = 15
)

// mix is a hash of a hash and more: the finalizer of SplitMix64.
func mix(h, more uint64) uint64 {
	h = (h ^ more) * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

func (r row) mix(h uint64) uint64 { return mix(mix(h, uint64(r.token)), r.class) }

// row is what a position of a slot holds: the token and how it was computed. Rows of decode
// entries are alike; those of a prompt depend on the step that wrote them, and all on what they saw of a window.
type row struct {
	token int32
	class uint64 // 0: of a decode entry
}

// fake is an executor whose logits are a hash of all that a slot holds, so that no row can be
// wrong, missing or computed otherwise without another answer. It takes the predicted time, times slow.
type fake struct {
	plan   *plans.Plan
	slow   float64
	jitter float64       // how much longer a step takes, at most, as a share
	read   time.Duration // that a read of logits takes
	rand   rand.PCG
	alike  bool  // rows are alike, whichever step writes them
	fail   error // of runs from broken on
	broken time.Time
	nan    bool // the logits are not numbers
	stale  bool // something was submitted since the last wait, which may write over what there is to be read
	slots  [][]row
	states []uint64 // recurrent: hash of the rows, and nothing else is looked at
	depth  []int    // of states
	rings  [][]row  // by position modulo their length: what the fakeWindow last rows must be found in
	// In pages: rows of all of them, one page behind the other, by group; slots and rings then have no rows.
	pools [ir.PageGroups][]row
	step.Block
	floats   map[string][]float32
	ints     map[string][]int32
	saved    int         // states that were not freed
	full     bool        // there is no memory for states
	copied   int         // rows
	busy     time.Time   // until then
	free     []time.Time // when each submission ends
	open     int         // submissions
	overlaps bool
	both     int // submissions made while another was open
	log      []launch
}

type launch struct {
	entry *plans.Entry
	rows  int
	times int
	part  runtime.Part
	slots []int32
	end   time.Time
}

// A plan of rings has so many positions in them, for the widest entry of 256 rows.
const fakeWindow, fakeRing = 10, 272

// addRings gives a plan a layer that sees a window.
func addRings(p *plans.Plan) {
	addCache(p, "ring", fakeRing, plans.Kept{Kind: "ring", Window: fakeWindow, Back: fakeRing - fakeWindow + 1})
}

// fakePage is the positions of a page of fake plans.
const fakePage = 128

// fakeUnwritten is in rows that nobody has written.
const fakeUnwritten = -1

// toPages has the rows of a plan lie in so many pages of fakePage positions.
func toPages(p *plans.Plan, pages int) { toPagesOf(p, fakePage, pages) }

// toPagesOf has the caches of a plan lie in so many pages. What was a ring is a cache of a window then.
func toPagesOf(p *plans.Plan, page, pages int) {
	for i := range p.Memory.KV {
		r := &p.Memory.KV[i]
		k := *r.Kept
		if k.Pages = pages; k.Kind == "ring" {
			k.Group, k.Pages = ir.WindowGroup, ir.WindowPages(pages, k.Sequences, p.Header.Ctx, fakeWindow, page)
		}
		k.Kind, k.Page, k.Rows = "pages", page, ir.PagesOf(p.Header.Ctx, page)*page
		k.Back = k.Rows
		r.Kept, r.Bytes = &k, int64(k.Pages)*int64(page)*fakeRow
		g := p.Program.Global(r.Name)
		g.Layout, g.Type = ir.PagesLayout, ir.MakeType(ir.F32, ir.Dim(k.Pages), ir.Dim(page), fakeRow/4)
	}
}

// fakeGrain is the grain of wide entries for prompts.
const fakeGrain = 32

// fakePart is the rows of a part.
const fakePart = 64

// toParts has a plan's steps of prompts of fakePart rows and more take those of several.
func toParts(p *plans.Plan) *plans.Plan {
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Kind == "prefill" && e.Rows >= fakePart {
			e.Part, e.Class = fakePart, ir.AlikeStep.String()
		}
	}
	return p
}

// toWide has a plan's steps of decoding have up to 32 rows, 8 of a sequence. They read what is left of a prompt if that
// is no more than 16 tokens: longer ones take too long alone.
func toWide(p *plans.Plan) *plans.Plan {
	for rows, ms := range map[int]float32{16: 5, 32: 4.8} {
		e := p.Entries[3] // decode/8
		e.Name = fmt.Sprintf("decode/%d", rows)
		e.Rows, e.Logits, e.Next, e.Candidates = rows, e.Name+":logits", e.Name+":next", e.Name+":candidates"
		e.Dispatches = []plans.Dispatch{{Cost: plans.Cost{ReadBytes: 1 << 20, BytesPerPos: 256, Predicted: plans.Times{Bytes: ms * 1e-3}}}}
		p.Entries = append(p.Entries, e)
	}
	return p
}

// fakeJoins is how many tokens of a prompt rounds of decoding read there.
const fakeJoins = 16

// fakeRow is the bytes of a row of a cache, and of a state.
const fakeRow = 16

// addCache gives a plan a cache of so many rows.
func addCache(p *plans.Plan, name string, rows int, k plans.Kept) {
	k.Sequences, k.Rows, k.RowBytes = p.Header.Slots, rows, fakeRow
	p.Memory.KV = append(p.Memory.KV, plans.Region{Name: name, Kept: &k, Bytes: int64(p.Header.Slots) * int64(rows) * fakeRow})
	p.Program.Globals = append(p.Program.Globals, &ir.Value{Name: name, Class: ir.KV, Type: ir.MakeType(ir.F32, ir.Dim(p.Header.Slots), ir.Dim(rows), fakeRow/4)})
}

// fakePlan has slots of ctx positions. A row of decode takes 2 ms and more, one of a prompt less.
func fakePlan(slots, ctx int, recurrent bool) *plans.Plan {
	p := &plans.Plan{Header: plans.Header{Ctx: ctx, Slots: slots, Ring: 256, Model: plans.Model{Vocab: len(fakeVocab.Tokens)}}, Vocab: fakeVocab, Program: &ir.Program{}}
	addCache(p, "rows", ctx, plans.Kept{Kind: "positions", Back: ctx})
	p.Program.Globals = append(p.Program.Globals, &ir.Value{Name: ir.StepMask, Class: ir.Step, Type: ir.MakeType(ir.I32, ir.Dim(slots), 1)})
	if recurrent {
		p.Memory.State = []plans.Region{{Name: "state", Kept: &plans.Kept{Kind: "state", Sequences: slots, Rows: 1, RowBytes: fakeRow}}}
	}
	add := func(kind string, rows, reach int, ms float32) {
		name := fmt.Sprintf("%s/%d", kind, rows)
		p.Entries = append(p.Entries, plans.Entry{Name: name, Kind: kind, Rows: rows, Run: rows, Reach: reach, Logits: name + ":logits", Next: name + ":next",
			Dispatches: []plans.Dispatch{{Cost: plans.Cost{ReadBytes: 1 << 20, BytesPerPos: 256, Predicted: plans.Times{Bytes: ms * 1e-3}}}}})
	}
	add("decode", 1, 1, 2) // without candidates, of which a vocabulary this small leaves half
	add("decode", 2, 2, 2.1)
	add("decode", 4, 4, 2.3)
	add("decode", 8, 8, 3)
	add("prefill", 16, 20, 6)
	add("prefill", 64, 64, 15)
	add("prefill", 256, 256, 60)
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Kind == "prefill" && e.Rows > 16 {
			e.Grain = fakeGrain
		}
	}
	for i := range p.Entries[1:] {
		e := &p.Entries[1+i]
		e.Candidates = e.Name + ":candidates"
	}
	return p
}

func newFake(p *plans.Plan) *fake {
	x := &fake{plan: p, slow: 1, slots: make([][]row, p.Header.Slots),
		floats: map[string][]float32{}, ints: map[string][]int32{ir.StepOut: make([]int32, p.Header.Ring)}}
	for group := range x.pools {
		if k := p.PagedIn(group); k != nil {
			x.pools[group] = slices.Repeat([]row{{token: fakeUnwritten}}, k.Pages*k.Page)
			x.Pages[group] = p.OwnPages(group).Entries
		}
	}
	if len(p.Rings(0)) > 0 {
		x.rings = make([][]row, p.Header.Slots)
		for i := range x.rings {
			x.rings[i] = make([]row, fakeRing)
		}
	}
	if p.Memory.Recurrent() {
		x.states, x.depth = make([]uint64, p.Header.Slots), make([]int, p.Header.Slots)
	}
	for _, e := range p.Entries {
		n := e.Heads()
		x.floats[e.Logits], x.ints[e.Next] = make([]float32, n*len(p.Vocab.Tokens)), make([]int32, n)
		if e.Candidates != "" {
			x.ints[e.Candidates] = make([]int32, n*ir.CandidateRow)
		}
	}
	return x
}

func (x *fake) Device() string { return "fake" }

// Submit computes at once what is ready for the host when Wait returns.
func (x *fake) Submit(_ context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	x.free = append(x.free, time.Time{})
	x.both += x.open
	if x.open++; x.open > 3 {
		return 0, errors.New("more than three submissions are open")
	}
	for _, l := range launches {
		if err := x.run(l); err != nil {
			return 0, err
		}
	}
	x.free[len(x.free)-1], x.stale = x.busy, true
	return runtime.Ticket(len(x.free)), nil
}

func (x *fake) Wait(_ context.Context, t runtime.Ticket) error {
	time.Sleep(time.Until(x.free[t-1]))
	x.open--
	x.stale = false
	if x.fail != nil && time.Now().After(x.broken) {
		return x.fail
	}
	return nil
}

func (x *fake) Overlaps() bool { return x.overlaps }

func (x *fake) run(l runtime.Launch) error {
	e, times := l.Entry, l.Times
	n, deepest := len(x.Rows), 0
	var slots []int32
	for _, r := range x.Rows {
		deepest, slots = max(deepest, int(r.Pos)), append(slots, r.Slot)
	}
	if l.Part == runtime.Choice {
		return x.choose(e)
	}
	took := x.seconds(e, deepest, n) * float64(times) * x.slow
	took *= 1 + x.jitter*float64(x.rand.Uint64()>>11)/(1<<53)
	if now := time.Now(); x.busy.Before(now) {
		x.busy = now
	}
	x.busy = x.busy.Add(time.Duration(took * float64(time.Second)))
	x.log = append(x.log, launch{e, n, times, l.Part, slots, x.busy})
	if n > e.Rows || n == 0 {
		return fmt.Errorf("%d rows in %s", n, e.Name)
	}
	if x.Count == 0 {
		clear(x.ints[ir.StepOut])
	}
	for range times {
		if err := x.logitsOf(e); err != nil {
			return err
		}
		if l.Part == runtime.Whole {
			if err := x.choose(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// seconds is how long a step takes: of entries that are alike as much more than the next narrower one as it has more
// rows.
func (x *fake) seconds(e *plans.Entry, depth, rows int) float64 {
	took := e.Predict(depth).Seconds()
	var below *plans.Entry
	for i := range x.plan.Entries {
		if o := &x.plan.Entries[i]; o.Alike() && o.Rows < e.Rows && (below == nil || o.Rows > below.Rows) {
			below = o
		}
	}
	if !e.Alike() || below == nil {
		return took
	}
	less := below.Predict(depth).Seconds()
	return less + (took-less)*float64(max(0, rows-below.Rows))/float64(e.Rows-below.Rows)
}

// logitsOf computes the logits of a step.
func (x *fake) logitsOf(e *plans.Entry) error {
	heads := make([]int32, len(x.Rows)) // rows that have logits
	switch {
	case e.Part > 0:
		heads = x.Heads
	case e.Kind == "prefill":
		heads = []int32{int32(len(x.Rows) - 1)}
	default:
		for r := range heads {
			heads[r] = int32(r)
		}
	}
	if len(heads) > e.Heads() {
		return fmt.Errorf("%s: logits of %d rows", e.Name, len(heads))
	}
	begin := 0 // of the run
	for r, at := range x.Rows {
		class := uint64(0)
		if e.Kind == "decode" {
			if r > 0 && at.Slot != x.Rows[begin].Slot {
				begin = r
			}
			if r-begin >= e.Run || slices.ContainsFunc(x.Rows[:begin], func(o step.Row) bool { return o.Slot == at.Slot }) {
				return fmt.Errorf("%s: row %d is one too many of slot %d", e.Name, r, at.Slot)
			}
		}
		if e.Kind == "prefill" {
			if e.Part > 0 && r%e.Part == 0 && r > 0 && at.Slot != x.Rows[r-1].Slot {
				if begin = r; slices.ContainsFunc(x.Rows[:r], func(o step.Row) bool { return o.Slot == at.Slot && at.Slot != ir.NoSlot }) {
					return fmt.Errorf("%s: slot %d has two runs", e.Name, at.Slot)
				}
			}
			first := x.Rows[begin]
			if e.Part > 0 && at.Slot == ir.NoSlot && r < len(x.Rows)-1 && r%e.Part > 0 {
				continue // a dead row
			}
			if at.Slot != first.Slot || at.Slot == ir.NoSlot || at.Pos != first.Pos+int32(r-begin) || begin > 0 && int(first.Pos)%e.Grain > 0 {
				return fmt.Errorf("%s: row %d is of slot %d at %d", e.Name, r, at.Slot, at.Pos)
			}
			if !x.alike {
				end := r + 1
				for end < len(x.Rows) && x.Rows[end].Slot == at.Slot {
					end++
				}
				class = classOf(e, int(first.Pos), r-begin, end-begin)
			}
		}
		saw, err := x.window(int(at.Slot), int(at.Pos), int(at.Pos))
		if err != nil {
			return fmt.Errorf("%s, row %d: %w", e.Name, r, err)
		}
		for _, s := range saw {
			class = s.mix(class)
		}
		if err := x.put(int(at.Slot), int(at.Pos), row{at.Token, class}); err != nil {
			return fmt.Errorf("%s, row %d: %w", e.Name, r, err)
		}
		for out, head := range heads {
			if int(head) == r {
				if err := x.head(e, out, int(at.Slot), int(at.Pos)); err != nil {
					return fmt.Errorf("%s, row %d: %w", e.Name, r, err)
				}
			}
		}
	}
	return nil
}

// head computes the logits of a row.
func (x *fake) head(e *plans.Entry, out, slot, pos int) error {
	v := len(x.plan.Vocab.Tokens)
	logits := x.floats[e.Logits][out*v:][:v]
	err := x.logits(slot, pos, logits)
	if e.Candidates != "" {
		ir.Candidates(logits, x.ints[e.Candidates][out*ir.CandidateRow:][:ir.CandidateRow])
	}
	return err
}

// classOf is how row r of a prompt's run in a step is computed, which begins at pos: as its whole grain, or with what
// else there is of that, and where the run begins. Entries that are alike make no difference.
func classOf(e *plans.Entry, pos, r, rows int) uint64 {
	class := uint64(e.Rows) << 32
	if e.Alike() {
		class = 1 << 31
	}
	switch {
	case e.Grain == 0 || pos%e.Grain > 0:
		return class + uint64(pos)
	case r/e.Grain == rows/e.Grain:
		return class + uint64(rows%e.Grain)<<48
	}
	return class
}

// choose chooses tokens, and advances the step block behind a step of decoding.
func (x *fake) choose(e *plans.Entry) error {
	v, n := len(x.plan.Vocab.Tokens), len(x.Rows)
	for out, next := range x.ints[e.Next] {
		next = 0
		logits := x.floats[e.Logits][out*v:][:v]
		best := math.Inf(-1)
		for i, l := range logits {
			if float64(l) > best && x.may(e, out, i) {
				best, next = float64(l), int32(i)
			}
		}
		x.ints[e.Next][out] = next
	}
	if e.Kind != "decode" {
		return nil
	}
	for r := range x.Rows {
		next := x.ints[e.Next][r]
		x.ints[ir.StepOut][(int(x.Count)+r)%len(x.ints[ir.StepOut])] = next
		x.Rows[r].Token, x.Rows[r].Pos = next, x.Rows[r].Pos+1
	}
	x.Count += int32(n)
	return nil
}

// may says whether a mask lets a row have a token.
func (x *fake) may(e *plans.Entry, row, token int) bool {
	if e.Kind != "decode" || row >= len(x.Masked) || x.Masked[row] == 0 {
		return true
	}
	return x.Mask[int(x.Masked[row]-1)*ir.MaskWords(len(x.plan.Vocab.Tokens))+token/32]>>(token%32)&1 != 0
}

func (x *fake) put(slot, pos int, r row) error {
	if pos >= x.plan.Header.Ctx || !x.paged() && pos > len(x.slots[slot]) {
		return fmt.Errorf("position %d of slot %d, which holds %d", pos, slot, len(x.slots[slot]))
	}
	if x.paged() {
		for group := range x.pools {
			if err := x.putIn(group, slot, pos, r); err != nil {
				return err
			}
		}
	} else {
		x.slots[slot] = append(x.slots[slot][:pos], r)
	}
	if x.rings != nil {
		x.rings[slot][pos%fakeRing] = r
	}
	if x.states != nil {
		if pos == 0 {
			x.states[slot], x.depth[slot] = 0, 0
		}
		if x.depth[slot] != pos {
			return fmt.Errorf("position %d of slot %d, whose state is at %d", pos, slot, x.depth[slot])
		}
		x.states[slot], x.depth[slot] = r.mix(x.states[slot]), pos+1
	}
	return nil
}

// paged says that caches lie in pages.
func (x *fake) paged() bool { return x.pools[ir.WholeGroup] != nil }

// table is the block table of a group.
func (x *fake) table(group int) ir.PageTable {
	k := x.plan.PagedIn(group)
	return ir.PageTable{Entries: x.Pages[group], Each: k.Rows / k.Page, Page: k.Page}
}

// putIn writes a row into a page that no other slot has.
func (x *fake) putIn(group, slot, pos int, r row) error {
	if x.pools[group] == nil {
		return nil
	}
	at, err := x.inPool(group, slot, pos)
	if err != nil {
		return err
	}
	table := x.table(group)
	for i, page := range table.Entries {
		if int(page) == table.At(slot, pos) && i != slot*table.Each+pos/table.Page {
			return fmt.Errorf("position %d of slot %d is written in page %d, which slot %d has, too", pos, slot, page, i/table.Each)
		}
	}
	*at = r
	return nil
}

// rowsTo returns the rows of a slot up to a position.
func (x *fake) rowsTo(slot, pos int) ([]row, error) {
	if !x.paged() {
		return x.slots[slot][:pos+1], nil
	}
	var err error
	x.slots[slot], err = x.rowsIn(ir.WholeGroup, slot, 0, pos, x.slots[slot][:0])
	return x.slots[slot], err
}

// rowsIn appends the rows of a slot in pages from a position to another, each of which it has written.
func (x *fake) rowsIn(group, slot, first, last int, to []row) ([]row, error) {
	for p := first; p <= last; p++ {
		at, err := x.inPool(group, slot, p)
		if err != nil || at.token == fakeUnwritten {
			return nil, fmt.Errorf("position %d of slot %d, which nobody has written: %v", p, slot, err)
		}
		to = append(to, *at)
	}
	return to, nil
}

// inPool returns the row of a position.
func (x *fake) inPool(group, slot, pos int) (*row, error) {
	t := x.table(group)
	page := t.At(slot, pos)
	if page <= 0 || (page+1)*t.Page > len(x.pools[group]) {
		return nil, fmt.Errorf("slot %d has page %d for position %d", slot, page, pos)
	}
	return &x.pools[group][page*t.Page+pos%t.Page], nil
}

// logits sets the logits behind a position.
func (x *fake) logits(slot, pos int, to []float32) error {
	rows, err := x.rowsTo(slot, pos)
	if err != nil {
		return err
	}
	h := uint64(0)
	if x.states != nil {
		h = x.states[slot]
	} else {
		for _, r := range rows {
			h = r.mix(h)
		}
	}
	seen, err := x.window(slot, pos, pos+1)
	if err != nil {
		return err
	}
	for _, r := range seen {
		h = r.mix(h)
	}
	for i := range to {
		to[i] = float32(mix(h, uint64(i))>>40) / (1 << 22)
		if i == fakeEOS {
			to[i] -= 1.5 // answers are to be of some length
		}
	}
	if n := len(rows); n > 1 && x.plan.Header.Model.Name == fakeRepeats && h%8 > 0 {
		to[mix(uint64(rows[n-2].token), uint64(rows[n-1].token))%fakeThink] += 8
	}
	if x.nan {
		for i := range to {
			to[i] = float32(math.NaN())
		}
	}
	return nil
}

// window returns the rows before end that a row at pos sees, if the model has a window.
func (x *fake) window(slot, pos, end int) (rows []row, err error) {
	first := max(0, pos+1-fakeWindow)
	if x.pools[ir.WindowGroup] != nil {
		return x.rowsIn(ir.WindowGroup, slot, first, end-1, nil)
	}
	for p := first; p < end && x.rings != nil; p++ {
		rows = append(rows, x.rings[slot][p%fakeRing])
	}
	return rows, nil
}

func (x *fake) Ints(region string) ([]int32, error) {
	if x.stale {
		return nil, fmt.Errorf("%s is read behind a submission that nobody has waited for", region)
	}
	if v, ok := x.ints[region]; ok {
		return v, nil
	}
	return nil, fmt.Errorf("no region %q", region)
}

func (x *fake) Floats(region string, rows ...int) ([]float32, error) {
	time.Sleep(x.read)
	if x.stale {
		return nil, fmt.Errorf("%s is read behind a submission that nobody has waited for", region)
	}
	v, ok := x.floats[region]
	if !ok {
		return nil, fmt.Errorf("no region %q", region)
	}
	if rows == nil {
		return v, nil
	}
	each := len(x.plan.Vocab.Tokens) // those that were not asked for hold no numbers
	some := slices.Repeat([]float32{float32(math.NaN())}, len(v))
	for _, r := range rows {
		copy(some[r*each:][:each], v[r*each:])
	}
	return some, nil
}

// fakeState is a copy of a recurrent state.
type fakeState struct {
	x     *fake
	hash  uint64
	depth int
	freed bool
}

func (s *fakeState) Bytes() int64 { return fakeRow }

func (s *fakeState) Free() {
	if !s.freed {
		s.freed = true
		s.x.saved--
	}
}

// stateOf is the slot whose state the spans are.
func stateOf(spans []plans.Span) (slot int, err error) {
	if len(spans) != 1 || spans[0].Region != "state" {
		return 0, errors.New("want the one state")
	}
	return int(spans[0].Offset / spans[0].Bytes), nil
}

func (x *fake) SaveState(_ context.Context, spans []plans.Span) (runtime.State, error) {
	slot, err := stateOf(spans)
	if err != nil {
		return nil, err
	}
	if x.full {
		return nil, errors.New("out of memory")
	}
	x.saved++
	return &fakeState{x: x, hash: x.states[slot], depth: x.depth[slot]}, nil
}

func (x *fake) RestoreState(_ context.Context, s runtime.State, to []plans.Span) error {
	slot, err := stateOf(to)
	if err != nil {
		return err
	}
	f := s.(*fakeState)
	if f.freed {
		return errors.New("the state is freed")
	}
	x.states[slot], x.depth[slot] = f.hash, f.depth
	return nil
}

// Copy copies rows of slots: a copy that begins behind what the slot holds, or takes what the other does not hold, is
// an error.
func (x *fake) Copy(_ context.Context, to, from []plans.Span) error {
	for i, t := range to {
		f := from[i]
		if t.Region != f.Region || t.Bytes != f.Bytes {
			return fmt.Errorf("%+v to %+v", f, t)
		}
		rows := x.plan.Header.Ctx
		group := ir.WholeGroup
		if t.Region == "ring" {
			rows, group = fakeRing, ir.WindowGroup
		}
		a, b, n := int(f.Offset/fakeRow), int(t.Offset/fakeRow), int(t.Bytes/fakeRow)
		if x.paged() {
			copy(x.pools[group][b:b+n], x.pools[group][a:a+n])
			x.copied += n
			continue
		}
		if t.Region == "ring" {
			copy(x.rings[b/rows][b%rows:][:n], x.rings[a/rows][a%rows:])
			continue
		}
		if own, other := x.slots[b/rows], x.slots[a/rows]; b%rows > len(own) || a%rows+n > len(other) {
			return fmt.Errorf("rows %d to %d of slot %d, which has %d, to slot %d, which has %d", a%rows, a%rows+n, a/rows, len(other), b/rows, len(own))
		}
		x.slots[b/rows] = slices.Concat(x.slots[b/rows][:b%rows], x.slots[a/rows][a%rows:][:n])
		x.copied += n
	}
	return nil
}

// rowsOf calls f with each row of spans, its region and number there, and its 16 bytes.
func (x *fake) rowsOf(spans []plans.Span, b []byte, f func(region string, at int, b []byte) error) error {
	if int64(len(b)) != plans.SpanBytes(spans) {
		return fmt.Errorf("%d bytes for %d", len(b), plans.SpanBytes(spans))
	}
	for _, s := range spans {
		for at := s.Offset / fakeRow; at < (s.Offset+s.Bytes)/fakeRow; at++ {
			if err := f(s.Region, int(at), b[:fakeRow]); err != nil {
				return err
			}
			b = b[fakeRow:]
		}
	}
	return nil
}

// pool is where rows of a cache in pages are.
func (x *fake) pool(region string) []row {
	if region == "ring" {
		return x.pools[ir.WindowGroup]
	}
	return x.pools[ir.WholeGroup]
}

func putPair(b []byte, first, second uint64) {
	binary.LittleEndian.PutUint64(b, first)
	binary.LittleEndian.PutUint64(b[8:], second)
}

func (x *fake) ReadSpans(_ context.Context, spans []plans.Span, to []byte) error {
	return x.rowsOf(spans, to, func(region string, at int, b []byte) error {
		r := row{token: fakeUnwritten}
		slot, pos := at/x.plan.Header.Ctx, at%x.plan.Header.Ctx
		switch {
		case region == "state":
			return errors.New("states are read where they are kept")
		case x.paged():
			r = x.pool(region)[at]
		case region == "ring":
			r = x.rings[at/fakeRing][at%fakeRing]
		case pos < len(x.slots[slot]):
			r = x.slots[slot][pos]
		}
		if r.token == fakeUnwritten {
			return fmt.Errorf("row %d of %s is read, which nobody has written", at, region)
		}
		putPair(b, uint64(r.token), r.class)
		return nil
	})
}

// ReadState copies the whole of a state, which is one row.
func (x *fake) ReadState(_ context.Context, s runtime.State, from int64, to []byte) error {
	f := s.(*fakeState)
	if f.freed || from != 0 || len(to) != fakeRow {
		return fmt.Errorf("%d bytes from %d on of a state that is freed: %t", len(to), from, f.freed)
	}
	putPair(to, f.hash, uint64(f.depth))
	return nil
}

func (x *fake) WriteSpans(_ context.Context, spans []plans.Span, from []byte) error {
	return x.rowsOf(spans, from, func(region string, at int, b []byte) error {
		first, second := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		r := row{int32(first), second}
		slot, pos := at/x.plan.Header.Ctx, at%x.plan.Header.Ctx
		switch {
		case region == "state":
			x.states[at], x.depth[at] = first, int(second)
		case x.paged():
			if at < x.plan.PagedIn(ir.WholeGroup).Page {
				return fmt.Errorf("row %d of %s is written, in the page that is nobody's", at, region)
			}
			x.pool(region)[at] = r
		case region == "ring":
			x.rings[at/fakeRing][at%fakeRing] = r
		case pos > len(x.slots[slot]):
			return fmt.Errorf("row %d of slot %d, which has %d", pos, slot, len(x.slots[slot]))
		default:
			x.slots[slot] = append(x.slots[slot][:pos], r)
		}
		return nil
	})
}

func (x *fake) Close() error { return nil }

func fakeTokenizer() *text.Tokenizer {
	tok, err := text.New(fakeVocab)
	if err != nil {
		panic(err)
	}
	return tok
}
