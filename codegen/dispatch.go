package codegen

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// addressBytes is the size of an argument in the push constants.
const addressBytes = 8

// baseFeatures are what the runtime itself needs: addresses of buffers, a timeline for
// submissions.
var baseFeatures = []string{"bufferDeviceAddress", "timelineSemaphore", "vulkanMemoryModel"}

func (e *emitter) dispatch(f *ir.Func, g *ir.Group, uses map[*ir.Value][]*ir.Op) (plans.Dispatch, error) {
	outputs := g.Outputs(uses)
	d := plans.Dispatch{Site: g.Name, Pipeline: -1, Grid: g.Call.Grid, Step: g.Step, Why: g.Call.Why}
	var err error
	if d.Cost, err = cost(e.p, f, g, outputs); err != nil {
		return d, fmt.Errorf("%s: %s: %w", f.Name, g.Name, err)
	}
	first := !e.steps[g.Step]
	e.steps[g.Step] = true
	if e.t.IsHost() {
		return d, nil
	}
	c := e.chosen[g]
	if d.Pipeline, err = e.pipeline(c, g.Call); err != nil {
		return d, fmt.Errorf("%s: %s: %w", f.Name, g.Name, err)
	}
	d.Cost.Predicted = e.predicted(&d, c, d.Cost, f.Rows, first)
	d.Cover, d.Mixes = c.Cover, c.Sequences == ir.ManySequences
	for _, o := range c.Operands {
		a, err := e.arg(f, o)
		if err != nil {
			return d, fmt.Errorf("%s: %s: argument %s: %w", f.Name, g.Name, o.Name, err)
		}
		d.Args = append(d.Args, a)
	}
	return d, nil
}

// predicted is the time of a dispatch of candidate c in a step of so many rows, which cost so much: a
// roofline, or what the family expects, if that is more.
func (e *emitter) predicted(d *plans.Dispatch, c *kernels.Candidate, cost plans.Cost, rows int, first bool) plans.Times {
	t := roofline(&cost, e.t, d.Grid, e.matrix[e.plan.Pipelines[d.Pipeline].Module], first)
	if c.Seconds != nil {
		t.Operations = max(t.Operations, float32(c.Seconds(rows)))
	}
	return t
}

// arg says where the value of an operand lies.
func (e *emitter) arg(f *ir.Func, o kernels.Operand) (plans.Arg, error) {
	v := o.Value
	rows := f.Rows
	if v.IsGlobal() {
		rows = e.plan.Header.MaxRows
	}
	n, err := v.Type.Bytes(rows, e.p.Ctx)
	if err != nil {
		return plans.Arg{}, err
	}
	a := plans.Arg{Name: o.Name, Space: v.Class.String(), Region: v.Name, Bytes: n,
		Read: o.Access&kernel.Read != 0, Write: o.Access&kernel.Write != 0}
	switch v.Class {
	case ir.Weight:
		w, err := weightLayout(v)
		if err != nil {
			return a, err
		}
		a.Bytes = w.Bytes
	case ir.Arena:
		if v.Offset < 0 {
			return a, fmt.Errorf("%s has no place in the arena", v)
		}
		a.Offset = v.Offset
	case ir.IO:
		a.Region = plans.IORegion(f.Name, v)
	}
	return a, nil
}

// pipeline returns the index of the candidate's pipeline, made on first use.
func (e *emitter) pipeline(c *kernels.Candidate, call *ir.Call) (int, error) {
	key := fmt.Sprint(c.Kernel, c.Consts, call.Wave)
	if i, ok := e.pipelines[key]; ok {
		return i, nil
	}
	k, err := e.built.specialize(c, e.t)
	if err != nil {
		return 0, err
	}
	module, ok := e.modules[c.Kernel]
	if !ok {
		module = len(e.plan.Modules)
		e.modules[c.Kernel] = module
		e.plan.Modules = append(e.plan.Modules, plans.Module{Name: c.Kernel, Words: k.words})
		for _, name := range k.fn.Features {
			e.features[name] = true
			e.matrix[module] = e.matrix[module] || name == "cooperativeMatrix"
		}
		for _, name := range k.fn.Extensions {
			e.extensions[name] = true
		}
		e.plan.Require.Dealt = e.plan.Require.Dealt || k.fn.Dealt
		for _, class := range k.fn.SubgroupOps {
			e.subgroupOps[class] = true
		}
	}
	p := plans.Pipeline{Module: module, Wave: call.Wave, Workgroup: k.workgroup, Shared: k.shared}
	for _, s := range k.fn.Spec {
		if v, ok := k.spec[s.ID]; ok {
			p.Consts = append(p.Consts, plans.Const{ID: s.ID, Name: s.Name, Value: v})
		}
	}
	e.plan.Pipelines = append(e.plan.Pipelines, p)
	e.pipelines[key] = len(e.plan.Pipelines) - 1
	return e.pipelines[key], nil
}

// requirements sums up what a device must offer.
func (e *emitter) requirements() {
	r := &e.plan.Require
	if !e.t.IsHost() {
		for _, name := range baseFeatures {
			e.features[name] = true
		}
	}
	r.Features = slices.Sorted(maps.Keys(e.features))
	r.Extensions = slices.Sorted(maps.Keys(e.extensions))
	r.SubgroupOps = slices.Sorted(maps.Keys(e.subgroupOps))
	for i, p := range e.plan.Pipelines {
		r.Workgroup = max(r.Workgroup, p.Workgroup)
		r.Shared = max(r.Shared, p.Shared)
		if i == 0 {
			r.Subgroup = [2]int{p.Wave, p.Wave}
		}
		r.Subgroup = [2]int{min(r.Subgroup[0], p.Wave), max(r.Subgroup[1], p.Wave)}
	}
	for _, entry := range e.plan.Entries {
		for _, d := range entry.Dispatches {
			r.PushConstants = max(r.PushConstants, addressBytes*len(d.Args))
		}
	}
	r.Memory = e.plan.MemoryBytes()
}
