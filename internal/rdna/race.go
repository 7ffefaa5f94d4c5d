package rdna

// sharedCell is who used a byte of shared memory last. Signals are counts of barriers that the wave had signalled by
// then: another wave comes behind if it has waited for more.
//
// A cell stands for as many bytes as the program takes at least.
type sharedCell struct {
	group       int32 // and 1, of which the rest is
	writer      int32 // wave and 1
	written     int32 // signals
	readers     uint32
	readSignals int32
}

// groupOrder is what a workgroup has made visible to others, and has seen of them. A wave publishes by an atomic
// instruction the stores whose ends it has waited for, and those of other waves that lie before a barrier behind which
// it is.
type groupOrder struct {
	published []int // how many stores of each wave
	seen      int64 // time of the last atomic instruction
	seenBy    int   // wave
	signals   int   // of that wave at that time
}

// shadow is who wrote each byte of a buffer, in pages.
type shadow struct {
	pages map[int]*[pageBytes]cell
}

const pageBytes = 4096

// cell is the last write to some bytes of a buffer, and the last read.
type cell struct {
	group, wave int32 // and 1, of the group
	signals     int32
	number      int32 // of the store among those of its wave
	readGroup   int32 // and 1
	readWave    int32
	readSignals int32
}

func (s *shadow) cell(at int) *cell {
	if s.pages == nil {
		s.pages = map[int]*[pageBytes]cell{}
	}
	p := s.pages[at/pageBytes]
	if p == nil {
		p = new([pageBytes]cell)
		s.pages[at/pageBytes] = p
	}
	return &p[at%pageBytes]
}

type (
	barrierSignal struct{}
	barrierWait   struct{}
	barrierBoth   struct{}
)

func (barrierSignal) run(w *wave, in *Inst) {
	if in.src[0].code != constant || in.src[0].value != 0xffffffff {
		w.fail(in, Unsupported, "a barrier other than that of the workgroup")
		return
	}
	w.signal()
	if w.signals > w.barriers+1 {
		w.fail(in, BadBarrier, "signals a barrier twice before it waits")
	}
}

// What waits is the workgroup's to say: it steps over these.
func (barrierWait) run(w *wave, in *Inst) {}
func (barrierBoth) run(w *wave, in *Inst) {}

// signal signals the barrier. What is under way ends behind it.
func (w *wave) signal() {
	w.signals++
	w.doneAt = append(w.doneAt, w.done)
	w.m.counts.Barriers++
	for _, p := range w.queues[sharedCount] {
		for _, s := range p.shared {
			for i := s.at >> w.prog.shared; i <= (s.at+s.n-1)>>w.prog.shared; i++ {
				c := &w.g.cells[i]
				if p.store && int(c.writer) == w.id+1 {
					c.written = int32(w.signals)
				}
				if !p.store && c.readers>>w.id&1 == 1 {
					c.readSignals = int32(w.signals)
				}
			}
		}
	}
}

// useShared notes an access to shared memory and faults one that nothing orders behind another's.
func (w *wave) useShared(in *Inst, at, n int, store bool) bool {
	each := w.prog.shared
	for i := at >> each; i <= (at+n-1)>>each; i++ {
		c := &w.g.cells[i]
		if int(c.group) != w.g.number+1 {
			*c = sharedCell{group: int32(w.g.number) + 1}
		}
		if c.writer != 0 && int(c.writer) != w.id+1 && int(c.written) >= w.barriers {
			w.fail(in, SharedRace, "byte %d of shared memory, which wave %d writes", i<<each, c.writer-1)
			return false
		}
		if !store {
			if int(c.readSignals) != w.signals {
				c.readers, c.readSignals = 0, int32(w.signals)
			}
			c.readers |= 1 << w.id
			continue
		}
		if others := c.readers &^ (1 << w.id); others != 0 && int(c.readSignals) >= w.barriers {
			w.fail(in, SharedRace, "byte %d of shared memory, which wave %d reads", i<<each, firstLane(uint64(others)))
			return false
		}
		c.writer, c.written = int32(w.id)+1, int32(w.signals)
	}
	return true
}

// publish notes an atomic instruction, by which workgroups tell one another of what they have stored.
func (w *wave) publish() {
	o := w.g.order
	for _, other := range w.g.waves {
		o.published[other.id] = max(o.published[other.id], other.before(w.barriers))
	}
	o.published[w.id] = w.done
	o.seen, o.seenBy, o.signals = w.m.time, w.id, w.signals
}

// before is how many of the wave's stores had ended when it signalled the last of so many barriers.
func (w *wave) before(barriers int) int {
	if barriers == 0 || barriers > len(w.doneAt) {
		return 0
	}
	return w.doneAt[barriers-1]
}

// ordered reports whether an access to a byte comes before what the wave does now, and whether its caches may still
// hold what was there before. Loads have ended when their wave signals, as their results are used; stores only if the
// wave has waited.
func (w *wave) ordered(c *cell) (ordered, fresh bool) {
	if int(c.group) == w.g.number+1 {
		if int(c.wave) == w.id {
			return true, true
		}
		return int(c.signals) < w.barriers && int(c.number) <= w.g.waves[c.wave].before(w.barriers), w.invalidated > w.passed
	}
	other, mine := w.m.groups[c.group-1], w.g.order
	seen := other.seen >= 0 && mine.seen > other.seen && (mine.seenBy == w.id || mine.signals < w.barriers)
	return seen && int(c.number) <= other.published[c.wave], w.invalidated > mine.seen
}

// useBuffer notes an access to a writable buffer and faults one that nothing orders. Of a launch that loads ahead such
// a load only returns false: what it finds must not matter.
func (w *wave) useBuffer(in *Inst, b, at, n int, store, bypass bool) bool {
	s := &w.m.buffers[b].shadow
	each := w.prog.global
	for i := at >> each; i <= (at+n-1)>>each; i++ {
		c := s.cell(i)
		if c.group != 0 {
			ordered, fresh := w.ordered(c)
			if w.m.Ahead && !store && (!ordered || !fresh && !bypass) {
				return false
			}
			if !ordered {
				w.fail(in, GlobalRace, "byte %d of %s, which wave %d of workgroup %d stores", i<<each, w.m.buffers[b].Name, c.wave, c.group-1)
				return false
			}
			if !fresh && !store && !bypass {
				w.fail(in, Stale, "byte %d of %s, which workgroup %d stored, may lie in a cache as it was", i<<each, w.m.buffers[b].Name, c.group-1)
				return false
			}
		}
		if !store {
			c.readGroup, c.readWave, c.readSignals = int32(w.g.number)+1, int32(w.id), int32(w.signals)
			continue
		}
		if r := *c; r.readGroup != 0 && !w.m.Ahead {
			read := cell{group: r.readGroup, wave: r.readWave, signals: r.readSignals, number: -1}
			if ordered, _ := w.ordered(&read); !ordered {
				w.fail(in, GlobalRace, "byte %d of %s, which wave %d of workgroup %d reads", i<<each, w.m.buffers[b].Name, r.readWave, r.readGroup-1)
				return false
			}
		}
		c.group, c.wave, c.signals, c.number = int32(w.g.number)+1, int32(w.id), int32(w.signals), int32(w.issued)
	}
	return true
}
