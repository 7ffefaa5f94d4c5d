package rowwise

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// postNorm is what follows a norm of whole rows in a group [rmsnorm] add [scale]: the residual
// and a factor.
type postNorm struct {
	add    *ir.Value
	factor float32
	by     *ir.Value // that the factor is multiplied by; or nil
	scales bool
	result *ir.Value // nil where the group is none
}

func matchPostNorm(s *site.Site) postNorm {
	ops := s.Group.Ops
	if len(ops) < 2 || len(ops) > 3 || ops[0].Kind.Name != "rmsnorm" || ops[1].Kind.Name != "add" {
		return postNorm{}
	}
	norm, add := ops[0].Result, ops[1]
	if !slices.Contains(add.Args, norm) || add.Args[0] == add.Args[1] {
		return postNorm{}
	}
	p := postNorm{add: add.Args[0], result: add.Result}
	if p.add == norm {
		p.add = add.Args[1]
	}
	if len(ops) == 3 {
		op := ops[2]
		if op.Kind.Name != "scale" || op.Args[0] != add.Result {
			return postNorm{}
		}
		p.scales, p.factor, p.result = true, float32(op.Attrs.Float("factor")), op.Result
		if len(op.Args) > 1 {
			p.by = op.Args[1]
		}
	}
	if len(s.Outputs) != 1 || s.Outputs[0] != p.result {
		return postNorm{}
	}
	return p
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
	add, by *kernel.Buffer
}

func (p postNorm) declare(s *site.Signature) postNormArgs {
	a := postNormArgs{postNorm: p}
	if p.add != nil {
		a.add = s.Read("add", p.add)
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
