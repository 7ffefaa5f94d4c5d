package emulate_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/internal/rdna"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
)

func TestMain(m *testing.M) {
	radv.Main()
	os.Exit(m.Run())
}

// groups have what waits and barriers order: sums over a workgroup, tables in shared memory, and workgroups of which
// the last one adds what the others left.
var groups = []kerneltest.Case{
	{Family: "rownorm", Rows: 1, Globals: "step @a : f32[T, 1030]\nweight @w : f32[1030]\n", Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=1030} : io f32[T, 1030]"},
	{Family: "argmax", Rows: 1, Given: map[string][]byte{"x": peaks(4002, 300, 2600)}, Globals: "step @arrivals : i32[8]\nstep @x : f32[T, 4002]\n",
		Group: "%0 = argmax_split @x {splits=2} : f32[T, 4]\n%1 = argmax_merge %0 {splits=2} : io i32[T]"},
	{Family: "attention_split", Rows: 1, Ctx: 512, Pos: []int{300}, Globals: "step @q : f32[T, 256]\nkv @k : f16[1, L, 64]\nkv @v : f16[1, L, 64]\nstep @arrivals : i32[64]\n",
		Group: "%10 = attention_split @q, @k, @v, @pos, @slot {head_dim=64, heads=4, kv_heads=1, scale=0.125, splits=2, block=8, rows=1} : f32[T, 528]\n" +
			"%0 = attention_merge %10 {head_dim=64, heads=4, splits=2} : io f32[T, 256]"},
	kerneltest.DeltaTest("norm decay sigmoid", "mod", 64, 1, 1, kerneltest.Case{Family: "delta", Slots: 1, Rows: 2, Pos: []int{5}}),
}

// peaks are n numbers of which those at two places are the largest. argmax has two splits, whose lanes look at eight
// pairs: the largest is in the first pair of one split, and in the second of the other.
func peaks(n int, at ...int) []byte {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%97) / 97
	}
	for i, place := range at {
		x[place] = float32(2 + i)
	}
	return oracle.Encode(nil, ir.F32, x)
}

// trial is a kernel with its code, its arguments, and what it leaves.
type trial struct {
	t      *testing.T
	d      *emulate.Device
	k      radv.Kernel
	code   *rdna.Kernel
	launch rdna.Launch
	args   [][]byte
	want   [][]byte
	seen   []bool
}

// trials are the first candidates of groups for a target.
func trials(t *testing.T, name string) (list []*trial) {
	t.Helper()
	on := kerneltest.Lookup(t, name)
	d, err := emulate.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	for _, c := range groups {
		c.Ctx, c.Slots = max(64, c.Ctx), 1
		first := true
		c.FirstOf(t, on, func(_ testing.TB, k kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
			if !first {
				return nil
			}
			first = false
			x, values := newTrial(t, d, k, sizes, data)
			list = append(list, x)
			return values
		})
	}
	return list
}

func newTrial(t *testing.T, d *emulate.Device, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) (*trial, map[*ir.Value][]byte) {
	t.Helper()
	f, spec, module := kerneltest.Lowered(t, c)
	size, err := f.WorkgroupSize(spec)
	if err != nil {
		t.Fatal(err)
	}
	x := &trial{t: t, d: d, k: radv.Kernel{Name: c.Kernel, Words: module, Consts: spec, Wave: c.Wave, Full: int(size)%c.Wave == 0},
		launch: rdna.Launch{Grid: c.Grid, Workgroup: int(size), Limit: 1e6}}
	if x.code, _, err = d.Code(t.Context(), &x.k); err != nil {
		t.Fatal(err)
	}
	values, index := map[*ir.Value][]byte{}, map[*ir.Value]int{}
	for i, o := range c.Operands {
		if values[o.Value] == nil {
			values[o.Value] = bytes.Repeat([]byte{0xff}, sizes(o.Value))
			copy(values[o.Value], data[o.Value])
			index[o.Value] = len(x.args)
			x.args = append(x.args, values[o.Value])
			x.launch.Args = append(x.launch.Args, &rdna.Buffer{Name: o.Name})
		}
		b := x.launch.Args[index[o.Value]]
		b.Writable = b.Writable || f.Args[i].Access&kernel.Write != 0
	}
	buffers := x.launch.Args
	x.launch.Args = nil
	for _, o := range c.Operands {
		x.launch.Args = append(x.launch.Args, buffers[index[o.Value]])
	}
	x.seen = make([]bool, len(x.code.Code))
	x.launch.Seen = x.seen
	if x.want, err = x.run(x.code.Code); err != nil {
		t.Fatal(err)
	}
	x.launch.Seen = nil
	for v, i := range index {
		values[v] = x.want[i]
	}
	return x, values
}

