package passes

import "github.com/zincc-dev/zincc/ir"

// makeRings limits caches that only rows with a window read to ir.RingPositions positions.
func makeRings(p *ir.Program) error {
	rows := p.MaxRows()
	for c, w := range p.Windows() {
		if n := ir.RingPositions(w, rows, p.Ctx); n < p.Ctx && c.Class == ir.KV {
			c.Type.Shape = append([]ir.Dim(nil), c.Type.Shape...)
			c.Type.Shape[1] = ir.Dim(n)
		}
	}
	return nil
}
