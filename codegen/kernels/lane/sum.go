package lane

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Partial is a sum over a run; it begins with its first term.
type Partial struct {
	Sum  kernel.Value
	some bool
}

func (p *Partial) Add(b *kernel.Builder, x kernel.Value) {
	if p.some {
		x = b.Add(p.Sum, x)
	}
	*p = Partial{x, true}
}

func (p *Partial) Product(b *kernel.Builder, q, x kernel.Value) {
	if p.some {
		*p = Partial{b.FMA(q, x, p.Sum), true}
	} else {
		*p = Partial{b.Mul(q, x), true}
	}
}
