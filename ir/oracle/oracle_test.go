package oracle

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// source maps the names of weights to their bytes.
type source map[string][]byte

func (s source) Weight(name string) ([]byte, error) {
	if b, ok := s[name]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("no tensor %s", name)
}

func f32Bytes(x []float32) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

type fataler interface {
	Helper()
	Fatal(...any)
}

// parse makes a program of one function from its globals and its body.
func parse(t fataler, ctx, slots, rows int, globals, body string) *ir.Program {
	t.Helper()
	return parseFor(t, ir.ManySequences, ctx, slots, rows, globals, body)
}

func parseFor(t fataler, sequences ir.Sequences, ctx, slots, rows int, globals, body string) *ir.Program {
	t.Helper()
	head := ir.Print(&ir.Program{Ctx: ctx, Slots: slots})
	p, err := ir.Parse(fmt.Sprintf("%s\n%s\nfunc \"f\" rows=%d sequences=%s run=%d class=prompt {\n%s\n}\n", head, globals, rows, sequences, rows, body))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func machine(t fataler, p *ir.Program, src source, o Options) *Machine {
	t.Helper()
	m, err := New(context.Background(), p, src, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func run(t fataler, m *Machine) {
	t.Helper()
	if err := m.Run(context.Background(), m.prog.Funcs[0]); err != nil {
		t.Fatal(err)
	}
}

// eval runs the groups one by one: for ops by themselves, which take rows as no step has them.
func eval(t fataler, m *Machine) {
	t.Helper()
	f := m.prog.Funcs[0]
	for _, g := range f.Groups {
		if err := m.RunGroup(f, g); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *Machine) setFloats(name string, x ...float32) { copy(m.Floats(m.prog.Global(name)), x) }
func (m *Machine) setInts(name string, x ...int32)     { copy(m.Ints(m.prog.Global(name)), x) }

// last returns the result of the last op that has one.
func (m *Machine) last() *ir.Value {
	var v *ir.Value
	for _, op := range m.prog.Funcs[0].Ops() {
		if op.Result != nil {
			v = op.Result
		}
	}
	return v
}

func near(t fataler, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if len(got) < len(want) {
		t.Fatal(fmt.Sprintf("%s: %d elements, want %d", what, len(got), len(want)))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tol*(1+math.Abs(w))) {
			t.Fatal(fmt.Sprintf("%s: element %d is %g, want %g", what, i, got[i], w))
		}
	}
}

func TestEveryOpHasAnEvaluator(t *testing.T) {
	for _, k := range ir.OpKinds() {
		if evaluators[k.Name] == nil {
			t.Errorf("op %s has no evaluator", k.Name)
		}
	}
	if len(evaluators) != len(ir.OpKinds()) {
		t.Errorf("%d evaluators for %d ops", len(evaluators), len(ir.OpKinds()))
	}
}

// tiny is a transformer of one layer whose loop is closed; a KV head serves two heads.
const tinyGlobals = `
weight @emb : f32[32, 64]
weight @n1 : f32[64]
weight @n2 : f32[64]
weight @hn : f32[16]
weight @q : f32[64, 64]
weight @k : f32[32, 64]
weight @v : f32[32, 64]
weight @o : f32[64, 64]
weight @gate : f32[96, 64]
weight @up : f32[96, 64]
weight @down : f32[64, 96]
table @rope {kind="rope", freqs=[1.0, 0.1, 0.01, 0.001], mscale=1.0} : f32[L, 8]
kv @kc : f16[2, L, 32]
kv @vc : f16[2, L, 32]
step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
step @out : i32[8]
step @count : i32[1]
`

const tinyBody = `
  %0 = embed @token, @emb {scale=2.0} : f32[T, 64]
  %1 = rmsnorm %0, @n1 {eps=1e-06, group=64} : f32[T, 64]
  %2 = linear %1, @q : f32[T, 64]
  %3 = linear %1, @k : f32[T, 32]
  %4 = linear %1, @v : f32[T, 32]
  %5 = rmsnorm %2, @hn {eps=1e-06, group=16} : f32[T, 64]
  %6 = rope %5, @pos, @rope {kind="neox", head_dim=16, n_rot=8} : f32[T, 64]
  %7 = rope %3, @pos, @rope {kind="norm", head_dim=16, n_rot=8} : f32[T, 32]
  kvwrite %7, @pos, @slot, @kc
  kvwrite %4, @pos, @slot, @vc
  %8 = attention %6, @kc, @vc, @pos, @slot {head_dim=16, heads=4, kv_heads=2, scale=0.25} : f32[T, 64]
  %9 = linear %8, @o : f32[T, 64]
  %10 = add %0, %9 : f32[T, 64]
  %11 = rmsnorm %10, @n2 {eps=1e-06, group=64} : f32[T, 64]
  %12 = linear %11, @gate : f32[T, 96]
  %13 = linear %11, @up : f32[T, 96]
  %14 = glu %12, %13 {act="silu"} : f32[T, 96]
  %15 = linear %14, @down : f32[T, 64]
  %16 = add %10, %15 : f32[T, 64]
  %17 = last_row %16, @n : f32[1, 64]
  %18 = linear %17, @emb : io f32[1, 32]
  %19 = argmax %18 : io i32[1]
  advance %19, @token, @pos, @slot, @n, @out, @count
`

func tinyMachine(t fataler, rows int, o Options) *Machine {
	t.Helper()
	p := parse(t, 16, 2, rows, tinyGlobals, tinyBody)
	src, r := source{}, rand.New(rand.NewPCG(1, 2))
	for _, g := range p.Globals {
		if g.Class == ir.Weight {
			n, _ := g.Type.Elements(1, 1)
			x := random(r, int(n))
			for i := range x {
				x[i] *= 0.2
			}
			src[g.Name] = f32Bytes(x)
		}
	}
	return machine(t, p, src, o)
}

// feed runs tokens as steps of the given sizes in one slot and returns the logits
// and what the loop chose next.
func feed(t fataler, m *Machine, slot int32, chunks ...int) ([]float32, int32) {
	t.Helper()
	at := int32(0)
	for _, n := range chunks {
		for i := range n {
			m.Ints(m.prog.Global("token"))[i] = (7*at + 3) % 32
			m.Ints(m.prog.Global("pos"))[i] = at
			m.Ints(m.prog.Global("slot"))[i] = slot
			at++
		}
		m.setInts("n", int32(n))
		run(t, m)
		if pos, n := m.Ints(m.prog.Global("pos"))[0], m.Ints(m.prog.Global("n"))[0]; pos != at || n != 1 {
			t.Fatal(fmt.Sprintf("after %d tokens: pos %d, n %d", at, pos, n))
		}
	}
	logits := m.prog.Funcs[0].Ops()
	return append([]float32(nil), m.Floats(logits[len(logits)-3].Result)...), m.Ints(m.last())[0]
}

func TestChunksGiveTheSameLogits(t *testing.T) {
	want, next := feed(t, tinyMachine(t, 12, Options{Threads: 1}), 0, 12)
	for _, chunks := range [][]int{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {5, 7}, {12}} {
		for threads := 1; threads <= 3; threads++ {
			for _, budget := range []int64{0, 30000, 1 << 20} {
				m := tinyMachine(t, 12, Options{Threads: threads, CacheBytes: budget})
				got, id := feed(t, m, 1, chunks...)
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("chunks %v, %d threads, budget %d: logit %d is %g, want %g", chunks, threads, budget, i, got[i], want[i])
					}
				}
				if id != next {
					t.Fatalf("chunks %v: next %d, want %d", chunks, id, next)
				}
			}
		}
	}
}

func TestTokenLoopRunsToTheEndOfTheContext(t *testing.T) {
	m := tinyMachine(t, 4, Options{})
	feed(t, m, 0, 4)
	for range 12 {
		run(t, m)
	}
	if c := m.Ints(m.prog.Global("count"))[0]; c != 13 {
		t.Errorf("count %d, want 13", c)
	}
	err := m.Run(context.Background(), m.prog.Funcs[0])
	if err == nil || !strings.Contains(err.Error(), "pos 16 is not in [0, 16)") {
		t.Errorf("step past the context: %v", err)
	}
}

func TestTemporariesAreReused(t *testing.T) {
	m := tinyMachine(t, 12, Options{Threads: 2})
	feed(t, m, 0, 12)
	held, buffers := len(m.values), freeBuffers(m)
	feed(t, m, 0, 5, 7)
	if len(m.values) != held || freeBuffers(m) != buffers {
		t.Errorf("memory grows: %d values after %d, %d buffers after %d", len(m.values), held, freeBuffers(m), buffers)
	}
	if temporaries := 18; buffers >= temporaries-5 {
		t.Errorf("%d buffers for %d temporaries", buffers, temporaries)
	}
	if _, err := m.Read(m.prog.Funcs[0], m.prog.Funcs[0].Ops()[0].Result); err == nil {
		t.Error("read of a temporary that has ended: no error")
	}
}

func freeBuffers(m *Machine) int {
	n := 0
	for _, s := range m.free {
		n += len(s)
	}
	return n
}

// placed holds values that share the arena: %2 lies where %0 was.
const placed = `
step @a : f32[T, 4]
step @b : f32[T, 4]

func "f" rows=2 sequences=many run=2 class=exact {
  group "one" stage=0 waits=0 {
    call "" kernel="k" wave=0 grid=[1, 1, 1] const={} args=[] why=""
    %0 = add @a, @b : f32[T, 4] at 32
  }
  group "two" stage=1 waits=1 {
    call "" kernel="k" wave=0 grid=[1, 1, 1] const={} args=[] why=""
    %1 = add %0, %0 : f32[T, 4] at 0
  }
  group "three" stage=2 waits=2 {
    call "" kernel="k" wave=0 grid=[1, 1, 1] const={} args=[] why=""
    %2 = add %1, @a : f32[T, 4] at 32
    %3 = add %2, %1 : io f32[T, 4]
  }
}
`

func TestPlacedValuesShareTheArena(t *testing.T) {
	p, err := ir.Parse(ir.Print(&ir.Program{Stage: ir.Place, Ctx: 8, Slots: 1}) + placed)
	if err != nil {
		t.Fatal(err)
	}
	m, f := machine(t, p, nil, Options{}), p.Funcs[0]
	m.setFloats("a", 1, 2, 3, 4, 5, 6, 7, 8)
	m.setFloats("b", 10, 20, 30, 40, 50, 60, 70, 80)
	run(t, m)
	near(t, "%3", m.Floats(m.last()), []float64{45, 90, 135, 180, 225, 270, 315, 360}, 0)
	ops := f.Ops()
	if &m.Floats(ops[0].Result)[0] != &m.Floats(ops[2].Result)[0] {
		t.Error("values at one offset have different memory")
	}

	// One group alone, on inputs that were written.
	in := f32Bytes([]float32{1, 1, 1, 1, 2, 2, 2, 2})
	if err := m.Write(f, ops[0].Result, in); err != nil {
		t.Fatal(err)
	}
	if err := m.RunGroup(f, f.Groups[1]); err != nil {
		t.Fatal(err)
	}
	out, err := m.Read(f, ops[1].Result)
	if want := f32Bytes([]float32{2, 2, 2, 2, 4, 4, 4, 4}); err != nil || !bytes.Equal(out, want) {
		t.Errorf("read % x, %v; want % x", out, err, want)
	}
}

func TestReadIsWhatWasWritten(t *testing.T) {
	m := tinyMachine(t, 3, Options{})
	f, r := m.prog.Funcs[0], rand.New(rand.NewPCG(3, 4))
	vs := append([]*ir.Value{}, m.prog.Globals...)
	for _, op := range f.Ops() {
		if op.Result != nil {
			vs = append(vs, op.Result)
		}
	}
	for _, v := range vs {
		n, err := v.Type.Bytes(f.Rows, m.prog.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(r.IntN(120)) // no NaN in any dtype
		}
		err = m.Write(f, v, data)
		if readOnly := v.Class == ir.Weight || v.Class == ir.Table; readOnly != (err != nil) {
			t.Fatalf("write %s: %v", label(v), err)
		} else if readOnly {
			continue
		}
		if got, err := m.Read(f, v); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("read %s: %v, or other bytes", label(v), err)
		}
		if m.Write(f, v, data[1:]) == nil {
			t.Fatalf("write %s: a byte too few gives no error", label(v))
		}
	}
}

