package cpu

import (
	"runtime"
	"sync"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
)

// The system puts a page into the memory of the node whose processor writes to it first. So where there are several
// nodes, the pages of weights are touched before they are filled: by a thread on the node whose threads will read them.

// touchUnit is what pages are touched by: those of the smallest size.
const touchUnit = 4 << 10

// readers says of each weight which thread reads it while a token is generated.
type readers struct {
	threads int
	uses    map[string]use
}

// use is how the workgroups of a dispatch that reads a weight are shared out.
type use struct {
	bytes             int64
	workgroups, chunk uint64
}

// readersOf finds the dispatches of the entry for one row that read a whole weight: each workgroup its share, in their
// order. One of which parts are read that are found out only then, as of experts and embeddings, belongs to all threads
// in turn.
func readersOf(p *plans.Plan, threads int) readers {
	r := readers{threads, map[string]use{}}
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Kind != "decode" || e.Rows != 1 {
			continue
		}
		for j := range e.Dispatches {
			d := &e.Dispatches[j]
			for _, a := range d.Args {
				if a.Space != "weight" || d.Grid[1] > 1 || d.Grid[2] > 1 || a.Offset != 0 || d.Cost.ReadBytes < a.Bytes {
					continue
				}
				n := uint64(d.Grid[0])
				r.uses[a.Region] = use{a.Bytes, n, chunkOf(p, d.Pipeline, &d.Cost, n, threads)}
			}
		}
	}
	return r
}

// thread returns which reads the byte of a weight that lies at a place.
func (r readers) thread(weight string, at int64) int {
	u, known := r.uses[weight]
	if !known || at >= u.bytes {
		return int(at / hugePage % int64(r.threads))
	}
	workgroup := uint64(at) / max(1, uint64(u.bytes)/u.workgroups)
	return int(min(workgroup, u.workgroups-1) / u.chunk % uint64(r.threads))
}

// hugePage is what parts that have no owner change hands by.
const hugePage = 2 << 20

// touch writes to every page of the weights on the node where it is read.
func touch(p *plans.Plan, weights []driver.Memory, threads int, n nodes) {
	r, where := readersOf(p, threads), n.of(threads)
	var all sync.WaitGroup
	for node, processors := range n {
		all.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine, as nobody else shall be pinned
			pin(processors)
			for i, w := range p.Weights {
				region := weights[i].Bytes()
				for at := 0; at < len(region); at += touchUnit {
					if where[r.thread(w.Name, int64(at))] == node {
						region[at] = 0
					}
				}
			}
		})
	}
	all.Wait()
}
