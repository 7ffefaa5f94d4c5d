package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// What turns copy to shared memory. A load would wait until all states that its unit has asked for before have come, so
// the few bytes that a row needs besides are copied as well, turns before.

// copiesFours reports whether all that is copied of rows are whole fours of elements.
func (k *deltaKernel) copiesFours() bool {
	for _, in := range k.inputs {
		if in.first%4 > 0 || in.x.Type.Last()%4 > 0 {
			return false
		}
	}
	return k.write == nil || k.ringWidth()%4 == 0
}

// turnsBytes bounds the shared memory of a workgroup.
func (k *deltaKernel) turnsBytes() int {
	state := 4 * k.headDim * (k.width() + 2*2*k.log)
	rows := turnsPlaces*4*(3*k.headDim+k.width()+2) + turnsRaw*(16*k.rawSize()+8+4*k.width())
	all := 4*k.width() + 32 + 16*(k.rows.Max+turnsLead)
	if k.conv != nil {
		all += 4 * k.taps() * 3 * k.headDim
	}
	return state + rows + all
}

// rawSize is the fours of elements of what the inputs of a row are made of: of x, of the rows before it, and those that
// the workgroup writes into the ring.
func (k *deltaKernel) rawSize() int {
	n := 3 * k.headDim / 4
	if k.conv != nil {
		n *= k.taps()
	}
	if k.write != nil {
		n += k.ringTile() / 4
	}
	return n
}

// logSize is the fours of elements that a log has.
func (k *deltaKernel) logSize() int { return 2 * k.log * k.headDim / 4 }

// copyState starts to copy the state of the next row.
func (r *deltaTurns) copyState(next deltaNext) {
	b := r.b
	b.If(next.begins, func() {
		r.eachState(next.slot, func(c, p int, at kernel.Value) { r.stateBuffer.Copy(lane.U32x4, r.ahead, r.aheadAt(c, p), at) })
	})
	b.CopyGroup()
}

// copyLog starts to copy the log of the next row to where that of the row at hand is not.
func (r *deltaTurns) copyLog(slot kernel.Value) {
	b := r.b
	r.logFirst.Set(b.Sub(r.logSize(), r.logFirst.Get()))
	first := b.Div(r.logAt(slot), 4)
	r.among(0, r.logSize(), func(i kernel.Value) {
		r.stateBuffer.Copy(lane.U32x4, r.logs, b.Add(r.logFirst.Get(), i), b.Add(first, i))
	})
}

// copiedLog is the log that was copied last.
func (r *deltaTurns) copiedLog() *deltaLog {
	b, first := r.b, r.logFirst.Get()
	load4 := func(at kernel.Value) kernel.Value { return b.Bitcast(lane.F32x4, r.logs.Load(b.Add(first, at))) }
	load := func(at kernel.Value) kernel.Value {
		return b.Bitcast(kernel.F32, r.logs.LoadElem(b.Add(first, b.Div(at, 4)), b.Mod(at, 4)))
	}
	return &deltaLog{b, r.log, r.headDim, load, load4}
}

// aheadAt is where an access of the lane waits.
func (r *deltaTurns) aheadAt(c, p int) kernel.Value {
	return r.b.Add(r.b.LocalID(), (c*r.held()+p)*r.lanes())
}

// takeState takes the state that was copied, which is 0 where a sequence begins.
func (r *deltaTurns) takeState(begins kernel.Value) {
	b := r.b
	for c := range r.state {
		r.state[c] = nil
		for p := range r.held() {
			r.state[c] = append(r.state[c], b.Var(lane.F32x4, b.Bitcast(lane.F32x4, r.ahead.Load(r.aheadAt(c, p)))))
		}
	}
	b.If(begins, func() {
		for _, column := range r.state {
			for _, s := range column {
				s.Set(b.Splat(b.F32(0), 4))
			}
		}
	})
}