// TestStepsOfSequences gives a function of one sequence and one of many steps that keep what
// they say of their rows and steps that do not.
func TestStepsOfSequences(t *testing.T) {
	for _, c := range []struct {
		pos, slot []int32
		one, many string // the errors, empty for none
	}{
		{pos: []int32{4, 5, 6}, slot: []int32{1, 1, 1}},
		{pos: []int32{4, 9, 0}, slot: []int32{1, 2, 0}, one: "row 1: slot 2 in a step of slot 1"},
		{pos: []int32{4, 0, 1}, slot: []int32{1, 0, 0}, one: "row 1: slot 0"},
		{pos: []int32{4, 5, 0}, slot: []int32{2, 2, 1}, one: "row 2: slot 1"},
		{pos: []int32{4, 5, 7}, slot: []int32{1, 1, 1}, one: "row 2: position 7 does not follow 5", many: "row 2: position 7"},
		{pos: []int32{4, 4, 5}, slot: []int32{1, 1, 1}, one: "row 1: position 4", many: "row 1: position 4"},
		{pos: []int32{4, 0, 5}, slot: []int32{1, 0, 1}, one: "row 1: slot 0", many: "row 2: slot 1 again"},
	} {
		for sequences, want := range map[ir.Sequences]string{ir.OneSequence: c.one, ir.ManySequences: c.many} {
			p := parseFor(t, sequences, 16, 3, 4, "step @n : i32[1]\nstep @pos : i32[T]\nstep @slot : i32[T]\nkv @c : f16[3, L, 4]\nstep @x : f32[T, 4]\n",
				"kvwrite @x, @pos, @slot, @c")
			m := machine(t, p, nil, Options{})
			m.setInts("n", 3)
			m.setInts("pos", c.pos...)
			m.setInts("slot", c.slot...)
			err := m.Run(t.Context(), p.Funcs[0])
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: positions %d of slots %d: %v, want %q", sequences, c.pos, c.slot, err, want)
			}
		}
	}
}

