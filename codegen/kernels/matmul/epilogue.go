package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// epilogue is an op that computes each element from that of a product, and how kernels take it in.
type epilogue struct {
	dense bool // only behind products that are no expert's
	// key is the product with the op behind it, for the name of a kernel.
	key func(op *ir.Op, product string) string
	// declare declares what the op of projection i takes besides; nil: nothing.
	declare func(s *site.Signature, op *ir.Op, i int) epilogueArgs
	apply   func(b *kernel.Builder, y kernel.Value, a epilogueArgs) kernel.Value
}

// epilogueArgs are a factor, and what it is multiplied by, or nil.
type epilogueArgs struct {
	factor kernel.Value
	by     *kernel.Buffer
}

// epilogues has the ops by name. Projections of exact rows take them in, before residuals: pass FuseEpilogue asks here
// which.
var epilogues = map[string]epilogue{
	"relu2": {
		key:   func(_ *ir.Op, product string) string { return "relu2(" + product + ")" },
		apply: func(b *kernel.Builder, y kernel.Value, _ epilogueArgs) kernel.Value { return lane.Relu2(b, y) },
	},
	"scale": {
		dense: true,
		key: func(op *ir.Op, product string) string {
			if len(op.Args) > 1 {
				product += "*scale*by"
			} else {
				product += "*scale"
			}
			return product
		},
		declare: func(s *site.Signature, op *ir.Op, i int) (a epilogueArgs) {
			a.factor = s.F32(matrixName("factor", i, 0), op.Attrs.Float("factor"), 1, "of the result")
			if len(op.Args) > 1 {
				a.by = s.Read(matrixName("by", i, 0), op.Args[1])
			}
			return a
		},
		apply: func(b *kernel.Builder, y kernel.Value, a epilogueArgs) kernel.Value {
			factor := a.factor
			if a.by != nil {
				factor = b.Mul(a.by.Load(kernel.F32, 0), factor)
			}
			return b.Mul(y, factor)
		},
	},
}

// Finishes reports whether projections of exact rows take in op behind them.
func Finishes(op *ir.Op) bool { _, is := epilogues[op.Kind.Name]; return is }

// epilogue takes in one of these ops.
func (m *match) epilogue(op *ir.Op) bool {
	p := m.making(op.Args[0])
	if p == nil || !p.plain() || p.slots > 0 && epilogues[op.Kind.Name].dense || !m.ofExact(op.Result) {
		return false
	}
	p.after, p.result = op, op.Result
	return true
}

// sameEpilogue reports whether both have none, or one without arguments of its own.
func (p *projection) sameEpilogue(o *projection) bool {
	if p.after == nil || o.after == nil {
		return p.after == o.after
	}
	return p.after.Kind == o.after.Kind && epilogues[p.after.Kind.Name].declare == nil
}
