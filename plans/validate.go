package plans

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// maxGrid is Vulkan's guaranteed limit of a grid, but for axis 0, where all
// devices of interest have more.
var maxGrid = [3]int{1<<31 - 1, 65535, 65535}

// maxGrain bounds the rows of a tile.
const maxGrain = 1 << 16

const (
	maxWorkgroup = 2048
	maxShared    = 4 << 20
	maxRegion    = 1 << 46 // bytes of any region, so that sums do not overflow
	maxArgs      = 256
)

// IsHost reports whether the plan has no kernels and is evaluated by the oracle.
func (p *Plan) IsHost() bool { return p.Require.Backend == Host }

// Validate returns an error if code that walks over p could fail, or if an argument leaves its
// region. A plan that was not decoded must pass it.
func Validate(p *Plan) error {
	if err := validate(p); err != nil {
		return err
	}
	if bad := checkBounds(p); len(bad) > 0 {
		return fmt.Errorf("entries: %s", bad[0])
	}
	return nil
}

// validate checks every index, name and range of p, so that nothing that walks
// over a plan can fail. It does not prove that the plan is right: Check does.
func validate(p *Plan) error {
	if p.Program == nil {
		return fmt.Errorf("program: missing")
	}
	if err := ir.Verify(p.Program); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	for _, part := range []struct {
		name string
		fn   func(*Plan) error
	}{
		{"header", validateHeader}, {"requirements", validateRequirements}, {"modules", validateModules},
		{"pipelines", validatePipelines}, {"memory", validateMemory}, {"weights", validateWeights},
		{"entries", validateEntries}, {"vocab", validateVocab},
	} {
		if err := part.fn(p); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func validateHeader(p *Plan) error {
	h := &p.Header
	switch {
	case p.Program.Stage != ir.Place:
		return fmt.Errorf("program is at stage %s, want %s", p.Program.Stage, ir.Place)
	case h.Target == "" || h.Target != p.Program.Target:
		return fmt.Errorf("target %q, program has %q", h.Target, p.Program.Target)
	case h.Ctx != p.Program.Ctx || h.Slots != p.Program.Slots:
		return fmt.Errorf("ctx %d and slots %d, program has %d and %d", h.Ctx, h.Slots, p.Program.Ctx, p.Program.Slots)
	case h.Model.Fingerprint != p.Program.Source:
		return fmt.Errorf("fingerprint %q, program has %q", h.Model.Fingerprint, p.Program.Source)
	case h.KV != "none" && !slices.ContainsFunc(ir.CacheTypes, func(t ir.DType) bool { return t.String() == h.KV }):
		return fmt.Errorf("KV dtype %q", h.KV)
	case h.MaxRows <= 0 || h.MaxRows > 1<<20 || h.Ring <= 0 || h.Ring > 1<<24:
		return fmt.Errorf("max rows %d or ring %d out of range", h.MaxRows, h.Ring)
	case h.Model.Shards <= 0 || h.Model.Layers < 0 || h.Model.Vocab < 0 || h.Model.Parameters < 0:
		return fmt.Errorf("model: %d shards, %d layers, vocabulary of %d, %d parameters",
			h.Model.Shards, h.Model.Layers, h.Model.Vocab, h.Model.Parameters)
	}
	return nil
}

func validatePipelines(p *Plan) error {
	for i, pl := range p.Pipelines {
		switch {
		case pl.Module < 0 || pl.Module >= len(p.Modules):
			return fmt.Errorf("pipeline %d: module %d of %d", i, pl.Module, len(p.Modules))
		case pl.Wave < 0 || pl.Wave > 128 || pl.Wave&(pl.Wave-1) != 0:
			return fmt.Errorf("pipeline %d: subgroup size %d", i, pl.Wave)
		case pl.Workgroup <= 0 || pl.Workgroup > maxWorkgroup:
			return fmt.Errorf("pipeline %d: workgroup of %d", i, pl.Workgroup)
		case pl.Shared < 0 || pl.Shared > maxShared:
			return fmt.Errorf("pipeline %d: %d bytes of shared memory", i, pl.Shared)
		}
		if m := pl.Machine; m != nil && min(m.SGPRs, m.VGPRs, m.Spills, m.Scratch, m.Waves, m.Code, m.VALU, m.VMEM, m.Cycles, m.Latency) < 0 {
			return fmt.Errorf("pipeline %d: machine: negative figure in %+v", i, *m)
		}
		ids := map[uint32]bool{}
		for _, c := range pl.Consts {
			if ids[c.ID] {
				return fmt.Errorf("pipeline %d: constant id %d twice", i, c.ID)
			}
			ids[c.ID] = true
		}
	}
	return nil
}

func validateMemory(p *Plan) error {
	if p.Memory.Arena < 0 || p.Memory.Arena > maxRegion {
		return fmt.Errorf("arena of %d bytes", p.Memory.Arena)
	}
	for _, s := range p.Memory.spaces() {
		seen := map[string]bool{}
		for _, r := range s.regions {
			if r.Name == "" || seen[r.Name] {
				return fmt.Errorf("%s region %q: empty or repeated name", s.name, r.Name)
			}
			seen[r.Name] = true
			if r.Bytes <= 0 || r.Bytes > maxRegion {
				return fmt.Errorf("%s region %q: %d bytes", s.name, r.Name, r.Bytes)
			}
		}
	}
	return validateKept(p)
}

// space is an address space that consists of named regions.
type space struct {
	name    string
	regions []Region
}

func (m *Memory) spaces() []space {
	return []space{{"table", m.Tables}, {"kv", m.KV}, {"state", m.State}, {"step", m.Step}, {"io", m.IO}}
}

func validateWeights(p *Plan) error {
	seen := map[string]bool{}
	for _, w := range p.Weights {
		if w.Name == "" || seen[w.Name] {
			return fmt.Errorf("weight %q: empty or repeated name", w.Name)
		}
		seen[w.Name] = true
		if err := validateWeight(p, &w); err != nil {
			return fmt.Errorf("weight %q: %w", w.Name, err)
		}
	}
	return nil
}

func validateWeight(p *Plan, w *Weight) error {
	l, err := layout.Named(w.Layout, w.DType, w.Shape...)
	if err != nil {
		return err
	}
	size := l.SourceBytes()
	switch {
	case l.Name == layout.Rows16 && !backendOf(p.Require.Backend).rows16:
		return fmt.Errorf("layout %q is for processors, the plan for backend %s", l.Name, p.Require.Backend)
	case w.Size != size || w.Bytes != l.Bytes:
		return fmt.Errorf("%d bytes in the file and %d on the device, want %d and %d", w.Size, w.Bytes, size, l.Bytes)
	case w.Shard < 0 || w.Shard >= p.Header.Model.Shards:
		return fmt.Errorf("shard %d of %d", w.Shard, p.Header.Model.Shards)
	case w.Offset < 0 || w.Offset > 1<<60:
		return fmt.Errorf("offset %d", w.Offset)
	case (w.At < 0) != (len(p.Embedded) == 0) || w.At < -1:
		return fmt.Errorf("at %d of %d embedded bytes", w.At, len(p.Embedded))
	case w.At > int64(len(p.Embedded))-w.Size && w.At >= 0:
		return fmt.Errorf("%d bytes at %d of %d embedded bytes", w.Size, w.At, len(p.Embedded))
	}
	return nil
}

func validateEntries(p *Plan) error {
	regions := p.regions()
	if len(p.Entries) != len(p.Program.Funcs) {
		return fmt.Errorf("%d entries, program has %d functions", len(p.Entries), len(p.Program.Funcs))
	}
	for i := range p.Entries {
		e, f := &p.Entries[i], p.Program.Funcs[i]
		if e.Name != f.Name {
			return fmt.Errorf("entry %d %q: function %d is %q", i, e.Name, i, f.Name)
		}
		if err := validateEntry(p, e, f, regions); err != nil {
			return fmt.Errorf("entry %q: %w", e.Name, err)
		}
	}
	return nil
}

func validateEntry(p *Plan, e *Entry, f *ir.Func, regions map[regionKey]int64) error {
	io := func(name string) bool { _, ok := regions[regionKey{"io", name}]; return ok }
	switch {
	case !slices.Contains([]string{"decode", "prefill", "score", "embed"}, e.Kind):
		return fmt.Errorf("kind %q", e.Kind)
	case e.Rows != f.Rows || e.Rows > p.Header.MaxRows:
		return fmt.Errorf("%d rows, function has %d and the step block %d", e.Rows, f.Rows, p.Header.MaxRows)
	case e.Run != f.Run || e.Class != f.Class.String():
		return fmt.Errorf("runs of %d and class %q, the function has %d and %q", e.Run, e.Class, f.Run, f.Class)
	case e.Part != f.Part:
		return fmt.Errorf("parts of %d rows, the function has %d", e.Part, f.Part)
	case e.Part > 0 && e.Kind != "prefill":
		return fmt.Errorf("parts of %d rows in an entry of kind %q", e.Part, e.Kind)
	case e.Reach < e.Run || e.Reach > 2*e.Rows:
		return fmt.Errorf("a reach of %d with %d rows", e.Reach, e.Rows)
	case e.Grain < 0 || e.Grain > e.Run:
		return fmt.Errorf("a grain of %d with runs of %d", e.Grain, e.Run)
	case e.Part > 0 && (e.Grain == 0 || e.Part%e.Grain > 0):
		return fmt.Errorf("parts of %d rows with a grain of %d", e.Part, e.Grain)
	case !io(e.Logits):
		return fmt.Errorf("logits in region %q, which is not in memory", e.Logits)
	case e.Next != "" && !io(e.Next):
		return fmt.Errorf("next ids in region %q, which is not in memory", e.Next)
	case e.Candidates != "" && !io(e.Candidates):
		return fmt.Errorf("candidates in region %q, which is not in memory", e.Candidates)
	}
	if len(e.Dispatches) != len(f.Groups) {
		return fmt.Errorf("%d dispatches for %d groups", len(e.Dispatches), len(f.Groups))
	}
	for i := range e.Dispatches {
		d, g := &e.Dispatches[i], f.Groups[i]
		if d.Site != g.Name || d.Order != g.Order {
			return fmt.Errorf("dispatch %d %q, %s: group is %q, %s", i, d.Site, d.Order, g.Name, g.Order)
		}
		if err := validateDispatch(p, d, regions); err != nil {
			return fmt.Errorf("dispatch %d %q: %w", i, d.Site, err)
		}
	}
	return nil
}

func validateDispatch(p *Plan, d *Dispatch, regions map[regionKey]int64) error {
	if p.IsHost() {
		if d.Pipeline != -1 || len(d.Args) != 0 || len(d.Cover) != 0 {
			return fmt.Errorf("pipeline %d, %d arguments and %d covers in a plan without kernels", d.Pipeline, len(d.Args), len(d.Cover))
		}
	} else if d.Pipeline < 0 || d.Pipeline >= len(p.Pipelines) {
		return fmt.Errorf("pipeline %d of %d", d.Pipeline, len(p.Pipelines))
	}
	if d.Grain < 0 || d.Grain > maxGrain {
		return fmt.Errorf("a grain of %d", d.Grain)
	}
	for i, n := range d.Grid {
		if n <= 0 || n > maxGrid[i] {
			return fmt.Errorf("grid %d", d.Grid)
		}
	}
	if err := validateCost(&d.Cost); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range d.Args {
		a := &d.Args[i]
		if seen[a.Name] {
			return fmt.Errorf("argument %q: repeated name", a.Name)
		}
		seen[a.Name] = true
		if err := validateArg(a, regions); err != nil {
			return fmt.Errorf("argument %q: %w", a.Name, err)
		}
	}
	for i := range d.Cover {
		c := &d.Cover[i]
		if !seen[c.Arg] {
			return fmt.Errorf("cover of %q: no such argument", c.Arg)
		}
		if err := validateCover(c); err != nil {
			return fmt.Errorf("cover of %q: %w", c.Arg, err)
		}
	}
	return nil
}

func validateArg(a *Arg, regions map[regionKey]int64) error {
	if a.Name == "" {
		return errors.New("empty name")
	}
	if _, ok := regions[regionKey{a.Space, a.Region}]; !ok {
		return fmt.Errorf("no region %q in space %q", a.Region, a.Space)
	}
	if a.Offset < 0 || a.Offset%4 != 0 || a.Bytes <= 0 || a.Bytes > maxRegion || !a.Read && !a.Write {
		return fmt.Errorf("%d bytes at %d, read %t, write %t", a.Bytes, a.Offset, a.Read, a.Write)
	}
	return nil
}

func validateCover(c *Cover) error {
	n := len(c.Dims)
	if n == 0 || len(c.Tile) != n || len(c.Axis) != n || len(c.First) != 0 && len(c.First) != n {
		return fmt.Errorf("dims %d, tile %d, axis %d, first %d", c.Dims, c.Tile, c.Axis, c.First)
	}
	for _, axis := range c.Joined {
		if axis < 0 || axis > 2 {
			return fmt.Errorf("meets on axes %d", c.Joined)
		}
	}
	for _, first := range c.First {
		if first < 0 || first > 1<<31 {
			return fmt.Errorf("first %d", c.First)
		}
	}
	for i, n := range c.Dims {
		if n <= 0 || n > 1<<40 || c.Tile[i] < 0 || c.Tile[i] > 1<<31 || c.Tile[i] == 0 && c.Axis[i] < 0 || c.Axis[i] < -1 || c.Axis[i] > 2 {
			return fmt.Errorf("dims %d, tile %d, axis %d", c.Dims, c.Tile, c.Axis)
		}
	}
	return nil
}

// maxCost bounds the counts of a dispatch and those per position, so that their
// product with a position does not overflow.
const maxCost, maxPerPos = 1 << 60, 1 << 30

func validateCost(c *Cost) error {
	for _, n := range []int64{c.ReadBytes, c.WriteBytes, c.FLOPs} {
		if n < 0 || n > maxCost {
			return fmt.Errorf("cost: %d is out of range", n)
		}
	}
	for _, n := range []int64{c.BytesPerPos, c.FLOPsPerPos} {
		if n < 0 || n > maxPerPos {
			return fmt.Errorf("cost: %d a position is out of range", n)
		}
	}
	for _, t := range []float32{c.Predicted.Bytes, c.Predicted.Operations, c.Predicted.Stage} {
		if !(t >= 0 && t <= 1e9) {
			return fmt.Errorf("cost: %g seconds are out of range", t)
		}
	}
	return nil
}

// regionKey names a region in its space; the arena is one region without a name.
type regionKey struct{ space, name string }

// regions maps every region that an argument can lie in to its size in bytes.
func (p *Plan) regions() map[regionKey]int64 {
	m := map[regionKey]int64{{"arena", ""}: p.Memory.Arena}
	for _, s := range p.Memory.spaces() {
		for _, r := range s.regions {
			m[regionKey{s.name, r.Name}] = r.Bytes
		}
	}
	for _, w := range p.Weights {
		m[regionKey{"weight", w.Name}] = w.Bytes
	}
	return m
}

func validateVocab(p *Plan) error {
	v := &p.Vocab
	if n := len(v.Tokens); len(v.Scores) > n || len(v.Types) > n {
		return fmt.Errorf("%d tokens, %d scores, %d types", n, len(v.Scores), len(v.Types))
	}
	return nil
}