func TestBadStepsGiveErrors(t *testing.T) {
	for _, c := range []struct {
		global string
		value  int32
		want   string
	}{
		{"token", -1, "embed: row 1: ids -1 is not in [0, 32)"},
		{"token", 32, "ids 32"},
		{"pos", 16, "rope: row 1: pos 16 is not in [0, 16)"},
		{"pos", math.MinInt32, "pos -2147483648"},
		{"slot", 2, "kvwrite: row 1: slot 2 is not in [0, 2)"},
		{"slot", -1, "slot -1"},
	} {
		m := tinyMachine(t, 3, Options{})
		m.setInts("n", 2)
		m.setInts("slot", 0, 1)
		m.setInts(c.global, 0, c.value)
		err := m.Run(context.Background(), m.prog.Funcs[0])
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %d: %v, want %q", c.global, c.value, err, c.want)
		}
		m.setInts("slot", 0, 1)
		if c.global != "slot" {
			m.setInts(c.global, 0, 0)
		}
		run(t, m) // the machine goes on
	}
	for _, n := range []int32{-1, 0, 4} {
		m := tinyMachine(t, 3, Options{})
		m.setInts("n", n)
		if err := m.Run(context.Background(), m.prog.Funcs[0]); err == nil || !strings.Contains(err.Error(), "rows") {
			t.Errorf("n %d: %v", n, err)
		}
	}
	m := tinyMachine(t, 3, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Run(ctx, m.prog.Funcs[0]); err == nil {
		t.Error("cancelled context: no error")
	}
	if err := m.Run(context.Background(), &ir.Func{Name: "other"}); err == nil {
		t.Error("function of no program: no error")
	}
	m.setInts("n", 1)
	if err := m.RunGroup(m.prog.Funcs[0], m.prog.Funcs[0].Groups[1]); err == nil || !strings.Contains(err.Error(), "x has no value yet") {
		t.Errorf("group before its inputs: %v", err)
	}
}

