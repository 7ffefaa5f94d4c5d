package oracle

import (
	"sync"
	"sync/atomic"

	"github.com/zincc-dev/zincc/internal/mapped"
)

// minWork is the work, in multiply-adds, that is worth a goroutine.
const minWork = 1 << 15

// parallel calls work for ranges [lo, hi) that cover [0, n), on several workers;
// each item costs about cost multiply-adds. A worker takes one range at a time, so
// m.scratch[worker] is its own.
func (m *Machine) parallel(n, cost int, work func(worker, lo, hi int)) {
	grain := max(1, n/(8*m.threads), minWork/max(cost, 1))
	workers := min(m.threads, (n+grain-1)/grain)
	if workers <= 1 {
		work(0, 0, n)
		return
	}
	var next atomic.Int64
	run := func(worker int) {
		for {
			hi := int(next.Add(int64(grain)))
			if hi-grain >= n {
				return
			}
			work(worker, hi-grain, min(hi, n))
		}
	}
	var wg sync.WaitGroup
	failed := make([]error, workers) // to read weights
	for i := 1; i < workers; i++ {
		wg.Go(func() { failed[i] = mapped.Read(func() error { run(i); return nil }) })
	}
	failed[0] = mapped.Read(func() error { run(0); return nil })
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			panic(err) // for the mapped.Read around this op
		}
	}
}

// scratchFor returns n words of the worker's scratch, with any contents.
func (m *Machine) scratchFor(worker, n int) []float32 {
	if len(m.scratch[worker]) < n {
		m.scratch[worker] = make([]float32, n)
	}
	return m.scratch[worker][:n]
}
