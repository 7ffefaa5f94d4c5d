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

// SquareOf returns the sum of the squares of four elements, one after the other.
func SquareOf(b *kernel.Builder, v kernel.Value) kernel.Value {
	var square Partial
	for e := range 4 {
		square.Product(b, b.Elem(v, e), b.Elem(v, e))
	}
	return square.Sum
}
