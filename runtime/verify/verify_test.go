package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/exec"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// shortEntries are those whose kernels -short has the driver compile, of plans of the model with a cache of f16 and one
// slot.
var shortEntries = []string{"decode/2", "decode/1", "prefill/48"}

func TestPlan(t *testing.T) {
	model := writeModel(t)
	for _, c := range []struct {
		kv    ir.DType
		slots int
	}{{ir.F16, 1}, {ir.F32, 3}} {
		if testing.Short() && c.slots > 1 {
			continue
		}
		t.Run(fmt.Sprintf("%s of %d", c.kv, c.slots), func(t *testing.T) {
			plan := compileSlots(t, model, "llvmpipe", c.kv, c.slots)
			if testing.Short() {
				keepEntries(plan, shortEntries...)
			}
			src, dev := open(t, plan)
			var done, total int
			r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{
				Context: 75, Progress: func(d, n int) { done, total = d, n },
			})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := r.Print(&text); err != nil {
				t.Fatal(err)
			}
			if r.Failed > 0 {
				t.Errorf("\n%s", text.String())
			}
			want, decode := 0, 0
			for _, e := range plan.Entries {
				if e.Kind == "decode" {
					decode++
				}
				want += 2 * (len(e.Dispatches) + 1) // full and partial step, with replay
				if e.Rows == 1 {
					want -= len(e.Dispatches) + 1
				}
				if !strings.Contains(text.String(), e.Name) {
					t.Errorf("the text does not name %s:\n%s", e.Name, text.String())
				}
			}
			want += decode - 1 // widths
			for _, e := range plan.Entries {
				if !e.Exact() && e.Grain > 0 {
					want++
				}
			}
			if len(r.Results) != want || done != total || total == 0 {
				t.Errorf("%d results, want %d; progress %d of %d", len(r.Results), want, done, total)
			}
		})
	}
}

// TestSequences verifies the rule with state for rows of three sequences, and refuses an
// attention that takes those of a prompt as one.
func TestSequences(t *testing.T) {
	slots, entry := 3, "decode/8"
	if testing.Short() { // tiles of rows, and rows of one sequence in two of them
		slots, entry = 12, "decode/16"
	}
	plan := compileSlots(t, "../../testdata/models/gopher-moe-q4_k_m.gguf", "llvmpipe", ir.F16, slots)
	src, dev := open(t, plan)
	r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Entry: entry, Layers: []int{2, 3}, Context: 20})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed > 0 || r.Results[0].Sequences != slots {
		t.Errorf("%d failed, first %+v", r.Failed, r.First())
	}
	for _, op := range []string{"deltanet", "conv1d", "attention"} {
		used := func(g *ir.Group) bool {
			return slices.ContainsFunc(g.Ops, func(o *ir.Op) bool { return strings.HasPrefix(o.Kind.Name, op) })
		}
		if !slices.ContainsFunc(r.Results, func(x verify.Result) bool {
			return slices.ContainsFunc(plan.Program.Func(entry).Groups, func(g *ir.Group) bool { return g.Name == x.Site && used(g) })
		}) {
			t.Errorf("no %s was compared", op)
		}
	}

	plan = compileSlots(t, writeModel(t), "llvmpipe", ir.F16, 2)
	plan.Program.Func("prefill/48").Sequences = ir.ManySequences
	var refused []string
	for _, p := range plans.Check(plan) {
		if p.Rule != "sequences" || p.Entry != "prefill/48" {
			t.Error(p)
		}
		refused = append(refused, p.Site)
	}
	if want := []string{"blk.0.attention", "blk.1.attention"}; !slices.Equal(refused, want) {
		t.Errorf("refused are %v, want %v", refused, want)
	}
	src, dev = open(t, plan)
	if r, err = verify.Plan(t.Context(), plan, src, dev, verify.Options{Entry: "prefill/48", Context: 20}); err != nil {
		t.Fatal(err)
	}
	if first := r.First(); first == nil || first.Site != "blk.0.attention" || r.Failed != 4 { // in two layers and two steps
		t.Errorf("%d failed, first %+v", r.Failed, first)
	}
}

func TestLayers(t *testing.T) {
	plan := compile(t, writeModel(t), "llvmpipe", ir.F16)
	src, dev := open(t, plan)
	r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Entry: "prefill/48", Rows: 5, Layers: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	var sites []string
	for _, x := range r.Results {
		if x.Rows > 5 || strings.HasPrefix(x.Site, "blk.0.") {
			t.Errorf("compared %s with %d rows", x.Site, x.Rows)
		}
		sites = append(sites, x.Site)
	}
	for _, want := range []string{"embed", "blk.1.ffn_down", verify.Replay} {
		if !slices.Contains(sites, want) {
			t.Errorf("%s was not compared: %v", want, sites)
		}
	}
}

