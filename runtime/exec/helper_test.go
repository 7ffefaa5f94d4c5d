package exec

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver/fake"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// kernels are those of toyPlan: the token behind x is (4x+7) mod 97.
var kernels = map[string]fake.Kernel{
	"embed":   func(a [][]byte, _ [3]uint32) { put(a[1], get(a[0])) },
	"thrice":  func(a [][]byte, _ [3]uint32) { put(a[1], 3*get(a[0])) },
	"seven":   func(a [][]byte, _ [3]uint32) { put(a[1], 7+get(a[0])) },
	"advance": advance,
	"head": func(a [][]byte, grid [3]uint32) {
		next := (get(a[0]) + get(a[1])) % 97
		put(a[3], next)
		logits := contents.Numbers[float32](a[2])
		for i := range grid[0] {
			logits[i] = float32(1000*next + i)
		}
	},
}

func advance(a [][]byte, _ [3]uint32) { // next, token, pos, count, out
	put(a[4][4*get(a[3]):], get(a[0]))
	put(a[1], get(a[0]))
	put(a[2], get(a[2])+1)
	put(a[3], get(a[3])+1)
}

func after(x int32) int32 { return (4*x + 7) % 97 }

func get(b []byte) uint32    { return binary.LittleEndian.Uint32(b) }
func put(b []byte, x uint32) { binary.LittleEndian.PutUint32(b, x) }

const toyVocab = 100

// toyPlan has two entries that compute the same, decode/1 and prefill/4; prefill/4 does not advance.
func toyPlan() *plans.Plan {
	p := &plans.Plan{Header: plans.Header{Slots: 2, Ring: 8, Ctx: 64}, Program: &ir.Program{}}
	p.Memory = plans.Memory{
		Arena: 1024,
		State: []plans.Region{{Name: "state", Bytes: 2 * stateBytes}},
		Step:  []plans.Region{{Name: "token", Bytes: 16}, {Name: "pos", Bytes: 16}, {Name: "count", Bytes: 4}, {Name: "out", Bytes: 32}},
	}
	index := map[string]int{}
	for _, name := range []string{"embed", "thrice", "seven", "head", "advance"} {
		index[name] = len(p.Pipelines)
		p.Pipelines = append(p.Pipelines, plans.Pipeline{Module: len(p.Modules)})
		p.Modules = append(p.Modules, plans.Module{Name: name})
	}
	for _, kind := range []string{"decode/1", "prefill/4"} {
		e := plans.Entry{Name: kind, Rows: 1, Logits: kind + ":%logits", Next: kind + ":%next"}
		p.Memory.IO = append(p.Memory.IO, plans.Region{Name: e.Logits, Bytes: 4 * toyVocab}, plans.Region{Name: e.Next, Bytes: 16})
		add := func(stage int, kernel string, args ...plans.Arg) {
			e.Dispatches = append(e.Dispatches, plans.Dispatch{Site: kernel, Pipeline: index[kernel], Order: ir.Order{Stage: stage, Waits: stage}, Args: args, Grid: [3]int{toyVocab, 1, 1}})
		}
		step := func(name string) plans.Arg { return plans.Arg{Space: "step", Region: name} }
		io := func(name string) plans.Arg { return plans.Arg{Space: "io", Region: name} }
		arena := func(at int64) plans.Arg { return plans.Arg{Space: "arena", Offset: at} }
		add(0, "embed", step("token"), arena(0))
		add(1, "thrice", arena(0), arena(256))
		add(1, "seven", arena(0), arena(512))
		add(2, "head", arena(256), arena(512), io(e.Logits), io(e.Next))
		if kind == "decode/1" {
			add(3, "advance", io(e.Next), step("token"), step("pos"), step("count"), step("out"))
		}
		p.Entries = append(p.Entries, e)
	}
	return p
}

const stateBytes = 4096

// pagedPlan is toyPlan with a cache of 4 pages, of which sequences have two.
func pagedPlan() *plans.Plan {
	p := toyPlan()
	p.Memory.KV = []plans.Region{{Name: "cache", Bytes: 4 * 64 * 4, Kept: &plans.Kept{Kind: "pages", Sequences: 2, Rows: 128, RowBytes: 4, Page: 64, Pages: 4}}}
	p.Memory.Step = append(p.Memory.Step, plans.Region{Name: "pages", Bytes: 16})
	return p
}

// open makes an executor of toyPlan on a fake device, which change may change first.
// maskedPlan is toyPlan with a mask of two rows of four words, which bounds the choice of the first entry's last
// dispatch.
func maskedPlan() *plans.Plan {
	p := toyPlan()
	p.Memory.Step = append(p.Memory.Step, plans.Region{Name: ir.StepMasked, Bytes: 16}, plans.Region{Name: ir.StepMask, Bytes: 32})
	mask := p.Program.AddGlobal(ir.StepMask, ir.Step, ir.MakeType(ir.I32, 2, 4))
	f := &ir.Func{Name: p.Entries[0].Name}
	for range p.Entries[0].Dispatches {
		f.Groups = append(f.Groups, &ir.Group{Ops: []*ir.Op{{}}})
	}
	f.Groups[len(f.Groups)-1].Ops[0].Args = []*ir.Value{mask}
	p.Program.Funcs = []*ir.Func{f}
	return p
}

func open(t *testing.T, change func(d *fake.Device)) (*Executor, *fake.Device) {
	t.Helper()
	return openPlan(t, toyPlan(), change)
}

func openPlan(t *testing.T, p *plans.Plan, change func(d *fake.Device)) (*Executor, *fake.Device) {
	t.Helper()
	d := fake.New(kernels)
	if change != nil {
		change(d)
	}
	x, err := New(t.Context(), d, p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Hold(false)
		x.Close()
		if n := d.Used(); n != 0 {
			t.Errorf("%d bytes are left", n)
		}
	})
	d.Log()
	return x, d
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// begin writes the step block for a token.
func begin(t *testing.T, x *Executor, token int32) {
	t.Helper()
	check(t, x.Write("token", []int32{token}))
	check(t, x.Write("pos", []int32{0}))
	check(t, x.Write("count", []int32{0}))
}

func wantInts(t *testing.T, x *Executor, region string, want ...int32) {
	t.Helper()
	have, err := x.Ints(region)
	check(t, err)
	if len(have) < len(want) || !slices.Equal(have[:len(want)], want) {
		t.Errorf("%s is %d, want %d", region, have, want)
	}
}
