package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// strip is elements of the rows of a value, from one on.
type strip struct {
	from          *ir.Value
	stride, first int
}

// stripArgs are those of a strip.
type stripArgs struct {
	from          *kernel.Buffer
	stride, first kernel.Value
}

func (p *strip) declare(s *site.Signature, i int) *stripArgs {
	return &stripArgs{
		from:   s.Read(matrixName("strip", i, 0), p.from),
		stride: s.U32(matrixName("stride", i, 0), p.stride, 4096, "elements of a row of strip"),
		first:  s.U32(matrixName("begin", i, 0), p.first, 0, "first element of strip that counts"),
	}
}

func (a *stripArgs) load(b *kernel.Builder, row, col kernel.Value) kernel.Value {
	return a.from.Load(kernel.F32, b.Add(b.Mul(row, a.stride), b.Add(a.first, col)))
}

// slice takes one of rows that are not x.
func (m *match) slice(op *ir.Op) bool {
	if op.Args[0] == m.x || m.making(op.Args[0]) != nil || op.Args[0].Type.DType != ir.F32 {
		return false
	}
	m.cuts = append(m.cuts, op)
	return true
}

// gateRows multiplies the activation of a projection by rows, which may be a slice.
func (m *match) gateRows(p *projection, op *ir.Op) bool {
	up := op.Args[1]
	if !p.plain() || p.slots > 0 || up == m.x || up.Type.DType != ir.F32 || !m.ofExact(op.Result) {
		return false
	}
	by := &strip{from: up, stride: int(up.Type.Last())}
	if i := slices.IndexFunc(m.cuts, func(c *ir.Op) bool { return c.Result == up }); i >= 0 {
		cut := m.cuts[i]
		by = &strip{cut.Args[0], int(cut.Args[0].Type.Last()), cut.Attrs.Int("first")}
		m.cuts = slices.Delete(m.cuts, i, i+1)
	}
	p.act, p.strip, p.result = op.Attrs.Str("act"), by, op.Result
	return true
}

// loads is how many values loadResiduals returns where there is no convolution.
func (p *projection) loads() int {
	if p.strip != nil {
		return 1 + len(p.residuals)
	}
	return len(p.residuals)
}
