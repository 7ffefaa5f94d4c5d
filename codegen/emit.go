package codegen

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/internal/version"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
)

// emit makes the plan of a program at stage place; f is the model it was
// imported from. The candidates of calls that are not known are looked for among all.
func emit(ctx context.Context, p *ir.Program, f *gguf.File, o Options, known chosen) (*plans.Plan, error) {
	if p.Stage != ir.Place {
		return nil, fmt.Errorf("emit: program is at stage %s, want %s", p.Stage, ir.Place)
	}
	fp := f.Fingerprint()
	if have := fmt.Sprintf("%x", fp); have != p.Source {
		return nil, fmt.Errorf("%s: not the model that the program was imported from (fingerprint %.12s, want %.12s)", f.Path, have, p.Source)
	}
	vocab, err := plans.ReadVocab(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	e := newEmitter(p, o.Target, &plans.Plan{Program: p, Vocab: vocab})
	e.known, e.progress = known, o.Progress
	if err := e.header(f); err != nil {
		return nil, err
	}
	if err := e.memory(f, o.Embed); err != nil {
		return nil, err
	}
	if err := e.dispatches(ctx); err != nil {
		return nil, err
	}
	return e.plan, nil
}

// newEmitter emits into a plan of the program.
func newEmitter(p *ir.Program, t *target.Target, plan *plans.Plan) *emitter {
	return &emitter{
		p: p, t: t,
		plan:      plan,
		built:     map[string]*built{},
		modules:   map[[sha256.Size]byte]int{},
		pipelines: map[string]int{},
	}
}

// dispatches emits what follows from the program alone: kernels, entries, requirements.
func (e *emitter) dispatches(ctx context.Context) error {
	if !e.t.IsHost() {
		var err error
		if e.backend, err = backendOf(e.t.Backend); err != nil {
			return err
		}
		if err := e.prepare(ctx); err != nil {
			return err
		}
	}
	for _, fn := range e.p.Funcs {
		if err := e.entry(fn); err != nil {
			return err
		}
	}
	if err := e.setReach(); err != nil {
		return err
	}
	if !e.t.IsHost() {
		e.predictTimes()
	}
	e.requirements()
	return nil
}

// compilerName is what plans say of who made them.
func compilerName() string { return "zincc " + version.Release }

type emitter struct {
	p         *ir.Program
	t         *target.Target
	plan      *plans.Plan
	backend   *backend                 // nil for the host
	known     chosen                   // what calls were made of; nothing of a program that was read
	wants     func(kernel string) bool // whether a kernel is built; nil: all are
	progress  Progress
	chosen    map[*ir.Group]*kernels.Candidate // of the groups' calls
	built     map[string]*built                // by moduleKey
	modules   map[[sha256.Size]byte]int        // by name and code
	used      []*kernel.Func                   // of the plan's modules
	pipelines map[string]int                   // by pipelineKey
	stages    map[int]bool                     // of the entry at hand, that have a dispatch already
}

func (e *emitter) header(f *gguf.File) error {
	p := e.p
	absolute, err := filepath.Abs(f.Path)
	if err != nil {
		return err
	}
	vocab, err := vocabulary(f, len(e.plan.Vocab.Tokens))
	if err != nil {
		return err
	}
	h := plans.Header{
		Compiler: compilerName(), Target: e.t.Name, Probe: e.t.Probe, Ctx: p.Ctx, Slots: p.Slots, KV: "none", Ring: frontend.Ring,
		Model: plans.Model{Arch: p.Arch, Name: p.Name, Path: p.Path, Absolute: absolute, Fingerprint: p.Source, Shards: len(f.Shards()), Layers: p.Layers,
			Vocab: vocab},
	}
	for _, fn := range p.Funcs {
		h.MaxRows = max(h.MaxRows, fn.Rows)
	}
	for _, g := range p.Globals {
		if g.Class == ir.KV {
			h.KV = g.Type.DType.String()
		}
	}
	for i := range f.Tensors {
		h.Model.Parameters += f.Tensors[i].Elements()
	}
	e.plan.Header = h
	return nil
}

// vocabulary is the number of ids that the model takes: those of its tokens, or of its
// embeddings where it has no tokenizer.
func vocabulary(f *gguf.File, tokens int) (int, error) {
	t, ok := f.Tensor("token_embd.weight")
	if !ok || len(t.Shape) != 2 {
		return tokens, nil
	}
	switch rows := t.Shape[1]; {
	case tokens == 0:
		return int(rows), nil
	case int64(tokens) > rows:
		return 0, fmt.Errorf("%s: %d tokens for the %d rows of %s", f.Path, tokens, rows, t.Name)
	}
	return tokens, nil
}

// memory lists weights and regions in the order of the program's globals.
func (e *emitter) memory(f *gguf.File, embed bool) error {
	m, regions := &e.plan.Memory, e.p.Regions()
	for _, g := range e.p.Globals {
		if g.Class == ir.Weight {
			if err := e.weight(f, g, embed); err != nil {
				return err
			}
			continue
		}
		n, err := g.Type.Bytes(e.plan.Header.MaxRows, e.p.Ctx)
		if err != nil {
			return fmt.Errorf("@%s: %w", g.Name, err)
		}
		if e.t.IsHost() && g.Class == ir.KV { // the host holds elements as float32, whatever their type
			n = n / g.Type.DType.Bytes(int64(g.Type.DType.Block())) * int64(g.Type.DType.Block()) * 4
		}
		r := plans.Region{Name: g.Name, Bytes: n}
		if of, ok := regions[g]; ok {
			r.Kept = plans.KeptOf(of, n)
		}
		switch g.Class {
		case ir.KV:
			m.KV = append(m.KV, r)
		case ir.State:
			m.State = append(m.State, r)
		case ir.Table:
			m.Tables = append(m.Tables, r)
		case ir.Step:
			m.Step = append(m.Step, r)
		default:
			return fmt.Errorf("@%s: class %s has no region", g.Name, g.Class)
		}
	}
	for _, fn := range e.p.Funcs {
		n, err := passes.ArenaBytes(fn, e.p.Ctx)
		if err != nil {
			return err
		}
		m.Arena = max(m.Arena, n)
		for _, op := range fn.Ops() {
			if r := op.Result; r != nil && r.Class == ir.IO {
				n, err := r.Type.Bytes(fn.Rows, e.p.Ctx)
				if err != nil {
					return err
				}
				m.IO = append(m.IO, plans.Region{Name: plans.IORegion(fn.Name, r), Bytes: n})
			}
		}
	}
	return nil
}

func (e *emitter) weight(f *gguf.File, g *ir.Value, embed bool) error {
	t, ok := f.Tensor(g.Name)
	if !ok {
		return fmt.Errorf("%s: tensor %q is missing", f.Path, g.Name)
	}
	l, err := weight.LayoutOf(g)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", g.Name, err)
	}
	w := plans.Weight{Name: g.Name, DType: t.Type, Shard: t.Shard, Offset: t.Offset, Size: t.Size, Layout: l.Name, Bytes: l.Bytes, At: -1}
	for _, d := range g.Type.Shape {
		w.Shape = append(w.Shape, int64(d))
	}
	if embed {
		w.At = int64(len(e.plan.Embedded))
		if err := mapped.Read(func() error { e.plan.Embedded = append(e.plan.Embedded, f.Data(t)...); return nil }); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", f.Path, g.Name, err)
		}
	}
	e.plan.Weights = append(e.plan.Weights, w)
	return nil
}

func (e *emitter) entry(f *ir.Func) error {
	kind, _, _ := strings.Cut(f.Name, "/")
	entry := plans.Entry{Name: f.Name, Kind: kind, Rows: f.Rows, Run: f.Run, Class: f.Class.String(), Reach: f.Run, Part: f.Part}
	uses := f.Uses()
	e.stages = map[int]bool{}
	for _, g := range f.Groups {
		for _, op := range g.Ops {
			if r := op.Result; r != nil && r.Class == ir.IO {
				*entry.Result(op) = plans.IORegion(f.Name, r)
			}
		}
		d, err := e.dispatch(f, g, uses)
		if err != nil {
			return err
		}
		entry.Dispatches = append(entry.Dispatches, d)
	}
	entry.Grain = plans.GrainOf(&entry)
	e.plan.Entries = append(e.plan.Entries, entry)
	return nil
}
