// Package frontend lowers a GGUF model into the op IR. An architecture is a row of a table
// (archs.go) over layers that all share (layers.go); what only some have is in files of its own.
package frontend

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// Options size what a model file leaves open.
type Options struct {
	Ctx     int      // positions a sequence slot holds; 0 for DefaultCtx
	Slots   int      // sequences at a time; 0 for 1
	KV      ir.DType // one of ir.CacheTypes
	MaxRows int      // rows of a step, at most
	Page    int      // positions of a page of the caches of several sequences; 0: each sequence's rows lie side by side
	Pool    int      // positions that the pages of all sequences have, at least those of one; 0: all of each
}

// DefaultCtx is the context that a plan gets when nobody asks for one: the
// model's own, but no more than this.
const DefaultCtx = 4096

// Ring is the number of ids that the output ring holds, more than any
// submission decodes.
const Ring = 256

// Load builds the program of the model at stage import.
func Load(f *gguf.File, o Options) (*ir.Program, error) {
	p, err := load(f, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return p, nil
}

func load(f *gguf.File, o Options) (*ir.Program, error) {
	a, err := archOf(f)
	if err != nil {
		return nil, err
	}
	m, err := newModel(f, a, o)
	if err != nil {
		return nil, err
	}
	if err := m.lower(); err != nil {
		return nil, err
	}
	m.sizeWindows()
	if err := m.checkAllUsed(); err != nil {
		return nil, err
	}
	return m.p, ir.Verify(m.p)
}

// Context is the context that the model was trained for.
func Context(f *gguf.File) (int, error) {
	a, err := archOf(f)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f.Path, err)
	}
	r := &metadata{f: f, prefix: a.name + "."}
	n := r.int("context_length", 0)
	if r.err != nil {
		return 0, fmt.Errorf("%s: %w", f.Path, r.err)
	}
	return n, nil
}

// beside are the prefixes of tensors for images and sound, which are no part of the language model.
var beside = []string{"v.", "mm.", "a."}

// Ignored returns the names of the tensors of f that no program of it uses, in file
// order: those of the layers that predict further tokens, those beside, and the output projection of a
// model that makes vectors.
func Ignored(f *gguf.File) []string {
	a, err := archOf(f)
	if err != nil {
		return nil
	}
	r := &metadata{f: f, prefix: a.name + "."}
	layers, pool := r.trunk(), r.pooling()
	if r.err != nil {
		return nil
	}
	var names []string
	for _, t := range f.Tensors {
		if pool != noPooling && (t.Name == "output.weight" || t.Name == "output.bias") {
			names = append(names, t.Name)
			continue
		}
		if slices.ContainsFunc(beside, func(prefix string) bool { return strings.HasPrefix(t.Name, prefix) }) || strings.HasSuffix(t.Name, ".input_scale") {
			names = append(names, t.Name)
			continue
		}
		number, _, inBlock := strings.Cut(strings.TrimPrefix(t.Name, "blk."), ".")
		if i, err := strconv.Atoi(number); inBlock && strings.HasPrefix(t.Name, "blk.") && err == nil && i >= layers {
			names = append(names, t.Name)
		}
	}
	return names
}

// model is what builds the graph of a model.
type model struct {
	*params
	row *arch
	f   *gguf.File
	kv  ir.DType
	p   *ir.Program
	b   *ir.Builder
	err error // the first error of an op or tensor; later ops do nothing

	token, pos, slot, n, out, count *ir.Value
	weights                         map[string]*ir.Value

	page, pool int                      // Options.Page of several sequences, and Options.Pool
	tables     [ir.PageGroups]*ir.Value // the block tables, once a cache of the group lies in pages
	tableOf    map[*ir.Value]*ir.Value  // that of each cache
	window     int                      // the largest of caches in pages
}

