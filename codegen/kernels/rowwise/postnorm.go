package rowwise

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// postNorm is what follows a norm of whole rows in a group
//
//	rmsnorm add [rmsnorm add] [scale]
//
// the residual, maybe the same of the sum, and a factor.
type postNorm struct {
	add    *ir.Value
	again  *ir.Op    // the norm of the sum, with a weight, or nil
	add2   *ir.Value // what is added to that
	factor float32
	by     *ir.Value // that the factor is multiplied by; or nil
	scales bool
	result *ir.Value // nil where the group is none
}

func matchPostNorm(s *site.Site) postNorm {
	ops := s.Group.Ops
	other := addTo(ops)
	if other == nil {
		return postNorm{}
	}
	p := postNorm{add: other, result: ops[1].Result}
	ops = ops[2:]
	if other = addTo(ops); other != nil {
		norm, whole := ops[0], int(p.result.Type.Last())
		ofRows := s.Group.Ops[0].Attrs.Int("group") == whole && norm.Attrs.Int("group") == whole
		weighted := len(norm.Args) == 2 && norm.Args[1].Type.DType == ir.F32 && int(norm.Args[1].Type.Last()) == whole
		if norm.Args[0] != p.result || slices.Contains(s.Group.Ops, other.Def) || !ofRows || !weighted || s.Target.FewKernels {
			return postNorm{}
		}
		p.again, p.add2, p.result = norm, other, ops[1].Result
		ops = ops[2:]
	}
	if len(ops) == 1 && ops[0].Kind.Name == "scale" && ops[0].Args[0] == p.result {
		p.scales, p.factor, p.result = true, float32(ops[0].Attrs.Float("factor")), ops[0].Result
		if len(ops[0].Args) > 1 {
			p.by = ops[0].Args[1]
		}
		ops = nil
	}
	if len(ops) > 0 || len(s.Outputs) != 1 || s.Outputs[0] != p.result {
		return postNorm{}
	}
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

// key tells the norm's kernels apart; unit says that it has no weight.
func (p postNorm) key(unit bool) string {
	key := ""
	if unit {
		key = " unit"
	}
	if p.result != nil {
		key += "+add"
	}
	if p.again != nil {
		key += "+norm+add"
	}
	if p.scales {
		key += fmt.Sprint("*", p.factor)
	}
	if p.by != nil {
		key += "*by"
	}
	return key
}

// postNormArgs is a postNorm in a kernel.
type postNormArgs struct {
	postNorm
	add, by     *kernel.Buffer
	gain2, add2 *kernel.Buffer
	eps2        kernel.Value
}

func (p postNorm) declare(s *site.Signature) postNormArgs {
	a := postNormArgs{postNorm: p}
	if p.add != nil {
		a.add = s.Read("add", p.add)
	}
	if p.again != nil {
		a.gain2, a.add2 = s.Read("gain2", p.again.Args[1]), s.Read("add2", p.add2)
		a.eps2 = s.F32("eps2", p.again.Attrs.Float("eps"), 1e-6, "added to the mean square of the sum")
	}
	if p.by != nil {
		a.by = s.Read("by", p.by)
	}
	return a
}

// finish multiplies v, of that many elements, by the factors.
func (p postNormArgs) finish(b *kernel.Builder, v kernel.Value, elements int) kernel.Value {
	if !p.scales {
		return v
	}
	factor := b.F32(p.factor)
	if p.by != nil {
		factor = b.Mul(p.by.Load(kernel.F32, 0), factor)
	}
	return b.Mul(v, lane.Splat(b, factor, elements))
}
