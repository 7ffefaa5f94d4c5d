package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cache"
)

// Holding is a Keeper that has something in memory.
type Holding interface {
	Held() (pieces int, bytes int64)
	Lasts() bool // over restarts; else nothing is written at the end
}

// Keeper keeps bytes by name, in memory or over restarts: what was written as a whole, or nothing. Its methods may be
// called by several goroutines.
type Keeper interface {
	Has(name string) bool
	// Read returns what was written under a name; nil if that is not there any more, damaged or of another length.
	Read(name string, bytes int64) []byte
	// Write has its data until it returns.
	Write(name string, data []byte)
	// Use notes that what is kept under the names was wanted so long ago, the first most.
	Use(names []string, ago time.Duration)
}

// kept is what the engine keeps of prompts: the rows of each piece under a name that follows from all tokens up to its
// end, the owner, the device and the cuts, and tails. So what is there has the bits that reading it would write.
// Both are written while nobody asks for anything, and behind the last request. Prompts go on from them where no slot
// has them any more.
type kept struct {
	Keeper
	rows     runtime.SpanCopier
	root     [sha256.Size]byte
	rowBytes int64 // that a position has in pieces
	tails    bool  // prompts go on only where a tail is kept
	windows  bool  // tails have rows of a window
	bare     bool  // pieces have no rows: all is in tails
	writing  atomic.Bool
	buffer   []byte // of what is written, in memory that is used again
	reading  reading
	late     chan []byte // of a part that did not come in time: until it does nothing more is read; nil: there is none
	restored int64       // tokens
}

// reading is parts of a prompt that are read before they are wanted: a disk, and the sum of what it gives, take longer
// than the way to the device.
type reading struct {
	of    *seq
	parts map[string]chan []byte // by name
}

const (
	// readAhead bounds the bytes that are read behind the piece that is wanted next; the piece that reaches it is read
	// as a whole. Pieces have some KiB to hundreds of MiB, so bytes count. All that is read at once shares the disk:
	// with more of them a slow disk would not give the first piece within readTime.
	readAhead = 256 << 20
	// readAtOnce bounds the pieces that are read at once, however small: each takes a thread and a file.
	readAtOnce = 32
	// readTime bounds the wait for a piece. What does not come is computed.
	readTime = 2 * time.Second
	// keepAtOnce is how many bytes are read from the device at once: a request that comes meanwhile waits for them.
	keepAtOnce = 8 << 20
)

// endTime bounds the writing behind the last request.
const endTime = 10 * time.Second

