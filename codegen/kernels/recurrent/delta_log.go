package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// deltaLog is the log of a head's state while a kernel is built: the updates that the state lacks, see op deltanet.
// Steps of many sequences write these, 1.5 KB a head of 128, where they would write the state. Whoever loads the state
// applies what waits with the instructions that would have changed it before, so its bits are the same.
type deltaLog struct {
	b     *kernel.Builder
	every int                                // R of the op
	dim   int                                // of the head
	load  func(at kernel.Value) kernel.Value // an element
	load4 func(at kernel.Value) kernel.Value // four elements, counted in fours
}

// logIn is a log in a buffer of states, from the element first on.
func logIn(b *kernel.Builder, every, dim int, state *kernel.Buffer, first kernel.Value) *deltaLog {
	return &deltaLog{b, every, dim,
		func(at kernel.Value) kernel.Value { return state.Load(kernel.F32, b.Add(first, at)) },
		func(at kernel.Value) kernel.Value { return state.Load(lane.F32x4, b.Add(b.Div(first, 4), at)) }}
}

// waiting returns how many updates a column of the head waits for, none if the sequence begins. All columns wait for as
// many; each has a number of its own, so that workgroups that share a head need not agree when to change it.
func (l *deltaLog) waiting(begins, column kernel.Value) kernel.Value {
	b := l.b
	return b.Select(begins, b.U32(0), b.Min(b.Convert(kernel.U32, l.load(column)), l.every-1))
}

// deltaAt, keyAt and decayAt are the elements where the deltas of an update are, its key and its decay.
func (l *deltaLog) deltaAt(update kernel.Value) kernel.Value {
	return l.b.Mul(l.b.Add(update, 1), l.dim)
}

func (l *deltaLog) keyAt(update kernel.Value) kernel.Value {
	return l.b.Mul(l.b.Add(update, l.every), l.dim)
}

func (l *deltaLog) decayAt(update kernel.Value) kernel.Value {
	return l.b.Add(update, (2*l.every-1)*l.dim)
}

// apply applies n updates to what a lane has of columns: of each some fours, counted from the first key dim on. change
// changes four p of column c by a function.
func (l *deltaLog) apply(n kernel.Value, columns, fours []kernel.Value, change func(c, p int, by func(s kernel.Value) kernel.Value)) {
	b := l.b
	b.For(0, n, 1, func(update kernel.Value) {
		decay, deltas := b.Splat(l.load(l.decayAt(update)), 4), make([]kernel.Value, len(columns))
		for c, column := range columns {
			deltas[c] = b.Splat(l.load(b.Add(l.deltaAt(update), column)), 4)
		}
		for p, four := range fours {
			key := l.load4(b.Add(b.Div(l.keyAt(update), 4), four))
			for c, delta := range deltas {
				change(c, p, func(s kernel.Value) kernel.Value { return b.FMA(delta, key, b.Mul(s, decay)) })
			}
		}
	})
}
