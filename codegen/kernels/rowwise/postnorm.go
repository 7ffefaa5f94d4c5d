package rowwise

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/plans"
)

// matchPostNorm returns the post-norm that the site's group is, nil if it is none.
func matchPostNorm(s *site.Site) *site.PostNorm {
	p := site.PostNormOf(s.Group.Ops)
	if p == nil || len(p.Ops) < len(s.Group.Ops) || len(s.Outputs) != 1 || s.Outputs[0] != p.Result || p.Again != nil && s.Target.Backend == plans.CPU {
		return nil
	}
	return p
}

// postNormArgs is a post-norm in a kernel; it has none of them where there is none.
type postNormArgs struct {
	*site.PostNorm
	add, by     *kernel.Buffer
	gain2, add2 *kernel.Buffer
	eps2        kernel.Value
}

func declarePostNorm(s *site.Signature, p *site.PostNorm) postNormArgs {
	a := postNormArgs{PostNorm: p}
	if p == nil {
		return a
	}
	a.add = s.Read("add", p.Add)
	if p.Again != nil {
		a.gain2, a.add2 = s.Read("gain2", p.Again.Args[1]), s.Read("add2", p.Add2)
		a.eps2 = s.F32("eps2", p.Again.Attrs.Float("eps"), 1e-6, "added to the mean square of the sum")
	}
	if p.By != nil {
		a.by = s.Read("by", p.By)
	}
	return a
}
