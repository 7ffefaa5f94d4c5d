package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// dealtWords are what a lane has loaded: by item and row.
type dealtWords [][2][]kernel.Value

// take returns what one returns for every item.
func take(items [][2]dealtItem, one func(item dealtItem) []kernel.Value) dealtWords {
	w := make(dealtWords, len(items))
	for i, pair := range items {
		for h, item := range pair {
			w[i][h] = one(item)
		}
	}
	return w
}

// heads returns what head loads of all items.
func heads(items [][2]dealtItem, block kernel.Value) dealtWords {
	return take(items, func(item dealtItem) []kernel.Value {
		if item.head == nil {
			return nil
		}
		return item.head(block)
	})
}

// words returns what load loads of all items.
func words(items [][2]dealtItem, block kernel.Value, p int) dealtWords {
	return take(items, func(item dealtItem) []kernel.Value { return item.load(block, p) })
}

// scales returns what the octets of step p have in common, given heads.
func (w dealtWords) scales(items [][2]dealtItem, p int) dealtWords {
	list := make(dealtWords, len(w))
	for i, pair := range items {
		for h, item := range pair {
			if item.scales != nil {
				list[i][h] = item.scales(w[i][h], p)
			}
		}
	}
	return list
}

// dealtHeld are variables for such words.
type dealtHeld [][2][]*kernel.Var

func (w dealtWords) held(b *kernel.Builder) dealtHeld {
	list := make(dealtHeld, len(w))
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
func (held dealtHeld) gets() dealtWords {
	w := make(dealtWords, len(held))
	for i := range held {
		for h, vars := range held[i] {
			w[i][h] = gets(vars)
		}
	}
	return w
}

// sets has other words held.
func (held dealtHeld) sets(next dealtWords) {
	for i := range held {
		for h, vars := range held[i] {
			sets(vars, next[i][h])
		}
	}
}

// dealtLoads are a block's head, and words by step.
type dealtLoads struct {
	head  dealtWords
	steps [dealtSteps]dealtWords
}

// load loads all of a block.
func load(items [][2]dealtItem, block kernel.Value) (l dealtLoads) {
	for p := range l.steps {
		l.steps[p] = words(items, block, p)
	}
	l.head = heads(items, block)
	return l
}

// dealtTurns are variables for them.
type dealtTurns struct {
	head  dealtHeld
	steps [dealtSteps]dealtHeld
}

func (l dealtLoads) held(b *kernel.Builder) (t dealtTurns) {
	for p, w := range l.steps {
		t.steps[p] = w.held(b)
	}
	t.head = l.head.held(b)
	return t
}

// turn returns what is held and has next held.
func (t dealtTurns) turn(next dealtLoads) (l dealtLoads) {
	for p, held := range t.steps {
		l.steps[p] = held.gets()
		held.sets(next.steps[p])
	}
	l.head = t.head.gets()
	t.head.sets(next.head)
	return l
}
