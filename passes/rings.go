package passes

import "github.com/zincc-dev/zincc/ir"

// makeRings limits caches that only rows with a window read to ir.RingPositions positions.
func makeRings(p *ir.Program) error {
	rows := 0
	for _, f := range p.Funcs {
		rows = max(rows, f.Rows)
	}
	for c, r := range p.Regions() {
		if n := ir.RingPositions(r.Window, rows, p.Ctx); n < p.Ctx && c.Class == ir.KV && r.Keep == ir.KeepPositions {
			c.Type.Shape = append([]ir.Dim(nil), c.Type.Shape...)
			c.Type.Shape[1] = ir.Dim(n)
		}
	}
	return nil
}
