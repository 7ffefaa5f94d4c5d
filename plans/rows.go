package plans

import (
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// Rows lists what positions [from, to) of a sequence take in the caches that have a row for each position.
func (p *Plan) Rows(sequence, from, to int) []Span {
	return p.cacheRows(ir.KeepPositions, sequence, func(*Kept) (int, int) { return from, to })
}

// Rings lists what a sequence takes in the caches that are rings.
func (p *Plan) Rings(sequence int) []Span {
	return p.cacheRows(ir.KeepRing, sequence, func(k *Kept) (int, int) { return 0, k.Rows })
}

func (p *Plan) cacheRows(kind ir.Keep, sequence int, rows func(k *Kept) (from, to int)) []Span {
	var spans []Span
	for _, r := range p.Memory.KV {
		if r.Kept.Kind != kind.String() {
			continue
		}
		t := p.Program.Global(r.Name).Type
		if p.IsHost() { // it holds elements as float32, whatever their type
			t = ir.MakeType(ir.F32, t.Shape...)
		}
		from, to := rows(r.Kept)
		for _, part := range layout.CacheRows(t, r.Kept.Rows, sequence, from, to) {
			spans = append(spans, Span{r.Name, part.Offset, part.Bytes})
		}
	}
	return spans
}