// loadCommon loads what all rows need.
func (r *deltaTurns) loadCommon() {
	b := r.b
	if r.conv != nil {
		vec := site.Widest(r.taps())
		each := r.taps() / vec
		b.For(b.LocalID(), 3*r.headDim*each, r.lanes(), func(i kernel.Value) {
			item := b.Div(i, each)
			channel := r.channel(b.Div(item, r.headDim), b.Mod(item, r.headDim))
			r.weights.Store(i, r.weight.Load(kernel.F32.Vec(vec), b.Add(b.Mul(channel, each), b.Mod(i, each))))
		})
	}
	if r.gated != nil {
		b.For(b.LocalID(), r.width()/4, r.lanes(), func(i kernel.Value) { r.gains.Store(i, r.gain.Load(lane.F32x4, i)) })
	}
	if s := r.deltaBuffers.scales; s.dt != nil {
		b.If(b.Eq(b.LocalID(), 0), func() {
			r.rates.Store(b.U32(0), s.dt.Load(kernel.F32, r.head))
			r.rates.Store(b.U32(1), s.rate.Load(kernel.F32, r.head))
		})
	}
}

// ask starts to copy what the inputs of a row are made of, if it is the first of its sequence, to a place.
func (r *deltaTurns) ask(of deltaNext, place kernel.Value) {
	b, quads := r.b, r.headDim/4
	to := b.Mul(place, r.rawSize())
	b.If(of.begins, func() {
		r.among(0, 3*quads, func(i kernel.Value) {
			for n, x := range r.deltaBuffers.inputs {
				copy := func(i kernel.Value, at kernel.Value) {
					x.Copy(lane.U32x4, r.raw, b.Add(to, at), b.Add(b.Div(b.Add(b.Mul(of.row, r.widths[n]), r.from[n]), 4), i))
				}
				b.If(b.Eq(b.Div(i, quads), n), func() { copy(b.Mod(i, quads), i) })
			}
		})
		used := 3 * quads
		if c := r.conv; c != nil {
			ring := lane.Ring{Taps: r.taps(), Depth: c.depth, Width: c.width}
			r.among(used, (r.taps()-1)*3*quads, func(i kernel.Value) {
				item := b.Mod(i, 3*quads)
				channel := r.channel(b.Div(item, quads), b.Mul(b.Mod(item, quads), 4))
				at := ring.At(b, of.slot, of.pos, channel, b.Add(b.Div(i, 3*quads), 1))
				c.ring.Copy(lane.U32x4, r.raw, b.Add(to, 3*quads, i), b.Div(at, 4))
			})
			used *= r.taps()
		}
		if r.write != nil {
			c := r.conv
			r.among(used, r.deltaKernel.ringTile()/4, func(i kernel.Value) {
				channel := b.Add(b.Mul(r.group, r.ringPart), b.Mul(i, 4))
				b.If(b.Lt(channel, c.width), func() {
					c.x.Copy(lane.U32x4, r.raw, b.Add(to, used, i), b.Div(b.Add(b.Mul(of.row, c.width), channel), 4))
				})
			})
			used += r.deltaKernel.ringTile() / 4
		}
		at := b.Add(b.Mul(of.row, r.heads), r.head)
		r.among(used, 2, func(i kernel.Value) {
			s := r.deltaBuffers.scales
			decay := s.g
			if decay == nil {
				decay = s.a
			}
			b.IfElse(b.Eq(i, 0), func() { decay.Copy(kernel.U32, r.scalars, b.Mul(place, 2), at) },
				func() { s.beta.Copy(kernel.U32, r.scalars, b.Add(b.Mul(place, 2), 1), at) })
		})
	})
}

// askGate starts to copy what gates the result of a row, if it is the first of its sequence.
func (r *deltaTurns) askGate(of deltaNext, place kernel.Value) {
	if r.gated == nil {
		return
	}
	b, quads := r.b, r.width()/4
	b.If(of.begins, func() {
		r.among(r.rawSize()+2, quads, func(i kernel.Value) {
			r.z.Copy(lane.U32x4, r.gates, b.Add(b.Mul(place, quads), i), b.Add(r.resultAt(of.row), i))
		})
	})
}
