package cpu

import "github.com/zincc-dev/zincc/plans"

// OnNodes makes a computer have these nodes.
func (o *Options) OnNodes(n ...[]int) { o.nodes = n }

// ReaderOf returns which of some threads reads a byte of a weight.
func ReaderOf(p *plans.Plan, threads int, weight string, at int64) int {
	r := readersOf(p, threads)
	return r.thread(weight, at)
}

// ChunkOf is how many workgroups of a dispatch a thread takes at a time.
func ChunkOf(p *plans.Plan, d *plans.Dispatch, threads int) uint64 {
	return chunkOf(p, d.Pipeline, &d.Cost, uint64(d.Grid[0]), threads)
}

// MaxCode bounds the code of a plan.
const MaxCode = maxCode

// Link makes a plan's code executable, and frees it.
func Link(p *plans.Plan) error {
	c, err := newCode(p)
	if err == nil {
		c.mapped.Free()
	}
	return err
}
