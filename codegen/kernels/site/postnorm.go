package site

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// PostNorm is a norm of whole rows and what follows it
//
//	rmsnorm add [rmsnorm add] [scale]
//
// the residual, maybe the same of the sum, and a factor.
type PostNorm struct {
	Norm   *ir.Op
	Add    *ir.Value
	Again  *ir.Op    // the norm of the sum, with a weight, or nil
	Add2   *ir.Value // what is added to that
	Factor float32
	By     *ir.Value // that the factor is multiplied by; or nil
	Scales bool
	Result *ir.Value
	Ops    []*ir.Op // all of them
}

// PostNormOf returns the longest PostNorm that ops begin with, nil if there is none.
func PostNormOf(ops []*ir.Op) *PostNorm {
	other := addTo(ops)
	if other == nil {
		return nil
	}
	p := &PostNorm{Norm: ops[0], Add: other, Result: ops[1].Result}
	n := 2
	if other = addTo(ops[n:]); other != nil && ops[n].Args[0] == p.Result {
		norm, whole := ops[n], int(p.Result.Type.Last())
		ofRows := p.Norm.Attrs.Int("group") == whole && norm.Attrs.Int("group") == whole
		weighted := len(norm.Args) == 2 && norm.Args[1].Type.DType == ir.F32 && int(norm.Args[1].Type.Last()) == whole
		if !ofRows || !weighted || other == p.Result || other == p.Norm.Result {
			return nil
		}
		p.Again, p.Add2, p.Result = norm, other, ops[n+1].Result
		n += 2
	}
	if n < len(ops) && ops[n].Kind.Name == "scale" && ops[n].Args[0] == p.Result {
		p.Scales, p.Factor, p.Result = true, float32(ops[n].Attrs.Float("factor")), ops[n].Result
		if len(ops[n].Args) > 1 {
			p.By = ops[n].Args[1]
		}
		n++
	}
	p.Ops = ops[:n:n]
	return p
}

// addTo returns what is added to a norm by ops that begin with both, nil if they do not.
func addTo(ops []*ir.Op) *ir.Value {
	if len(ops) < 2 || ops[0].Kind.Name != "rmsnorm" || ops[1].Kind.Name != "add" {
		return nil
	}
	switch norm, add := ops[0].Result, ops[1]; {
	case add.Args[0] == add.Args[1]:
	case add.Args[0] == norm:
		return add.Args[1]
	case add.Args[1] == norm:
		return add.Args[0]
	}
	return nil
}

// Key tells the kernels of its forms apart.
func (p *PostNorm) Key() string {
	key := ""
	if len(p.Norm.Args) == 1 {
		key = " unit"
	}
	key += "+add"
	if p.Again != nil {
		key += "+norm+add"
	}
	if p.Scales {
		key += fmt.Sprint("*", p.Factor)
	}
	if p.By != nil {
		key += "*by"
	}
	return key
}

// LoadFactor returns the factor, where by is the buffer of By if there is one; no value if the result is not scaled.
func (p *PostNorm) LoadFactor(b *kernel.Builder, by *kernel.Buffer) kernel.Value {
	if !p.Scales {
		return kernel.Value{}
	}
	factor := b.F32(p.Factor)
	if by != nil {
		factor = b.Mul(by.Load(kernel.F32, 0), factor)
	}
	return factor
}

// Finish multiplies v, of that many elements, by what LoadFactor returned.
func (p *PostNorm) Finish(b *kernel.Builder, v, factor kernel.Value, elements int) kernel.Value {
	if !p.Scales {
		return v
	}
	if elements > 1 {
		factor = b.Splat(factor, elements)
	}
	return b.Mul(v, factor)
}
