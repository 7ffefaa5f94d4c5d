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
	// Use notes that what is kept under the names is wanted, the first most.
	Use(names []string)
}

// kept is what the engine keeps of prompts: the rows of each piece under a name that follows from all tokens up to its
// end, the owner, the device and the cuts. So a piece that is there has the bits that reading it would write.
// Pieces are written while nobody asks for anything, and behind the last request. Prompts go on from them where no slot
// has them any more.
type kept struct {
	Keeper
	rows     runtime.SpanCopier
	root     [sha256.Size]byte
	writing  atomic.Bool
	buffer   []byte // of what is written, in memory that is used again
	reading  reading
	late     chan []byte // of a piece that did not come in time: until it does nothing more is read; nil: there is none
	restored int64       // tokens
}

// reading is pieces of a prompt that are read before they are wanted: a disk, and the sum of what it gives, take longer
// than the way to the device.
type reading struct {
	of     *seq
	pieces map[int]chan []byte // by number
}

const (
	// readAhead is how many pieces are read at once.
	readAhead = 6
	// readTime bounds the wait for a piece. What does not come is computed.
	readTime = 2 * time.Second
	// keepAtOnce is how many bytes are read from the device at once: a request that comes meanwhile waits for them.
	keepAtOnce = 8 << 20
)

// endTime bounds the writing behind the last request.
const endTime = 10 * time.Second

// newKept returns nil if nothing is to be kept. Models with recurrent state or rings go on only where these are kept,
// too: nothing is kept of them.
func newKept(o Options, plan *plans.Plan, exec runtime.Executor, p *prompts) *kept {
	rows, ok := exec.(runtime.SpanCopier)
	if o.Keeper == nil || !ok || Keeps(plan) != nil {
		return nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %d", exec.Device(), p.cuts)
	for _, e := range p.widest {
		fmt.Fprintf(h, " %s", e.Name)
	}
	k := &kept{Keeper: o.Keeper, rows: rows}
	h.Sum(k.root[:0])
	return k
}

// Keeps says why Options.Keeper keeps nothing of a plan's prompts; nil: it does.
func Keeps(plan *plans.Plan) error {
	if plan.Memory.Recurrent() {
		return fmt.Errorf("models with recurrent state are not kept over restarts")
	}
	if len(plan.Rings(0)) > 0 || plan.PagedIn(ir.WindowGroup) != nil {
		return fmt.Errorf("models whose layers see a window are not kept over restarts")
	}
	return nil
}

// names are those of the pieces of a prompt, as many as it has whole.
func (k *kept) names(p *prompts, owner string, prompt []int32) []string {
	sum := sha256.Sum256(append(k.root[:], owner...))
	var names []string
	for i := 0; i+1 < len(p.cuts) && p.cuts[i+1] <= len(prompt); i++ {
		b := slices.Clone(sum[:])
		for _, t := range prompt[p.cuts[i]:p.cuts[i+1]] {
			b = binary.LittleEndian.AppendUint32(b, uint32(t))
		}
		sum = sha256.Sum256(b)
		names = append(names, hex.EncodeToString(sum[:16]))
	}
	return names
}

// restore takes the next piece of a prompt from what is kept, and says whether it was there.
func (e *Engine) restore(s *seq) (took time.Duration, ok bool, err error) {
	l := s.slot
	pos := len(l.tokens)
	i, cut := slices.BinarySearch(e.prompts.cuts, pos)
	if e.kept == nil || !s.exact || s.req.NoCache || !cut || i >= len(s.names) || e.prompts.cuts[i+1] >= len(s.req.Prompt) || !e.kept.Has(s.names[i]) {
		return 0, false, nil
	}
	e.tell(time.Hour) // a disk may take long
	began := time.Now()
	n := e.prompts.cuts[i+1] - pos
	spans := e.places(l.index, pos, pos+n)
	data := e.readPiece(s, i)
	if data == nil {
		return 0, false, nil
	}
	if err := e.kept.rows.WriteSpans(context.Background(), spans, data); err != nil {
		return 0, false, err
	}
	e.fed(s, n)
	e.cached(s, s.from+n)
	e.kept.restored += int64(n)
	if s.req.Reading != nil {
		s.req.Reading(pos + n)
	}
	return time.Since(began), true, nil
}

// readPiece returns piece i of a prompt, nil if it is not kept, and begins to read those behind it.
func (e *Engine) readPiece(s *seq, i int) []byte {
	k, cuts := e.kept, e.prompts.cuts
	if k.reading.of != s {
		k.reading = reading{s, map[int]chan []byte{}}
	}
	for j := i; j < min(i+readAhead, len(s.names)) && cuts[j+1] < len(s.req.Prompt); j++ {
		if _, begun := k.reading.pieces[j]; begun || k.isLate() || j > i && !k.Has(s.names[j]) {
			continue
		}
		name, bytes, data := s.names[j], plans.SpanBytes(e.places(s.slot.index, cuts[j], cuts[j+1])), make(chan []byte, 1)
		k.reading.pieces[j] = data
		go func() { data <- k.Read(name, bytes) }()
	}
	piece := k.reading.pieces[i]
	if delete(k.reading.pieces, i); len(k.reading.pieces) == 0 {
		k.reading = reading{}
	}
	select {
	case data := <-piece:
		return data
	default:
	}
	if piece == nil || k.isLate() {
		return nil
	}
	select {
	case data := <-piece:
		return data
	case <-time.After(readTime):
		k.late = piece
		return nil
	}
}

// isLate says whether a piece that was given up has not come yet: all that run would wait for the next one, too.
func (k *kept) isLate() bool {
	select {
	case <-k.late:
		k.late = nil
	default:
	}
	return k.late != nil
}

// keep begins to write a piece that is not yet kept, if there is one, and none is being written. It is called where no
// request runs, and ends early if one comes. done is called when the piece is written.
func (e *Engine) keep(done func()) bool {
	k := e.kept
	if k == nil || k.writing.Load() {
		return false
	}
	k.reading = reading{}
	for _, l := range e.slots {
		at := 0
		for at < len(l.names) && e.prompts.cuts[at+1] <= e.tree.At(l.index) {
			at++
		}
		names := l.names[:at]
		for l.looked < at && k.Has(names[l.looked]) {
			l.looked++
		}
		if l.looked == at {
			k.Use(names)
			l.names, l.looked = nil, 0
			continue
		}
		i := l.looked
		if !e.readBack(e.places(l.index, e.prompts.cuts[i], e.prompts.cuts[i+1])) {
			return false
		}
		l.looked++ // once: the bound may let it go again
		k.writing.Store(true)
		go func() {
			defer done()
			defer k.writing.Store(false)
			k.Write(names[i], k.buffer)
		}()
		return true
	}
	k.buffer = nil
	return false
}

// readBack copies spans from the device, and says whether it could. It ends where a request waits; of a device that is
// lost the next step tells why.
func (e *Engine) readBack(spans []plans.Span) bool {
	k := e.kept
	k.buffer = slices.Grow(k.buffer[:0], int(plans.SpanBytes(spans)))
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