func newModel(f *gguf.File, a *arch, o Options) (*model, error) {
	c, err := readParams(f, a)
	if err != nil {
		return nil, err
	}
	ctx := o.Ctx
	if ctx == 0 {
		ctx = min(c.ctxTrain, DefaultCtx)
	}
	fp := f.Fingerprint()
	title, _, err := f.String("general.name")
	if err != nil {
		return nil, err
	}
	if c.pooling != noPooling {
		o.Slots = 1 // texts are read one behind the other
	}
	if o.Page > 0 {
		if err := ir.CheckPage(o.Page); err != nil {
			return nil, err
		}
	}
	fn := &ir.Func{Name: "forward", Rows: min(o.MaxRows, ctx), Sequences: ir.ManySequences, Run: min(o.MaxRows, ctx)}
	m := &model{
		params: c,
		row:    a,
		f:      f,
		kv:     o.KV,
		p: &ir.Program{
			Arch: c.arch, Name: title, Path: f.Path, Source: hex.EncodeToString(fp[:]),
			Ctx: ctx, Slots: max(1, o.Slots), Layers: c.layers, Funcs: []*ir.Func{fn},
		},
		b:       ir.NewBuilder(fn),
		weights: map[string]*ir.Value{},
		tableOf: map[*ir.Value]*ir.Value{},
	}
	if m.p.Slots > 1 {
		m.page, m.pool = o.Page, o.Pool
	}
	rows, one := ir.MakeType(ir.I32, ir.T), ir.MakeType(ir.I32, 1)
	m.token = m.p.AddGlobal(ir.StepToken, ir.Step, rows)
	m.pos = m.p.AddGlobal(ir.StepPos, ir.Step, rows)
	m.slot = m.p.AddGlobal(ir.StepSlot, ir.Step, rows)
	m.n = m.p.AddGlobal(ir.StepN, ir.Step, one)
	m.out = m.p.AddGlobal(ir.StepOut, ir.Step, ir.MakeType(ir.I32, Ring))
	m.count = m.p.AddGlobal(ir.StepCount, ir.Step, one)
	return m, nil
}