func TestBadProgramsGiveErrors(t *testing.T) {
	for _, c := range []struct{ globals, body, want string }{
		{"weight @w : f32[4, 4]", "", "no tensor w"},
		{"weight @short : f32[4, 5]", "", "takes 80 bytes, not 64"},
		{"weight @short : i64[2, 4]", "", "not supported"},
		{"weight @short : f32[T, 4]", "", "symbolic"},
		{"step @x : q8_0[T, 32]", "", "only weights"},
		{"kv @x : f32[1, 16777215, 16777215]", "", "do not fit in memory"},
		{"table @x {kind=\"sin\"} : f32[L, 4]", "", "unknown kind of table \"sin\""},
		{"table @x {kind=\"rope\", freqs=[1.0], mscale=1.0} : f32[L, 4]", "", "1 frequencies for rows of 4"},
		{"table @x {kind=\"rope\", freqs=[1.0], mscale=1.0} : f32[2, L]", "", "not f32[L, width]"},
		{"step @n : f32[1]", "", "is not step i32[1]"},
	} {
		p := parse(t, 8, 1, 2, c.globals, c.body)
		_, err := New(t.Context(), p, source{"short": make([]byte, 64)}, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.globals, err, c.want)
		}
	}
}

func TestRopeTable(t *testing.T) {
	p := parse(t, 5000, 1, 1, `table @x {kind="rope", freqs=[1.0, 0.37], mscale=1.5} : f32[L, 4]`, "")
	x, err := Table(t.Context(), p.Globals[0], 5000)
	if err != nil {
		t.Fatal(err)
	}
	for _, pos := range []int{0, 1, 4999} {
		a, b := float64(pos), float64(pos)*0.37
		want := []float64{1.5 * math.Cos(a), 1.5 * math.Sin(a), 1.5 * math.Cos(b), 1.5 * math.Sin(b)}
		near(t, "table", x[4*pos:], want, 1e-7)
	}
}

// TestNewBounds holds that a machine is not made for want of interest or of memory.
func TestNewBounds(t *testing.T) {
	p := parse(t, 5000, 1, 1, `table @x {kind="rope", freqs=[1.0, 0.37], mscale=1.5} : f32[L, 4]`, "")
	need, err := Bytes(p)
	if err != nil || need < 4*5000*4 || need > 4*5000*4+4096 {
		t.Errorf("needs %d bytes, %v", need, err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	for _, x := range []struct {
		ctx  context.Context
		most int64
		want string
	}{{t.Context(), need, ""}, {t.Context(), need - 1, "context 5000 needs"}, {gone, 0, "context canceled"}} {
		_, err := New(x.ctx, p, nil, Options{MostBytes: x.most})
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%d bytes at most: %v, want %q", x.most, err, x.want)
		}
	}
	if _, err := Table(gone, p.Globals[0], 5000); err == nil {
		t.Error("a table is made though nobody waits for it")
	}
}