func TestRefuses(t *testing.T) {
	model := writeModel(t)
	host := compile(t, model, "host", ir.F16)
	if _, err := verify.Plan(t.Context(), host, nil, nil, verify.Options{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("plan without kernels: %v", err)
	}
	plan := compile(t, model, "llvmpipe", ir.F16)
	src, dev := open(t, plan)
	if _, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Entry: "decode/3"}); err == nil || !strings.Contains(err.Error(), "decode/3") {
		t.Errorf("unknown entry: %v", err)
	}
}

// TestFails breaks one dispatch in every way that a compiler could and demands
// that it, and only it, is named. -short breaks those of few entries.
func TestFails(t *testing.T) {
	model := writeModel(t)
	for _, c := range []struct {
		name, entry, site string
		spoil             func(t *testing.T, p *plans.Plan, d *plans.Dispatch)
		problem           string
	}{
		{"constant", "decode/4", "blk.1.ffn_gate+ffn_up", setConst("eps", math.Float32bits(0.5)), "off by more"},
		{"scale of attention", "prefill/48", "blk.1.attention", setConst("scale", math.Float32bits(0.2)), "off by more"},
		{"swapped caches", "prefill/48", "blk.0.attention", swapArgs("k", "v"), "off by more"},
		{"swapped weights", "decode/1", "blk.0.ffn_gate+ffn_up", swapRegions("ffn_gate", "ffn_up"), "off by more"},
		{"caches written in wrong order", "prefill/48", "blk.1.rope+kvwrite", swapRegions("blk.1.k", "blk.1.v"), "off by more"},
		{"other layer's cache", "decode/1", "blk.1.attention", replaceRegion("blk.1.k", "blk.0.k"), "not written"},
		{"grid too small", "prefill/128", "blk.1.ffn_down", func(_ *testing.T, _ *plans.Plan, d *plans.Dispatch) { d.Grid[1]-- }, "not written"},
		{"output elsewhere", "decode/1", "blk.0.ffn_down", shiftOutputs(64), "not written"},
		{"step block", "decode/2", "argmax+advance", swapArgs("pos", "slot"), "a wrong integer"},
	} {
		if testing.Short() && !slices.Contains(shortEntries, c.entry) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			plan := compile(t, model, "llvmpipe", ir.F16)
			c.spoil(t, plan, find(t, plan, c.entry, c.site))
			src, dev := open(t, plan)
			r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Entry: c.entry, Context: 40})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range r.Results {
				if (x.Difference != nil) != (x.Site == c.site) {
					t.Errorf("%s, %d rows: difference %+v", x.Site, x.Rows, x.Difference)
				}
			}
			first := r.First()
			if first == nil || first.Entry != c.entry || !strings.HasPrefix(first.Difference.Problem, c.problem) {
				t.Fatalf("first difference %+v, want %s", first, c.problem)
			}
			if text, err := json.Marshal(r); err != nil || !bytes.Contains(text, []byte(first.Difference.Problem)) {
				t.Errorf("JSON %s: %v", text, err)
			}
		})
	}
}

// meddler writes to the arena after a dispatch, or to the results after a run.
type meddler struct {
	*exec.Inspector
	dispatch int
	at       plans.Arg
}

func (m *meddler) spoil(ctx context.Context) error {
	return m.Overwrite(ctx, m.at, []byte{1, 2, 3, 4})
}

func (m *meddler) Dispatch(ctx context.Context, e *plans.Entry, i int) error {
	err := m.Inspector.Dispatch(ctx, e, i)
	if err == nil && i == m.dispatch {
		err = m.spoil(ctx)
	}
	return err
}

func (m *meddler) Wait(ctx context.Context, t runtime.Ticket) error {
	err := m.Inspector.Wait(ctx, t)
	if err == nil && m.dispatch < 0 {
		err = m.spoil(ctx)
	}
	return err
}

