package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// groupedWords brings the words of weights of gemm_wgmma. They are loaded when those before are used up; or copies put
// them into shared memory an iteration ahead, for which registers have no room. Each lane has places of its own there,
// so nobody waits for others.
type groupedWords struct {
	*fragmentRun
	items       [][2]weight.FragmentItem
	head, words fragmentHeld // of the block, of the iteration; nil where there are copies
}

// copiedWords are what lanes copy: vec4 and words by load and lane.
type copiedWords struct{ vectors, words *kernel.Array }

// copies is the vec4 and words that a lane copies for an iteration and its head; zero if a format is not copied.
func (k gemmFragment) copies() (most [2]int) {
	for _, p := range k.projects {
		n := p.matrices[0].format.Fragment.Ahead
		if n == [2]int{} {
			return n
		}
		for i := range most {
			most[i] = max(most[i], n[i]*2*k.outputs/fragment.Side)
		}
	}
	return most
}

// mostCopied bounds the bytes that a workgroup copies at a time. With more, which is q6_k by 16 subgroups, nothing was
// gained.
const mostCopied = 48 << 10

// copiesAhead reports whether words are copied ahead: in gemm_wgmma, where shared memory has room for them beside x and
// nobody else wants it.
func (k gemmFragment) copiesAhead(s *site.Site) bool {
	const slots = 1 << 10 // bytes of arrivals and the like, at most
	n := k.copies()
	bytes := k.threads() * (16*n[0] + 4*n[1])
	return k.pipe.buffers > 0 && 0 < bytes && bytes <= mostCopied && 16*k.shared()+bytes+slots <= s.Target.SharedOptIn &&
		!GatesRule(s.Func.Uses(), k.projects[0].result.Def)
}

func (k gemmFragment) declareCopies(b *kernel.Builder) (c copiedWords) {
	if n := k.copies(); k.ahead {
		c.vectors = b.Shared(lane.U32x4, n[0]*k.threads())
		if n[1] > 0 {
			c.words = b.Shared(kernel.U32, n[1]*k.threads())
		}
	}
	return c
}

// through returns the items whose loads go through what is called with the lane's place of each, in their order.
func (t *fragmentRun) through(one func(buf *kernel.Buffer, typ kernel.Type, i kernel.Operand, a *kernel.Array, at kernel.Value) kernel.Value) [][2]weight.FragmentItem {
	d, count := *t.d, [2]int{}
	d.Fetch = func(buf *kernel.Buffer, typ kernel.Type, i kernel.Operand) kernel.Value {
		a, n := t.copied.vectors, &count[0]
		if typ == kernel.U32 {
			a, n = t.copied.words, &count[1]
		}
		*n++
		return one(buf, typ, i, a, t.b.Add(t.b.LocalID(), (*n-1)*t.threads()))
	}
	return t.itemsBy(t.col, &d)
}

// copy begins to copy the words of iteration p of a block, and its head before the first.
func (w *groupedWords) copy(block kernel.Value, p int) {
	b := w.b
	items := w.through(func(buf *kernel.Buffer, typ kernel.Type, i kernel.Operand, a *kernel.Array, at kernel.Value) kernel.Value {
		buf.Copy(typ, a, at, i)
		if typ == kernel.U32 {
			return b.U32(0)
		}
		return b.Splat(b.U32(0), typ.Lanes())
	})
	words(items, block, p)
	if p == 0 {
		heads(items, block)
	}
	b.CopyGroup()
}

// arrived waits for the copies of iteration p of a block, and returns what has come.
func (w *groupedWords) arrived(block kernel.Value, p int) (head, loaded fragmentWords) {
	w.b.CopyWait(0)
	items := w.through(func(_ *kernel.Buffer, _ kernel.Type, _ kernel.Operand, a *kernel.Array, at kernel.Value) kernel.Value {
		return a.Load(at)
	})
	loaded = words(items, block, p)
	return heads(items, block), loaded
}

// start begins to bring what the first iteration needs.
func (w *groupedWords) start() {
	first := w.firstBlock()
	if w.ahead {
		w.copy(first, 0)
	} else {
		w.head, w.words = heads(w.items, first).held(w.b), words(w.items, first, 0).held(w.b)
	}
}

// take returns scales and words of iteration p of a block, and begins to copy those of the next one.
func (w *groupedWords) take(at fragmentAt, p int) (scales, loaded fragmentWords) {
	if !w.ahead {
		return w.head.gets().scales(w.items, p), w.words.gets()
	}
	head, loaded := w.arrived(at.block, p)
	w.copy(at.after(p))
	return head.scales(w.items, p), loaded
}

// follow loads what the iteration behind iteration p of a block needs, now that registers are free.
func (w *groupedWords) follow(at fragmentAt, p int) {
	if w.ahead {
		return
	}
	block, next := at.after(p)
	w.head.sets(heads(w.items, block)) // of the same block, too: registers need not keep it
	w.words.sets(words(w.items, block, next))
}
