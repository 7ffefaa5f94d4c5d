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
		from:   s.Read(matrixName("beside", i, 0), p.from),
		stride: s.U32(matrixName("stride", i, 0), p.stride, 4096, "elements of a row of beside"),
		first:  s.U32(matrixName("begin", i, 0), p.first, 0, "first element of beside that counts"),
	}
}

func (a *stripArgs) load(b *kernel.Builder, row, col kernel.Value) kernel.Value {
	return a.from.Load(kernel.F32, b.Add(b.Mul(row, a.stride), b.Add(a.first, col)))
}

// cut adds a slice of rows that are not x.
func (g *linearGroup) cut(op *ir.Op) bool {
	if op.Args[0] == g.x || g.making(op.Args[0]) != nil || op.Args[0].Type.DType != ir.F32 {
		return false
	}
	g.cuts = append(g.cuts, op)
	return true
}

// gate multiplies the activation of a projection by rows, which may be a slice.
func (g *linearGroup) gate(s *site.Site, p *projection, op *ir.Op) bool {
	rows, ok := site.ExtentOf(s, op.Result)
	up := op.Args[1]
	by := &strip{from: up, stride: int(up.Type.Last())}
	if i := slices.IndexFunc(g.cuts, func(c *ir.Op) bool { return c.Result == up }); i >= 0 {
		cut := g.cuts[i]
		by = &strip{cut.Args[0], int(cut.Args[0].Type.Last()), cut.Attrs.Int("first")}
		g.cuts = slices.Delete(g.cuts, i, i+1)
	}
	if !p.plain() || p.slots > 0 || up == g.x || up.Type.DType != ir.F32 || !ok || !rows.Exact {
		return false
	}
	p.act, p.beside, p.result = op.Attrs.Str("act"), by, op.Result
	return true
}

// gatesRows reports whether the activation of a projection is multiplied by rows.
func (g *linearGroup) gatesRows() bool {
	return slices.ContainsFunc(g.projects, func(p *projection) bool { return p.beside != nil })
}

// loads is how many values loadResiduals returns where there is no convolution.
func (p *projection) loads() int {
	if p.beside != nil {
		return 1 + len(p.residuals)
	}
	return len(p.residuals)
}