func TestSideEffects(t *testing.T) {
	plan := compile(t, writeModel(t), "llvmpipe", ir.F16)
	src, dev := open(t, plan)
	f := plan.Program.Func("decode/1")
	uses := f.Uses()
	const index = 2
	after := int64(0)
	for _, v := range f.Groups[index].Outputs(uses) {
		n, err := v.Type.Bytes(f.Rows, plan.Program.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		after = max(after, v.Offset+n)
	}
	cacheRow := plans.Arg{Space: "kv", Region: "blk.0.k", Offset: 3 * kvHeads * headDim * 2}
	for _, c := range []struct {
		m    meddler
		site string
		want string
	}{
		{meddler{dev, index, plans.Arg{Space: "arena", Offset: after}}, f.Groups[index].Name, "wrote outside of its outputs"},
		{meddler{dev, index, cacheRow}, f.Groups[index].Name, "cache row 3 is not of this step and has changed"},
		{meddler{dev, index, plans.Arg{Space: "step", Region: "out", Offset: 40}}, f.Groups[index].Name, "a wrong integer"},
		{meddler{dev, -1, plans.Arg{Space: "io", Region: plan.Entries[0].Logits}}, verify.Replay, "the recorded entry gives other bytes"},
	} {
		r, err := verify.Plan(t.Context(), plan, src, &c.m, verify.Options{Entry: "decode/1", Context: 40})
		if err != nil {
			t.Fatal(err)
		}
		if first := r.First(); first == nil || first.Site != c.site || !strings.HasPrefix(first.Difference.Problem, c.want) {
			t.Errorf("want %s, have %+v", c.want, first)
		}
	}
}

// stateMeddler changes an element of a recurrent state after a dispatch, in the row of its
// first head that has the least numbers, by a part of the head's largest.
type stateMeddler struct {
	*exec.Inspector
	dispatch int
	at       plans.Arg // the state
	dim      int       // of a head: rows and columns
	by       float32
	share    float32 // of the head's largest number, what the row's largest is
}

func (m *stateMeddler) Dispatch(ctx context.Context, e *plans.Entry, i int) error {
	if err := m.Inspector.Dispatch(ctx, e, i); err != nil || i != m.dispatch {
		return err
	}
	raw := make([]byte, 4*m.dim*m.dim)
	if err := m.Read(ctx, m.at, raw); err != nil {
		return err
	}
	head := make([]float32, m.dim*m.dim)
	if err := oracle.Decode(head, ir.F32, raw); err != nil {
		return err
	}
	most, row, least := float32(0), 0, float32(math.Inf(1))
	for i := range m.dim {
		x := head[i*m.dim:][:m.dim]
		top := max(slices.Max(x), -slices.Min(x))
		if most = max(most, top); top < least {
			row, least = i, top
		}
	}
	m.share = least / most
	head[row*m.dim] += m.by * most
	return m.Overwrite(ctx, m.at, oracle.Encode(nil, ir.F32, head))
}

// TestState holds that a row of a delta rule's state, whose numbers have the error of one element
// of the value, may be as wrong as the others, and not more.
func TestState(t *testing.T) {
	plan := compile(t, "../../testdata/models/gopher-moe-q4_k_m.gguf", "llvmpipe", ir.F16)
	src, dev := open(t, plan)
	f := plan.Program.Func("decode/1")
	index := slices.IndexFunc(f.Groups, func(g *ir.Group) bool {
		return slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "deltanet" })
	})
	op := f.Groups[index].Ops[slices.IndexFunc(f.Groups[index].Ops, func(op *ir.Op) bool { return op.Kind.Name == "deltanet" })]
	for _, c := range []struct {
		by     float32
		failed int
	}{{4e-6, 0}, {4e-5, 1}} {
		m := &stateMeddler{Inspector: dev, dispatch: index, at: plans.Arg{Space: "state", Region: op.Args[5].Name}, dim: op.Attrs.Int("head_dim"), by: c.by}
		r, err := verify.Plan(t.Context(), plan, src, m, verify.Options{Only: func(entry string, i int) bool { return entry == "decode/1" && i == index }})
		if err != nil {
			t.Fatal(err)
		}
		if m.share > 0.1 {
			t.Errorf("the least row has %g of its head's largest number, which shows nothing", m.share)
		}
		if r.Failed != c.failed {
			t.Errorf("%g of the head's largest number: %+v", c.by, r.First())
		}
	}
}

