package lane

import "github.com/zincc-dev/zincc/codegen/kernel"

// Ring holds the past rows of a causal convolution. The row of position p lies at p modulo Depth in its slot's part.
type Ring struct {
	Rows  *kernel.Buffer
	Taps  int          // terms of a sum
	Depth kernel.Value // rows of a slot
	Width kernel.Value // channels
}

// At returns where a channel's element lies for the position that is so many before pos.
func (r Ring) At(b *kernel.Builder, slot, pos, channel kernel.Value, back kernel.Operand) kernel.Value {
	row := b.Add(b.Mul(slot, r.Depth), b.Mod(b.Sub(b.Add(pos, r.Depth), back), r.Depth))
	return b.Add(b.Mul(row, r.Width), channel)
}

// Past loads a channel's past elements and passes each to keep with its distance, from 1 on. here says by distance
// whether the step itself has the row. If it has all of them, which all says, Past loads nothing; all is nil for a step
// of one row, which has none.
func (r Ring) Past(b *kernel.Builder, slot, pos, channel kernel.Value, here []kernel.Value, all *kernel.Value, keep func(distance int, v kernel.Value)) {
	load := func() {
		for d := 1; d < r.Taps; d++ {
			// The step lacks the furthest row if it lacks any. That row stands for those that the step has, because a
			// dispatch may write theirs in the ring meanwhile.
			back := b.Select(here[d], b.U32(uint32(r.Taps-1)), b.U32(uint32(d)))
			keep(d, r.Rows.Load(kernel.F32, r.At(b, slot, pos, channel, back)))
		}
	}
	if all == nil {
		load()
		return
	}
	b.If(b.Not(*all), load)
}

// Sum adds the terms of a channel to sum, the oldest first. past returns the element at a distance, now is the row's
// own.
func (r Ring) Sum(b *kernel.Builder, sum kernel.Value, weights []kernel.Value, past func(distance int) kernel.Value, now kernel.Value) kernel.Value {
	for d := r.Taps - 1; d > 0; d-- {
		sum = b.FMA(weights[r.Taps-1-d], past(d), sum)
	}
	return b.FMA(weights[r.Taps-1], now, sum)
}
