package rdna

// counter is a counter of accesses under way. gfx11 has one for shared memory and scalar loads, which may overtake one
// another.
type counter int

const (
	loadCount counter = iota
	storeCount
	sharedCount
	scalarCount
	counters
)

// pending is an access that no wait has seen to its end.
type pending struct {
	fills  regset // registers that it writes
	shared []span // bytes of shared memory that it touches
	store  bool
}

type span struct{ at, n int }

type (
	hint        struct{}
	unsupported struct{}
	waitAll     struct{}
	waitMany    struct{}
	waitOne     struct{ of counter }
	waitTwo     struct{ of counter } // and shared memory
)

// begin notes an access under way.
func (w *wave) begin(c counter, p pending) {
	w.queues[c] = append(w.queues[c], p)
	w.waiting.union(&p.fills)
	w.open++
}

// wait ends all accesses but the youngest left. Scalar loads overtake one another: of them only 0 says anything.
func (w *wave) wait(in *Inst, c counter, left int) {
	q := w.queues[c]
	if c == scalarCount && left > 0 {
		return
	}
	ended := max(0, len(q)-left)
	if ended > 0 && w.m.Seen != nil {
		w.m.Seen[in.PC] = true
	}
	if c == storeCount {
		w.done += ended
	}
	if ended == 0 {
		return
	}
	for i := range q[:ended] {
		if q[i].shared != nil {
			w.spans = append(w.spans, q[i].shared)
		}
	}
	w.queues[c] = append(q[:0], q[ended:]...)
	w.open -= ended
	w.waiting = regset{}
	for c := range w.queues {
		for i := range w.queues[c] {
			w.waiting.union(&w.queues[c][i].fills)
		}
	}
}

// waitShared is a wait for the one counter that gfx11 has for shared memory and scalar loads. Where at most so many of
// both are under way, at most so many of each are.
func (w *wave) waitShared(in *Inst, left int) {
	if w.m.Gen == GFX11 {
		w.wait(in, scalarCount, left)
	}
	w.wait(in, sharedCount, left)
}

func (o waitOne) run(w *wave, in *Inst) {
	n := int(uint16(in.imm))
	if o.of == sharedCount {
		w.waitShared(in, n)
		return
	}
	w.wait(in, o.of, n)
}

func (o waitTwo) run(w *wave, in *Inst) {
	w.wait(in, o.of, int(in.imm>>8&63))
	w.waitShared(in, int(in.imm&63))
}

func (waitMany) run(w *wave, in *Inst) {
	w.wait(in, loadCount, int(in.imm>>10&63))
	if n := int(in.imm >> 4 & 63); n < 63 {
		w.waitShared(in, n)
	}
}

func (waitAll) run(w *wave, in *Inst) {
	for c := range w.queues {
		w.wait(in, counter(c), 0)
	}
}

// checkWaited faults an instruction that uses a register which an access under way fills. Accesses of one kind end in
// their order, so that a second may fill what the first does.
func (w *wave) checkWaited(in *Inst) {
	if code, is := w.waiting.meets(&in.reads); is {
		w.fail(in, Unwaited, "reads %s, which a load under way fills", registerName(code))
		return
	}
	code, is := w.waiting.meets(&in.writes)
	if !is {
		return
	}
	own := counters
	switch in.row.form {
	case global, scratch, mubuf:
		own = loadCount
	case ds:
		own = sharedCount
	}
	for c := range w.queues {
		for i := range w.queues[c] {
			if _, is := w.queues[c][i].fills.meets(&in.writes); is && counter(c) != own {
				w.fail(in, Unwaited, "writes %s, which a load under way fills", registerName(code))
				return
			}
		}
	}
}