// TestWidths holds that decode entries whose results differ by less than what is tolerated are
// told apart.
func TestWidths(t *testing.T) {
	plan := compile(t, writeModel(t), "llvmpipe", ir.F16)
	entry, want := "decode/4", 3 // 4, 2 and 1 beside 8
	if testing.Short() {
		keepEntries(plan, shortEntries...)
		entry, want = "decode/1", 1
	}
	setConst("eps", math.Float32bits(2e-6))(t, plan, find(t, plan, entry, "blk.1.ffn_gate+ffn_up"))
	src, dev := open(t, plan)
	r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Layers: []int{1}, Rows: 3})
	if err != nil {
		t.Fatal(err)
	}
	first := r.First()
	if r.Failed != 1 || first.Site != verify.Widths || first.Entry != entry || first.Difference.Device == first.Difference.Oracle {
		t.Errorf("%d failed, first %+v", r.Failed, first)
	}
	widths := 0
	for _, x := range r.Results {
		if x.Site == verify.Widths {
			widths++
		}
	}
	if widths != want {
		t.Errorf("%d widths compared", widths)
	}
	alone, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{NoOracle: true, Rows: 3})
	if err != nil {
		t.Fatal(err)
	}
	if f := alone.First(); alone.Failed != 1 || f.Site != verify.Widths || f.Entry != entry {
		t.Errorf("without the oracle %d failed, first %+v", alone.Failed, f)
	}
	for _, x := range alone.Results {
		if x.Kernel != "" {
			t.Errorf("without the oracle %s was compared", x.Site)
		}
	}
}

// TestWidestStep: the widest step, of 128 rows, gives those of as many sequences the bits that they have alone.
func TestWidestStep(t *testing.T) {
	plan := compileSlots(t, writeModel(t), "llvmpipe", ir.F16, 128)
	keepEntries(plan, "decode/1", "decode/128")
	src, dev := open(t, plan)
	r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Layers: []int{1}, Context: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed > 0 {
		t.Errorf("%d failed, first %+v %+v", r.Failed, r.First(), r.First().Difference)
	}
	widths, rows := 0, 0
	for _, x := range r.Results {
		if x.Site == verify.Widths {
			widths, rows = widths+1, rows+x.Sequences
		}
	}
	if widths != 1 || rows != 128 {
		t.Errorf("%d widths of %d sequences compared", widths, rows)
	}
}

func find(t *testing.T, p *plans.Plan, entry, site string) *plans.Dispatch {
	t.Helper()
	for i := range p.Entries {
		e := &p.Entries[i]
		for j := range e.Dispatches {
			if e.Name == entry && e.Dispatches[j].Site == site {
				return &e.Dispatches[j]
			}
		}
	}
	t.Fatalf("no %s in %s", site, entry)
	return nil
}

type spoiler = func(*testing.T, *plans.Plan, *plans.Dispatch)

// setConst gives the dispatch a pipeline of its own with another constant.
func setConst(name string, value uint32) spoiler {
	return func(t *testing.T, p *plans.Plan, d *plans.Dispatch) {
		own := p.Pipelines[d.Pipeline]
		own.Consts = slices.Clone(own.Consts)
		i := slices.IndexFunc(own.Consts, func(c plans.Const) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("no constant %s in %v", name, own.Consts)
		}
		own.Consts[i].Value = value
		d.Pipeline = len(p.Pipelines)
		p.Pipelines = append(p.Pipelines, own)
	}
}

func swap(t *testing.T, d *plans.Dispatch, is func(plans.Arg, string) bool, a, b string) {
	at := func(what string) *plans.Arg {
		i := slices.IndexFunc(d.Args, func(x plans.Arg) bool { return is(x, what) })
		if i < 0 {
			t.Fatalf("no argument %s in %+v", what, d.Args)
		}
		return &d.Args[i]
	}
	x, y := at(a), at(b)
	x.Space, y.Space = y.Space, x.Space
	x.Region, y.Region = y.Region, x.Region
	x.Offset, y.Offset = y.Offset, x.Offset
}

func swapArgs(a, b string) spoiler {
	return func(t *testing.T, _ *plans.Plan, d *plans.Dispatch) {
		swap(t, d, func(x plans.Arg, s string) bool { return x.Name == s }, a, b)
	}
}

func swapRegions(a, b string) spoiler {
	return func(t *testing.T, _ *plans.Plan, d *plans.Dispatch) {
		swap(t, d, func(x plans.Arg, s string) bool { return strings.Contains(x.Region, s) }, a, b)
	}
}

func replaceRegion(from, to string) spoiler {
	return func(t *testing.T, _ *plans.Plan, d *plans.Dispatch) {
		for i := range d.Args {
			if d.Args[i].Region == from {
				d.Args[i].Region = to
				return
			}
		}
		t.Fatalf("no region %s in %+v", from, d.Args)
	}
}

func shiftOutputs(bytes int64) spoiler {
	return func(_ *testing.T, _ *plans.Plan, d *plans.Dispatch) {
		for i := range d.Args {
			if d.Args[i].Write {
				d.Args[i].Offset += bytes
			}
		}
	}
}