// newKept returns nil if nothing is to be kept.
func newKept(o Options, plan *plans.Plan, exec runtime.Executor, p *prompts) *kept {
	rows, ok := exec.(runtime.SpanCopier)
	if o.Keeper == nil || !ok || Keeps(plan) != nil {
		return nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %d", exec.Device(), p.cuts)
	for _, piece := range p.pieces {
		fmt.Fprintf(h, " %s", piece.widest.Name)
	}
	k := &kept{Keeper: o.Keeper, rows: rows}
	k.windows, k.bare = caches(plan)
	k.tails = k.windows || plan.Memory.Recurrent()
	k.rowBytes = plans.SpanBytes(append(plan.Rows(0, 0, 1), plan.PageRows(ir.WholeGroup, 0, 0, 1)...))
	h.Sum(k.root[:0])
	return k
}

// names are those of the parts of a prompt from cut to cut, as many as it shares with longer ones.
func (k *kept) names(p *prompts, owner string, prompt []int32) []string {
	sum := sha256.Sum256(append(k.root[:], owner...))
	shared := p.cutsIn(0, p.shared(len(prompt)))
	names := slices.Grow([]string(nil), len(shared)) // nil if there is none
	var b []byte
	for i := range shared {
		b = append(b[:0], sum[:]...)
		for _, t := range prompt[p.cuts[i]:p.cuts[i+1]] {
			b = binary.LittleEndian.AppendUint32(b, uint32(t))
		}
		sum = sha256.Sum256(b)
		names = append(names, hex.EncodeToString(sum[:16]))
	}
	return names
}

// hasPiece says whether a piece is kept, or has nothing that could be.
func (k *kept) hasPiece(name string) bool { return k.bare || k.Has(name) }

// restorable says whether the next piece of a prompt, or its tail, is kept.
func (e *Engine) restorable(s *seq) bool {
	i, cut := slices.BinarySearch(e.prompts.cuts, len(s.slot.tokens))
	if e.kept == nil || !s.exact || s.req.NoCache || !cut {
		return false
	}
	if e.kept.tails {
		return s.to > 0
	}
	return i < len(s.names) && e.prompts.cuts[i+1] < len(s.req.Prompt) && e.kept.Has(s.names[i])
}

// restore takes the next piece of a prompt from what is kept, or its tail, and says whether it did, or has found
// another place to go on from.
func (e *Engine) restore(s *seq) (took time.Duration, ok bool, err error) {
	if !e.restorable(s) {
		return 0, false, nil
	}
	began, pos := time.Now(), len(s.slot.tokens)
	i, _ := slices.BinarySearch(e.prompts.cuts, pos)
	e.tell(time.Hour) // a disk may take long
	if e.kept.tails {
		err = e.toTail(s, i)
		return time.Since(began), true, err
	}
	e.readOn(s, i)
	if ok, err = e.takePiece(s, i); !ok || err != nil {
		return 0, false, err
	}
	n := e.prompts.cuts[i+1] - pos
	e.fed(s, n)
	e.cached(s, s.from+n)
	e.wentOn(s, n)
	return time.Since(began), true, nil
}

// takePiece writes piece i of a prompt to its slot, and says whether it has come.
func (e *Engine) takePiece(s *seq, i int) (bool, error) {
	if e.kept.bare {
		return true, nil
	}
	data := e.kept.wait(s.names[i])
	if data == nil {
		return false, nil
	}
	return true, e.kept.rows.WriteSpans(context.Background(), e.places(s.slot.index, e.prompts.cuts[i], e.prompts.cuts[i+1]), data)
}

// wentOn notes that n more tokens of a prompt are restored, and that it goes on behind them.
func (e *Engine) wentOn(s *seq, n int) {
	e.kept.restored += int64(n)
	if s.req.Reading != nil {
		s.req.Reading(len(s.slot.tokens))
	}
}

// readOn begins to read what a prompt goes on with behind its first i pieces: the tail, whose name it returns if that
// is wanted first, and some pieces.
func (e *Engine) readOn(s *seq, i int) (tail string) {
	k, cuts, to := e.kept, e.prompts.cuts, len(s.req.Prompt)-1
	if k.tails {
		to = s.to
	}
	if k.tails && s.tail == nil {
		last, _ := slices.BinarySearch(cuts, s.to)
		tail = tailOf(s.names[last-1])
		k.begin(s, tail, e.tailBytes(s.to))
	}
	for j := i; j < min(i+readAtOnce, len(s.names)) && cuts[j+1] <= to && !k.bare; j++ {
		if int64(cuts[j]-cuts[i+1])*k.rowBytes >= readAhead {
			break
		}
		k.begin(s, s.names[j], int64(cuts[j+1]-cuts[j])*k.rowBytes)
	}
	return tail
}

// begin begins to read a part of a prompt, if it is kept.
func (k *kept) begin(s *seq, name string, bytes int64) {
	if k.reading.of != s {
		k.reading = reading{s, map[string]chan []byte{}}
	}
	if k.reading.parts[name] != nil || k.isLate() || !k.Has(name) {
		return
	}
	data := make(chan []byte, 1)
	k.reading.parts[name] = data
	go func() { data <- k.Read(name, bytes) }()
}

// wait returns a part that is being read; nil if it is not, or does not come.
func (k *kept) wait(name string) []byte {
	part := k.reading.parts[name]
	if delete(k.reading.parts, name); len(k.reading.parts) == 0 {
		k.reading = reading{}
	}
	select {
	case data := <-part:
		return data
	default:
	}
	if part == nil || k.isLate() {
		return nil
	}
	select {
	case data := <-part:
		return data
	case <-time.After(readTime):
		k.late = part
		return nil
	}
}

// isLate says whether a part that was given up has not come yet: all that run would wait for the next one, too.
func (k *kept) isLate() bool {
	select {
	case <-k.late:
		k.late = nil
	default:
	}
	return k.late != nil
}

// part is something of a slot's prompt that may be kept: the piece that ends at a cut, or the tail there.
type part struct {
	cut  int // its index
	tail bool
}

// name is that of a part of a prompt whose pieces have names.
func (p part) name(names []string) string {
	if p.tail {
		return tailOf(names[p.cut-1])
	}
	return names[p.cut-1]
}

// keep begins to write a part that is not yet kept, if there is one, and none is being written. It is called where no
// request runs, and ends early if one comes. done is called when the part is written.
func (e *Engine) keep(done func()) bool {
	k := e.kept
	if k == nil || k.writing.Load() {
		return false
	}
	k.reading = reading{}
	for _, l := range e.slots {
		if l.names != nil && l.parts == nil {
			l.parts = e.partsOf(l)
		}
		for len(l.parts) > 0 {
			p := l.parts[0]
			name := p.name(l.names)
			if e.prompts.cuts[p.cut] > e.tree.At(l.index) || !l.anew && k.Has(name) {
				l.parts = l.parts[1:]
				continue
			}
			there, read := e.readBack(l, p)
			if !read {
				return false
			}
			l.parts = l.parts[1:] // once: the bound may let it go again
			if !there {
				continue
			}
			k.writing.Store(true)
			go func() {
				defer done()
				defer k.writing.Store(false)
				k.Write(name, k.buffer)
			}()
			return true
		}
		if l.names != nil {
			e.use(l)
			l.names, l.parts = nil, nil
		}
	}
	k.buffer = nil
	return false
}

// partsOf lists what a slot has of its prompt that is to be kept: pieces, as far as a prompt can go on, and tails, the
// last one first.
func (e *Engine) partsOf(l *slot) []part {
	pieces, _ := slices.BinarySearch(e.prompts.cuts, e.tree.At(l.index))
	parts := []part{}
	var tails []part
	if e.kept.tails {
		pieces = 0
		for _, pos := range e.tailsIn(l) {
			cut, _ := slices.BinarySearch(e.prompts.cuts, pos)
			pieces, tails = max(pieces, cut), append(tails, part{cut, true})
		}
	}
	for cut := 1; cut <= pieces && !e.kept.bare; cut++ {
		parts = append(parts, part{cut: cut})
	}
	return append(parts, tails...)
}

// use notes what is wanted most of what is kept of a slot's prompt: the pieces, the last tail, and each tail behind
// which prompts part before the next one, as new conversations go on there. The others count as states do in the tree
// that conversations have gone on behind.
func (e *Engine) use(l *slot) {
	k, cuts := e.kept, e.prompts.cuts
	last, _ := slices.BinarySearch(cuts, e.tree.At(l.index))
	if !k.tails {
		k.Use(l.names[:last], 0)
		return
	}
	var wanted, passed []string
	for cut, next := last, 0; cut > 0; cut-- {
		name := tailOf(l.names[cut-1])
		switch {
		case !k.Has(name):
			continue
		case next == 0:
			wanted = append(slices.Clone(l.names[:cut]), name)
		case e.tree.Parts(l.index, cuts[cut], cuts[next]):
			wanted = append(wanted, name)
		default:
			passed = append(passed, name)
		}
		next = cut
	}
	k.Use(wanted, 0)
	k.Use(passed, cache.Passed)
}

// readBack copies a part of a slot's prompt from the device, and says whether it is there, and whether it could: it
// ends where a request waits; of a device that is lost the next step tells why.
func (e *Engine) readBack(l *slot, p part) (there, read bool) {
	k, pos := e.kept, e.prompts.cuts[p.cut]
	if !p.tail {
		k.buffer = k.buffer[:0]
		return true, e.readSpans(e.places(l.index, e.prompts.cuts[p.cut-1], pos))
	}
	if !slices.Contains(e.tailsIn(l), pos) { // a state has made way meanwhile
		return false, true
	}
	return true, e.readTailBack(l, pos)
}

// readSpans copies spans from the device behind what the buffer has.
func (e *Engine) readSpans(spans []plans.Span) bool {
	k := e.kept
	k.buffer = slices.Grow(k.buffer, int(plans.SpanBytes(spans)))
	for len(spans) > 0 {
		n, bytes := 1, spans[0].Bytes
		for n < len(spans) && bytes+spans[n].Bytes <= keepAtOnce {
			bytes += spans[n].Bytes
			n++
		}
		at := len(k.buffer)
		k.buffer = k.buffer[:at+int(bytes)]
		if e.requestWaits() || k.rows.ReadSpans(context.Background(), spans[:n], k.buffer[at:]) != nil {
			return false
		}
		spans = spans[n:]
	}
	return true
}

func (e *Engine) requestWaits() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) > 0
}

// keepRest writes what is not yet kept, as far as there is time.
func (e *Engine) keepRest() {
	if e.kept != nil {
		if h, ok := e.kept.Keeper.(Holding); ok && !h.Lasts() {
			return
		}
	}
	for end := time.Now().Add(endTime); e.kept != nil && e.Err() == nil && time.Now().Before(end); {
		written := make(chan struct{})
		if e.keep(func() { close(written) }) {
			select {
			case <-written:
			case <-time.After(time.Until(end)): // a folder that does not answer
			}
		} else if !e.kept.writing.Load() {
			return
		} else {
			time.Sleep(time.Millisecond)
		}
	}
}
