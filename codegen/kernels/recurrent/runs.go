package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// stepRun is the rows of a sequence in a step with parts, of which one workgroup, or each of a few, goes through all.
type stepRun struct{ first, end, slot kernel.Value }

// partsOf is how many parts a step has; 1 if all rows are of one sequence. Each may have a run of its own, so kernels
// have as many workgroups for each head.
func partsOf(rows site.Extent) int {
	if rows.Part == 0 {
		return 1
	}
	return rows.Max / rows.Part
}

// tileOf is how many rows a workgroup writes, as covers say it: with parts the step tells.
func tileOf(rows site.Extent) int {
	if rows.Part == 0 {
		return rows.Max
	}
	return 0
}

// runOf finds the run that begins with a part of a step of n rows, and ends the workgroup if none does.
func runOf(b *kernel.Builder, rows site.Extent, wave int, n, part kernel.Value, pos, slots *kernel.Buffer) stepRun {
	first, last := b.Mul(part, rows.Part), b.Sub(n, 1)
	in := b.Min(first, last)
	slot := slots.Load(kernel.U32, in)
	before := slots.Load(kernel.U32, b.Sub(b.Max(in, 1), 1))
	goesOn := b.And(b.Gt(part, 0), b.Eq(before, slot))
	b.ReturnIf(b.Or(b.Ge(first, n), goesOn, rows.Dead(b, slot)))
	return findRun(b, rows, wave, n, first, pos, slots)
}

// findRun finds the run that begins with a row of a step of n rows. The lanes of a subgroup, wave of them, look at a
// part each: a sequence has as many neighbours as have its slot. The position of the last row tells how many rows its
// last part has, since dead rows have that of the row before.
func findRun(b *kernel.Builder, rows site.Extent, wave int, n, first kernel.Value, pos, slots *kernel.Buffer) stepRun {
	r := stepRun{first: first, slot: slots.Load(kernel.U32, first)}
	count := b.U32(0)
	for from := 0; from < partsOf(rows); from += wave {
		at := b.Mul(b.Add(b.SubgroupLane(), from), rows.Part)
		mine := b.And(b.Lt(at, n), b.Eq(slots.Load(kernel.U32, b.Min(at, b.Sub(n, 1))), r.slot))
		count = b.Add(count, b.SubgroupAdd(b.Select(mine, b.U32(1), b.U32(0))))
	}
	behind := b.Min(b.Add(r.first, b.Mul(count, rows.Part)), n)
	at := func(row kernel.Value) kernel.Value { return pos.Load(kernel.U32, row) }
	r.end = b.Add(r.first, b.Sub(at(b.Sub(behind, 1)), at(r.first)), 1)
	return r
}

// runsKey is the part of a module key of kernels that find runs, of subgroups of wave lanes.
func runsKey(rows site.Extent, wave int) string {
	key := rows.PartKey()
	for from := wave; from < partsOf(rows); from += wave {
		key += "+"
	}
	return key
}