// op appends an op. After an error it returns nil, which every later op takes.
func (m *model) op(kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Value {
	if m.err != nil {
		return nil
	}
	v, err := m.b.Op(kind, attrs, args...)
	m.err = err
	return v
}

// weight declares the tensor, whose shape must be dims, row-major.
func (m *model) weight(name string, dims ...int) *ir.Value {
	if m.err != nil {
		return nil
	}
	if w := m.weights[name]; w != nil {
		return w
	}
	t, ok := m.f.Tensor(name)
	if !ok {
		m.err = fmt.Errorf("tensor %q is missing", name)
		return nil
	}
	w, err := m.declare(t, dims)
	if err != nil {
		m.err = fmt.Errorf("tensor %q: %w", name, err)
		return nil
	}
	m.weights[name] = w
	return w
}

func (m *model) declare(t *gguf.Tensor, dims []int) (*ir.Value, error) {
	switch {
	case t.Type == ir.Invalid:
		return nil, ir.Unsupported("type %s is not supported", t.TypeName)
	case len(dims) == 1 && t.Type != ir.F32:
		return nil, ir.Unsupported("a vector of type %s is not supported", t.Type)
	case !ir.Computable(t.Type):
		return nil, ir.Unsupported("type %s is not a weight type", t.Type)
	}
	shape := make([]ir.Dim, len(t.Shape))
	for i, n := range t.Shape {
		shape[len(shape)-1-i] = ir.Dim(n)
	}
	// GGUF drops trailing dims of 1.
	for len(shape) < len(dims) {
		shape = append([]ir.Dim{1}, shape...)
	}
	want := make([]ir.Dim, len(dims))
	for i, n := range dims {
		want[i] = ir.Dim(n)
	}
	if have, need := ir.MakeType(t.Type, shape...), ir.MakeType(t.Type, want...); !have.Equal(need) {
		return nil, fmt.Errorf("shape is %s, want %s", have, need)
	}
	return m.p.AddGlobal(t.Name, ir.Weight, ir.MakeType(t.Type, shape...)), nil
}

// vector declares a tensor of rows times width numbers as a vector, which the file may have as a matrix of so many
// rows.
func (m *model) vector(name string, rows, width int) *ir.Value {
	t, ok := m.f.Tensor(name)
	if !ok || len(t.Shape) < 2 {
		return m.weight(name, rows*width)
	}
	w := m.weight(name, rows, width)
	if w == nil {
		return nil
	}
	if w.Type.DType != ir.F32 {
		m.err = ir.Unsupported("tensor %q: a vector of type %s is not supported", name, w.Type.DType)
	}
	w.Type = ir.MakeType(w.Type.DType, ir.Dim(rows*width))
	return w
}

// optional is weight for a tensor that may be missing: nil then.
func (m *model) optional(name string, dims ...int) *ir.Value {
	if _, ok := m.f.Tensor(name); !ok {
		return nil
	}
	return m.weight(name, dims...)
}

// linear applies name.weight {in, out} and, if there is one, name.bias to x. A number name.scale, which files have
// beside matrices of NVFP4, is a factor of the product.
func (m *model) linear(x *ir.Value, name string, in, out int) *ir.Value {
	return m.linearOf(x, name, name, in, out)
}

// linearOf is linear with a matrix of another name.
func (m *model) linearOf(x *ir.Value, matrix, name string, in, out int) *ir.Value {
	w := m.weight(matrix+".weight", out, in)
	bias, scale := m.optional(name+".bias", out), m.factor(name+".scale")
	switch {
	case bias != nil && scale != nil && m.err == nil:
		m.err = ir.Unsupported("tensor %q beside %s.bias is not supported", name+".scale", name)
	case bias != nil:
		return m.op("linear", nil, x, w, bias)
	case scale != nil:
		return m.op("scale", ir.Attrs{{Name: "factor", Value: 1.0}}, m.op("linear", nil, x, w), scale)
	}
	return m.op("linear", nil, x, w)
}

// factor declares a tensor of one number; nil if there is none of that name and size.
func (m *model) factor(name string) *ir.Value {
	if t, ok := m.f.Tensor(name); !ok || len(t.Shape) != 1 || t.Shape[0] != 1 {
		return nil
	}
	return m.weight(name, 1)
}

// norm applies the RMS norm name.weight over groups of width elements.
func (m *model) norm(x *ir.Value, name string, width int) *ir.Value {
	return m.rmsnorm(x, name, width, m.eps)
}

func (m *model) rmsnorm(x *ir.Value, name string, width int, eps float64) *ir.Value {
	attrs := ir.Attrs{{Name: "eps", Value: eps}, {Name: "group", Value: int64(width)}}
	return m.op("rmsnorm", attrs, x, m.weight(name+".weight", width))
}

// unit is an RMS norm without weight over groups of width elements.
func (m *model) unit(x *ir.Value, width int) *ir.Value {
	return m.op("rmsnorm", ir.Attrs{{Name: "eps", Value: m.eps}, {Name: "group", Value: int64(width)}}, x)
}

// cache declares a KV cache of one layer, of which rows see a window (0: all positions). It lies in pages if there are
// some.
func (m *model) cache(name string, d ir.DType, width, window int) *ir.Value {
	if m.err != nil {
		return nil
	}
	if m.page == 0 {
		return m.p.AddGlobal(name, ir.KV, ir.MakeType(d, ir.Dim(m.p.Slots), ir.L, ir.Dim(width)))
	}
	group, each := ir.WholeGroup, ir.PagesOf(m.p.Ctx, m.page)
	if window > 0 && window < m.p.Ctx {
		group, m.window = ir.WindowGroup, max(m.window, window)
	}
	if m.tables[group] == nil {
		m.tables[group] = m.p.AddGlobal(ir.TableNames[group], ir.Step, ir.MakeType(ir.I32, ir.Dim(m.p.Slots), ir.Dim(each)))
	}
	pages := m.p.Slots * each
	if m.pool > 0 {
		pages = min(pages, max(each, ir.PagesOf(m.pool, m.page)))
	}
	c := m.p.AddGlobal(name, ir.KV, ir.MakeType(d, ir.Dim(pages+1), ir.Dim(m.page), ir.Dim(width)))
	c.Layout = ir.PagesLayout
	m.tableOf[c] = m.tables[group]
	return c
}

// sizeWindows gives caches of a window the pages that sequences need there, once all windows are known.
func (m *model) sizeWindows() {
	for c, table := range m.tableOf {
		if table == m.tables[ir.WindowGroup] {
			s := c.Type.Shape
			c.Type = ir.MakeType(c.Type.DType, ir.Dim(ir.WindowPages(int(s[0]), m.p.Slots, m.p.Ctx, m.window, m.page)), s[1], s[2])
		}
	}
}

// cached appends an op of caches, the first of which is given, with their block table where they lie in pages.
func (m *model) cached(kind string, attrs ir.Attrs, cache *ir.Value, args ...*ir.Value) *ir.Value {
	if m.err == nil && cache.Paged() {
		args = append(args, m.tableOf[cache])
	}
	return m.op(kind, attrs, args...)
}

// state declares the float32 state of one layer, per slot.
func (m *model) state(name string, dims ...int) *ir.Value {
	if m.err != nil {
		return nil
	}
	shape := []ir.Dim{ir.Dim(m.p.Slots)}
	for _, n := range dims {
		shape = append(shape, ir.Dim(n))
	}
	return m.p.AddGlobal(name, ir.State, ir.MakeType(ir.F32, shape...))
}

// checkAllUsed fails for a tensor that would have been left out unnoticed: it says
// that the file holds something other than what its architecture makes of it.
func (m *model) checkAllUsed() error {
	ignored := Ignored(m.f)
	for _, t := range m.f.Tensors {
		if m.weights[t.Name] == nil && t.Name != ropeFreqs && !slices.Contains(longRope[:], t.Name) && !slices.Contains(ignored, t.Name) {
			return ir.Unsupported("tensor %q is not known in architecture %s", t.Name, m.arch)
		}
	}
	return nil
}

// rankTemplate is the key of the text with {query} and {document} that a model that ranks texts reads.
const rankTemplate = "tokenizer.chat_template.rerank"

// ranks is the head of a model that ranks texts: a score for each label, the first of which says that a text answers a
// query. The runtime makes probabilities of them.
func (m *model) ranks(x *ir.Value) *ir.Value {
	if m.err != nil {
		return nil
	}
	if _, ok := m.f.Tensor("cls.weight"); ok {
		m.err = ir.Unsupported("tensor %q is not supported: a model that ranks texts may have one matrix, %q", "cls.weight", "cls.output.weight")
		return nil
	}
	if template, _, err := m.f.String(rankTemplate); err != nil || template == "" {
		m.err = ir.Unsupported("metadata %s is missing: it says how a model that ranks texts reads them", rankTemplate)
		return nil
	}
	labels := 0
	if t, ok := m.f.Tensor("cls.output.weight"); ok && len(t.Shape) == 2 {
		labels = int(t.Shape[1])
	}
	if labels < 2 {
		m.err = ir.Unsupported("tensor %q: a model that ranks texts has a matrix of two labels or more", "cls.output.weight")
		return nil
	}
	return m.linearOf(x, "cls.output", "cls.output", m.embd, labels)
}

// embed is the start of every model.
func (m *model) embed() *ir.Value {
	if m.vocab <= 0 && m.err == nil {
		m.err = fmt.Errorf("tensor %q is missing or not a matrix", "token_embd.weight")
	}
	x := m.op("embed", ir.Attrs{{Name: "scale", Value: m.embedScale}}, m.token, m.weight("token_embd.weight", m.vocab, m.embd))
	if m.row.embedNorm {
		x = m.unit(x, m.embd)
	}
	return x
}

// mask declares what bounds the choice of tokens.
func (m *model) mask() []*ir.Value {
	if m.err != nil {
		return nil
	}
	words := ir.Dim(ir.MaskWords(m.vocab))
	return []*ir.Value{m.p.AddGlobal(ir.StepMasked, ir.Step, ir.MakeType(ir.I32, ir.T)),
		m.p.AddGlobal(ir.StepMask, ir.Step, ir.MakeType(ir.I32, ir.Dim(m.p.Slots), words))}
}

// head is the end of every model: final norm, output projection, greedy choice and the step block for the next step.
// The device compares logits behind scale and cap, as the host does: rounding there can make two of them equal. A model
// that makes vectors ends with the final norm, of the last row where that one stands for the text, and one that ranks
// texts with the scores of that row.
func (m *model) head(x *ir.Value) {
	norm := "output_norm"
	if m.row.lastNorm != "" {
		norm = m.row.lastNorm
	}
	x = m.rmsnorm(x, norm, m.embd, m.streamEps)
	if m.pooling != noPooling {
		if m.pooling == poolRank {
			x = m.ranks(x)
		}
		if m.pooling == poolLast || m.pooling == poolRank {
			x = m.op("last_row", nil, x, m.n)
		}
		if m.err == nil {
			x.Class = ir.IO
		}
		return
	}
	name := "output"
	if _, ok := m.f.Tensor("output.weight"); !ok {
		name = "token_embd" // tied
	}
	logits := m.linearOf(x, name, "output", m.embd, m.vocab)
	switch {
	case m.softcap > 0:
		logits = m.op("softcap", ir.Attrs{{Name: "scale", Value: m.logitScale}, {Name: "cap", Value: m.softcap}}, logits)
	case m.logitScale != 1:
		logits = m.op("scale", ir.Attrs{{Name: "factor", Value: m.logitScale}}, logits)
	}
	next := m.op("argmax", nil, append([]*ir.Value{logits}, m.mask()...)...)
	m.op("advance", nil, next, m.token, m.pos, m.slot, m.n, m.out, m.count)
	if m.err == nil {
		logits.Class, next.Class = ir.IO, ir.IO
	}
}