// run runs code on fresh copies of the arguments and returns what it leaves in them.
func (x *trial) run(code []uint32) (left [][]byte, err error) {
	k, l := *x.code, x.launch
	k.Code, l.Kernel = code, &k
	seen := map[*rdna.Buffer]bool{}
	for _, b := range l.Args {
		if !seen[b] {
			seen[b] = true
			b.Data = slices.Clone(x.args[len(left)])
			left = append(left, b.Data)
		}
	}
	_, err = x.d.Run(x.t.Context(), &x.k, l)
	return left, err
}

// found reports whether a run of changed code faults, or leaves something else.
func (x *trial) found(code []uint32) bool {
	left, err := x.run(code)
	var fault *rdna.Fault
	if err != nil && !errors.As(err, &fault) {
		return true // it does not decode
	}
	return err != nil || !slices.EqualFunc(left, x.want, bytes.Equal)
}

// nop is s_nop 0.
const nop = 0xbf800000

// without returns the code with instructions replaced by nothing.
func (x *trial) without(list ...*rdna.Inst) []uint32 {
	code := slices.Clone(x.code.Code)
	for _, in := range list {
		for i := range in.Code() {
			code[in.PC+i] = nop
		}
	}
	return code
}

// spare are waits and barriers that order nothing in these launches.
var spare = []struct{ kernel, text, why string }{
	{"argmax", "s_barrier_wait 0xffff", "of one row the lane that stores is the one that counts"},
	{"argmax", "s_barrier", "the same"},
	{"argmax", "s_waitcnt_vscnt null, 0x0", "nothing of the launch looks at the counter once the last workgroup has set it back"},
	{"attention_split", "s_waitcnt_vscnt null, 0x0", "the same"},
}

// isSpare reports whether the instruction may be one of spare, each of which is left once in a kernel.
func isSpare(used map[string]bool, kernel, text string) bool {
	for _, s := range spare {
		if key := kernel + text; strings.HasPrefix(kernel, s.kernel+" ") && text == s.text && !used[key] {
			used[key] = true
			return true
		}
	}
	return false
}

// TestWaitsAndBarriers leaves out waits and barriers, one at a time: each that orders something is missed.
func TestWaitsAndBarriers(t *testing.T) {
	tried, spares := map[string]int{}, 0
	for _, name := range []string{"gfx1201", "gfx1100"} {
		for _, x := range trials(t, name) {
			_, p, err := x.d.Code(t.Context(), &x.k)
			if err != nil {
				t.Fatal(err)
			}
			var signal *rdna.Inst
			used := map[string]bool{}
			without := func(what string, left ...*rdna.Inst) {
				tried[what]++
				in := left[0]
				if x.found(x.without(left...)) {
					return
				}
				spares++
				if !isSpare(used, x.k.Name, in.String()) {
					t.Errorf("%s: %s: not missed: %s at %#x", name, x.k.Name, in, 4*in.PC)
				}
			}
			p.Insts(func(in *rdna.Inst) {
				switch {
				case !x.seen[in.PC]:
				case in.Name() == "s_barrier_signal":
					signal = in
				case in.Barrier():
					left := []*rdna.Inst{in}
					if signal != nil {
						left = append(left, signal)
					}
					without("barriers", left...)
				case in.Waits():
					without("waits", in)
				}
			})
		}
	}
	t.Logf("left out: %v; of those %d that order nothing", tried, spares)
	if tried["barriers"] < 8 || tried["barriers"]+tried["waits"] < 50 {
		t.Errorf("only %v were tried", tried)
	}
}

