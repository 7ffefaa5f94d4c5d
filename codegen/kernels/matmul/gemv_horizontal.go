package matmul

import "github.com/zincc-dev/zincc/codegen/kernels/site"

// horizontalTakes is what GemvHorizontal can do.
const horizontalTakes = Exact | LastRow | Norm | Fixed12 | Several | Bias | GLU | GateRows | Epilogue | Residual

// GemvHorizontal are candidates of one row whose workgroups have exactly so many lanes, for workgroups of another
// kernel beside them: teams that share x.
func GemvHorizontal(s *site.Site, lanes int) (list []site.Candidate) {
	g, t := Match(s), s.Target
	if g == nil || !g.Has(Fixed12, horizontalTakes) || g.rows != 1 {
		return nil
	}
	k := gemv{linearGroup: g, wave: t.Wave, columns: 1, most: residentElements, brief: t.Brief, resident: true, aside: true}
	k.share(t)
	for _, n := range append([]int{k.subgroups}, k.otherSubgroups(t)...) {
		k.subgroups = n
		if lanes%(n*k.wave) != 0 || !k.fits(1) || k.sharedBytes()+4*sharedParts+k.tables() > t.Shared {
			continue
		}
		k.teams = lanes / (n * k.wave)
		for _, k.batch = range []int{2, 4, 1} { // rows at a time
			if k.batch*k.matrices() > gemvSums {
				continue
			}
			c := k.spread(t.Units, site.CeilDiv(k.tiles(1), k.batch), sharedParts/(k.parts()*k.batch))
			if c.tile*c.parts() > sharedParts {
				continue // so many teams have no room for their sums
			}
			c.finish(t)
			list = append(list, c.candidate())
		}
	}
	return list
}
