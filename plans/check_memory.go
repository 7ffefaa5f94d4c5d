package plans

import (
	"cmp"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// arenaAlign is how far the arena's size may be rounded up.
const arenaAlign = 256

// MemoryBytes is the device memory of the plan: weights, tables, caches, step
// block, arena and io. It is what Requirements.Memory states.
func (p *Plan) MemoryBytes() int64 {
	sum := p.Memory.Arena + p.WeightBytes()
	for _, s := range p.Memory.spaces() {
		sum += SumBytes(s.regions)
	}
	return sum
}

// WeightBytes is the size of all weights on the device.
func (p *Plan) WeightBytes() int64 {
	sum := int64(0)
	for _, w := range p.Weights {
		sum += w.Bytes
	}
	return sum
}

// SumBytes is the total size of regions.
func SumBytes(regions []Region) int64 {
	sum := int64(0)
	for _, r := range regions {
		sum += r.Bytes
	}
	return sum
}

func checkMemory(c *checker) {
	p := c.plan
	if sum := p.MemoryBytes(); sum != p.Require.Memory {
		c.add("memory", "", "", "regions add up to %d bytes, plan requires %d", sum, p.Require.Memory)
	}
	regions := p.regions()
	weights := map[string]*Weight{}
	for i := range p.Weights {
		weights[p.Weights[i].Name] = &p.Weights[i]
	}
	for _, g := range p.Program.Globals {
		if g.Class == ir.Weight {
			checkWeight(c, g, weights[g.Name])
			delete(weights, g.Name)
			continue
		}
		checkRegion(c, regions, "", g, p.Header.MaxRows)
	}
	for _, w := range p.Weights {
		if weights[w.Name] != nil {
			c.add("memory", "", w.Name, "weight is not of the program")
		}
	}
	extent := int64(0)
	for _, f := range p.Program.Funcs {
		for _, v := range materialized(f) {
			if v.Class == ir.IO {
				checkRegion(c, regions, f.Name, v, f.Rows)
			} else if v.Offset >= 0 {
				extent = max(extent, v.Offset+size(c, v, f.Rows))
			}
		}
	}
	if p.Memory.Arena < extent || p.Memory.Arena-extent >= arenaAlign {
		c.add("memory", "", "", "arena has %d bytes, its values end at %d", p.Memory.Arena, extent)
	}
}

func checkWeight(c *checker, g *ir.Value, w *Weight) {
	if w == nil {
		c.add("memory", "", g.Name, "weight of the program is not in the plan")
		return
	}
	t := ir.Type{DType: w.DType}
	for _, n := range w.Shape {
		t.Shape = append(t.Shape, ir.Dim(n))
	}
	if !t.Equal(g.Type) {
		c.add("memory", "", g.Name, "weight is %s, program has %s", t, g.Type)
	}
	if w.Layout != g.Layout {
		c.add("memory", "", g.Name, "weight has layout %q, program has %q", w.Layout, g.Layout)
	}
}

// checkRegion holds the region of v, a global or an io value, against its type.
func checkRegion(c *checker, regions map[regionKey]int64, entry string, v *ir.Value, rows int) {
	space, region, _ := place(entry, v)
	have, ok := regions[regionKey{space, region}]
	if want := size(c, v, rows); !ok || have < want {
		c.add("memory", entry, region, "%s region has %d bytes, %s takes %d", space, have, v.Type, want)
	}
}

// size is the size of v in bytes; ir.Verify has seen that it fits.
func size(c *checker, v *ir.Value, rows int) int64 {
	n, err := v.Type.Bytes(rows, c.plan.Program.Ctx)
	if err != nil {
		return maxRegion
	}
	return min(n, maxRegion)
}

// materialized lists the values of f that lie in memory: what a group hands to
// another or to the host, and its scratch. Others live in registers of their group's
// kernel.
func materialized(f *ir.Func) []*ir.Value {
	uses := f.Uses()
	var all []*ir.Value
	for _, g := range f.Groups {
		all = append(append(all, g.Outputs(uses)...), g.Scratch(uses)...)
	}
	return all
}

// life is a value's bytes in the arena and the stages from its first write to its
// last read. Stages, not groups: within a stage the order is open.
type life struct {
	v           *ir.Value
	lo, hi      int64
	first, last int
}

func lives(c *checker, f *ir.Func) []life {
	index := map[*ir.Value]int{}
	var all []life
	uses := f.Uses()
	for _, g := range f.Groups {
		for _, v := range g.Inputs() {
			if i, ok := index[v]; ok {
				all[i].last = max(all[i].last, g.Stage)
			}
		}
		for _, v := range append(g.Outputs(uses), g.Scratch(uses)...) {
			if v.Class != ir.Arena {
				continue
			}
			if v.Offset < 0 || v.Offset%16 != 0 || v.Offset > maxRegion {
				c.add("aliasing", f.Name, v.String(), "offset %d, want a multiple of 16", v.Offset)
				continue
			}
			index[v] = len(all)
			all = append(all, life{v, v.Offset, v.Offset + size(c, v, f.Rows), g.Waits, g.Stage})
		}
	}
	return all
}

func checkAliasing(c *checker) {
	for _, f := range c.plan.Program.Funcs {
		all := lives(c, f)
		slices.SortStableFunc(all, func(a, b life) int { return cmp.Compare(a.lo, b.lo) })
		for i, a := range all {
			for _, b := range all[i+1:] {
				if b.lo >= a.hi {
					break
				}
				if a.first <= b.last && b.first <= a.last {
					c.add("aliasing", f.Name, b.v.String(), "bytes [%d, %d) in stages %d to %d overlap %s, [%d, %d) in stages %d to %d",
						b.lo, b.hi, b.first, b.last, a.v, a.lo, a.hi, a.first, a.last)
				}
			}
		}
	}
}