// swaps are opcodes of VOP2, and what they become: bits 25 to 30.
var swaps = map[uint32]uint32{3: 4, 8: 3, 24: 25, 25: 24, 27: 28, 28: 29, 29: 27, 37: 38, 38: 37, 43: 8}

// change is one of an instruction of a kernel, given by its text: of the opcode or of an operand.
type change struct{ kernel, text, what, why string }

// alike are changes after which these kernels compute the same, each with the reason. It holds whatever the inputs are.
var alike = []change{
	{"attention_split", "v_and_b32_e32 v5, 7, v1", "operand", "the number of the lane in its workgroup for that in its subgroup of 32: modulo 8 they are equal"},
	{"attention_split", "v_and_b32_e32 v6, 1, v1", "operand", "the same modulo 2"},
	{"delta", "v_sub_nc_u32_e32 v13, v13, v18", "opcode", "lane/64 modulo 3 of 128 lanes is 0 or 1: the multiple of 3 that is subtracted is 0, and may be added"},
	{"delta", "v_sub_nc_u32_e32 v13, v13, v18", "operand", "so is v19, which is lane/192"},
	{"delta", "v_lshlrev_b32_e32 v59, 2, v59", "operand", "v58 is (lane+128) modulo 4, v59 is (lane+256) modulo 4"},
	{"argmax", "v_mul_f32_e32 v2, 0x4f7ffffe, v2", "opcode", "the step of the loop in which 32 lanes compare what 8 subgroups found becomes 2 for 32: a lane compares more of them, and the largest of all is the same"},
	{"argmax", "v_mul_f32_e32 v2, 0x4f7ffffe, v2", "operand", "the same"},
}

// TestChangedInstructions changes opcodes, and registers of operands: all changes are found but those of alike.
func TestChangedInstructions(t *testing.T) {
	tried, same := map[bool]int{}, 0 // of the norm, and of others
	used := make([]bool, len(alike))
	for _, name := range []string{"gfx1201", "gfx1100"} {
		for i, x := range trials(t, name) {
			_, p, err := x.d.Code(t.Context(), &x.k)
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]int{} // a few of each kind of each kernel
			p.Insts(func(in *rdna.Inst) {
				word := x.code.Code[in.PC]
				to, is := swaps[word>>25&63]
				if !x.seen[in.PC] || word>>31 != 0 || !is || kinds[in.Name()] >= 2 {
					return
				}
				kinds[in.Name()]++
				for what, changed := range map[string]uint32{"opcode": word&^(63<<25) | to<<25, "operand": word ^ 1<<9} {
					code := slices.Clone(x.code.Code)
					code[in.PC] = changed
					tried[i == 0]++
					if x.found(code) {
						continue
					}
					same++
					at := slices.IndexFunc(alike, func(s change) bool {
						return strings.HasPrefix(x.k.Name, s.kernel+" ") && s.text == in.String() && s.what == what
					})
					if at < 0 {
						t.Errorf("%s: %s: not found: another %s of %s at %#x", name, x.k.Name, what, in, 4*in.PC)
						continue
					}
					used[at] = true
				}
			})
		}
	}
	t.Logf("changed: %d of the norm, %d of others; of those %d compute the same", tried[true], tried[false], same)
	if tried[true] < 20 || tried[false] < 50 {
		t.Errorf("only %d of the norm and %d of others were tried", tried[true], tried[false])
	}
	for i, s := range alike {
		if !used[i] {
			t.Errorf("%s: another %s of %s is found, or not tried", s.kernel, s.what, s.text)
		}
	}
}
