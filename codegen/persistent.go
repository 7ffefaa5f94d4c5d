package codegen

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/plans"
)

// persistent makes the entry's other execution: a kernel with a case for each
// pipeline and grid of its dispatches.
func (e *emitter) persistent(entry *plans.Entry) (*plans.Persistent, error) {
	type use struct {
		pipeline int
		grid     [3]int
	}
	p := &plans.Persistent{}
	var cases []kernel.Case
	known := map[use]int{}
	for _, d := range entry.Dispatches {
		u := use{d.Pipeline, d.Grid}
		i, ok := known[u]
		if !ok {
			i = len(cases)
			known[u] = i
			k := e.kernels[d.Pipeline]
			cases = append(cases, kernel.Case{Kernel: k.fn, Spec: k.spec, Grid: d.Grid, Constant: make([]bool, len(d.Args))})
			if k.shared > 0 {
				cases[i].Teams = max(1, e.t.Shared*3/4/k.shared)
			}
			for j := range d.Args {
				cases[i].Constant[j] = true
			}
		}
		for j, a := range d.Args {
			constant := a.Space == "weight" || a.Space == "table"
			cases[i].Constant[j] = cases[i].Constant[j] && constant
		}
		p.Cases = append(p.Cases, i)
	}
	fn, err := kernels.Persistent(e.t.Persistent, e.t.Wave, cases)
	if err != nil {
		return &plans.Persistent{Pipeline: -1, Why: err.Error()}, nil
	}
	words, err := fn.SPIRV()
	if err != nil {
		return nil, err
	}
	shared, err := fn.SharedBytes(nil)
	if err != nil {
		return nil, err
	}
	if shared > uint64(e.t.Shared) {
		return &plans.Persistent{Pipeline: -1, Why: fmt.Sprintf("%d bytes of shared memory, target %s has %d", shared, e.t.Name, e.t.Shared)}, nil
	}
	pipeline := plans.Pipeline{Module: len(e.plan.Modules), Wave: e.t.Wave, Workgroup: e.t.Persistent, Shared: int(shared)}
	p.Pipeline = len(e.plan.Pipelines)
	e.plan.Modules = append(e.plan.Modules, plans.Module{Name: "persistent " + entry.Name, Words: words})
	e.plan.Pipelines = append(e.plan.Pipelines, pipeline)
	e.kernels = append(e.kernels, nil)
	return p, nil
}
