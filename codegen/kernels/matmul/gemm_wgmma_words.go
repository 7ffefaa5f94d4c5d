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
// so nobody waits for others. With registers for it, what has come is taken early, while the iteration before is
// multiplied.
type groupedWords struct {
	*fragmentRun
	rows        []kernel.Value // of weights, one for each 8 outputs of the subgroup
	items       [][2]weight.FragmentItem
	head, words fragmentHeld // of the block, of the iteration; with copies what is taken early: scales and words
}

// newGroupedWords finds the rows of weights.
func newGroupedWords(t *fragmentRun) *groupedWords {
	w := &groupedWords{fragmentRun: t}
	for n := 0; n < t.outputs; n += fragment.Side / 2 {
		w.rows = append(w.rows, t.weightRow(t.col, n))
	}
	w.items = t.open(t.d, w.row)
	return w
}

func (w *groupedWords) row(n int) kernel.Value { return w.rows[n/(fragment.Side/2)] }

// eager reports whether what copies have brought is taken early.
func (k gemmFragment) eager() bool { return k.ahead && k.halves() > 1 }

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
	return k.pipe.grouped && 0 < bytes && bytes <= mostCopied && 16*k.shared()+bytes+slots <= s.Target.SharedOptIn &&
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
func (w *groupedWords) through(one func(buf *kernel.Buffer, typ kernel.Type, i kernel.Operand, a *kernel.Array, at kernel.Value) kernel.Value) [][2]weight.FragmentItem {
	d, count := *w.d, [2]int{}
	d.Fetch = func(buf *kernel.Buffer, typ kernel.Type, i kernel.Operand) kernel.Value {
		a, n := w.copied.vectors, &count[0]
		if typ == kernel.U32 {
			a, n = w.copied.words, &count[1]
		}
		*n++
		return one(buf, typ, i, a, w.b.Add(w.b.LocalID(), (*n-1)*w.threads()))
	}
	return w.open(&d, w.row)
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
	switch {
	case w.eager():
		w.copy(first, 0)
		head, words := w.arrived(first, 0)
		w.head, w.words = head.scales(w.items, 0).held(w.b), words.held(w.b)
		w.copy(first, 1)
	case w.ahead:
		w.copy(first, 0)
	default:
		w.head, w.words = heads(w.items, first).held(w.b), words(w.items, first, 0).held(w.b)
	}
}

// take returns scales and words of iteration p of a block, and begins to copy those of the next one.
func (w *groupedWords) take(at fragmentAt, p int) (scales, loaded fragmentWords) {
	switch {
	case w.eager():
		return w.head.gets(), w.words.gets()
	case w.ahead:
		head, loaded := w.arrived(at.block, p)
		w.copy(at.after(p))
		return head.scales(w.items, p), loaded
	}
	return w.head.gets().scales(w.items, p), w.words.gets()
}

// follow is called behind octet o of iteration p of a block, and loads what the iteration behind it needs, when
// registers are free.
func (w *groupedWords) follow(at fragmentAt, p, o int) {
	block, next := at.after(p)
	switch {
	case w.eager() && o == earlyOctet:
		head, words := w.arrived(block, next)
		w.head.sets(head.scales(w.items, next))
		w.words.sets(words)
		w.copy(at.next, p)
	case !w.ahead && o == 3:
		w.head.sets(heads(w.items, block)) // of the same block, too: registers need not keep it
		w.words.sets(words(w.items, block, next))
	}
}

// earlyOctet is the octet behind which what has come is taken early.
const earlyOctet = 2
