package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// fragmentWords are what a lane has loaded: by item and row.
type fragmentWords [][2][]kernel.Value

// take returns what one returns for every item.
func take(items [][2]weight.FragmentItem, one func(item weight.FragmentItem) []kernel.Value) fragmentWords {
	w := make(fragmentWords, len(items))
	for i, pair := range items {
		for h, item := range pair {
			w[i][h] = one(item)
		}
	}
	return w
}

// heads returns what head loads of all items.
func heads(items [][2]weight.FragmentItem, block kernel.Value) fragmentWords {
	return take(items, func(item weight.FragmentItem) []kernel.Value {
		if item.Head == nil {
			return nil
		}
		return item.Head(block)
	})
}

// words returns what load loads of all items.
func words(items [][2]weight.FragmentItem, block kernel.Value, p int) fragmentWords {
	return take(items, func(item weight.FragmentItem) []kernel.Value { return item.Load(block, p) })
}

// scales returns what the octets of iteration p have in common, given heads.
func (w fragmentWords) scales(items [][2]weight.FragmentItem, p int) fragmentWords {
	list := make(fragmentWords, len(w))
	for i, pair := range items {
		for h, item := range pair {
			if item.Scales != nil {
				list[i][h] = item.Scales(w[i][h], p)
			}
		}
	}
	return list
}

// fragmentHeld are variables for such words.
type fragmentHeld [][2][]*kernel.Var

func (w fragmentWords) held(b *kernel.Builder) fragmentHeld {
	list := make(fragmentHeld, len(w))
	for i := range w {
		for h, words := range w[i] {
			for _, v := range words {
				list[i][h] = append(list[i][h], b.Var(v.Type(), v))
			}
		}
	}
	return list
}

// gets returns what is held.
func (held fragmentHeld) gets() fragmentWords {
	w := make(fragmentWords, len(held))
	for i := range held {
		for h, vars := range held[i] {
			w[i][h] = gets(vars)
		}
	}
	return w
}

// sets has other words held.
func (held fragmentHeld) sets(next fragmentWords) {
	for i := range held {
		for h, vars := range held[i] {
			sets(vars, next[i][h])
		}
	}
}

// fragmentLoads are a block's words by iteration, and behind them its head.
type fragmentLoads [weight.FragmentIterations + 1]fragmentWords

// load loads all of a block.
func load(items [][2]weight.FragmentItem, block kernel.Value) (l fragmentLoads) {
	for p := range weight.FragmentIterations {
		l[p] = words(items, block, p)
	}
	l[weight.FragmentIterations] = heads(items, block)
	return l
}

// fragmentTurns are variables for them.
type fragmentTurns [weight.FragmentIterations + 1]fragmentHeld

func (l fragmentLoads) held(b *kernel.Builder) (t fragmentTurns) {
	for i, w := range l {
		t[i] = w.held(b)
	}
	return t
}

// turn returns what is held and has next held.
func (t fragmentTurns) turn(next fragmentLoads) (l fragmentLoads) {
	for i, held := range t {
		l[i] = held.gets()
		held.sets(next[i])
	}
	return l
}
