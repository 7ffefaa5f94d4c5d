package modules

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/plans"
)

const ptxModule = `.version 7.8
.target sm_80
.address_size 64

// ld.global of a comment
.visible .entry kernel(.param .u64 a0, .param .u64 a1, .param .u64 a2)
.reqntid 64, 1, 1
{
	.reg .b32 %r<9>;
	.shared .align 16 .b8 s0[256];
	.shared .align 16 .b8 s1[16];
	ld.param.u64 %d0, [a0];
	ld.param.u64 %d1, [a1];
	ld.param.u64 %d2, [a2];
	mov.u32 %r0, %tid.x;
	mov.b64 {%r1, %r2}, %d1;
	mov.b64 {%r3, %r4}, %d2;
	selp.b32 %r5, %r1, %r3, %p0;
	selp.b32 %r6, %r2, %r4, %p0;
	mov.b64 %d3, {%r5, %r6};
	mad.wide.u32 %d4, %r0, 16, %d0;
	ld.global.nc.v4.b32 {%r7, %r8, %r9, %r10}, [%d4+16];
	ld.shared.b32 %r11, [s0+4];
	@%p0 st.global.b32 [%d3], %r7;
	ret;
}
`

func TestReadPTX(t *testing.T) {
	c, err := readPTX([]byte(ptxModule), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := plans.Interface{Entry: "kernel", Args: 3, Workgroup: 64, Shared: 272}
	if c.Entry != want.Entry || c.Args != want.Args || c.Workgroup != want.Workgroup || c.Shared != want.Shared {
		t.Errorf("%+v, want %+v", c.Interface, want)
	}
	args := func(m map[int]bool) []int { return slices.Sorted(maps.Keys(m)) }
	if loads, stores := args(c.Loads), args(c.Stores); !slices.Equal(loads, []int{0}) || !slices.Equal(stores, []int{1, 2}) || c.Stray != "" {
		t.Errorf("loads %v, stores %v, stray %q", loads, stores, c.Stray)
	}
	for arch, lacks := range map[int]int{75: 1, 80: 0, 90: 0} {
		if got := c.Lacks(&plans.Requirements{CUDA: &plans.CUDARequirements{Arch: arch}}); len(got) != lacks {
			t.Errorf("sm_%d lacks %v", arch, got)
		}
	}
	for _, m := range []struct{ old, new, stray, failure string }{
		{"st.global.b32 [%d3]", "st.global.b32 [%d9]", "register %d9", ""},
		{"st.global.b32 [%d3]", "st.local.b32 [%d3]", "st.local.b32", ""},
		{"st.global.b32 [%d3]", "st.b32 [%d3]", "st.b32", ""},
		{"mov.u32 %r0, %tid.x", "cp.async.cg.shared.global [%r0], [%d0+32], 16;\n\tcp.async.commit_group;\n\tcp.async.wait_group 2", "", ""},
		{"mov.u32 %r0, %tid.x", "cp.async.ca.shared.global [%r0], [%d9], 16", "register %d9", ""},
		{"mov.u32 %r0, %tid.x", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], [%d0+32], 16, [%r1], %d1", "", ""},
		{"mov.u32 %r0, %tid.x", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], [%d9], 16, [%r1], %d1", "register %d9", ""},
		{"mov.u32 %r0, %tid.x", "cp.async.bulk.prefetch.L2.global [%d0], 16", "cp.async.bulk.prefetch.L2.global", ""},
		{"[a2]", "[a3]", "", "parameter"},
		{".visible .entry kernel(", ".func kernel(", "", "parameter"},
		{".reqntid", ".visible .entry other()\n.reqntid", "", "second entry"},
		{"s1[16]", "s1[-1]", "", "shared array"},
		{"s1[16]", "s1]16[", "", "shared array"},
	} {
		c, err := readPTX([]byte(strings.Replace(ptxModule, m.old, m.new, 1)), nil)
		switch {
		case m.failure != "" && (err == nil || !strings.Contains(err.Error(), m.failure)):
			t.Errorf("%s: %v, want %s", m.new, err, m.failure)
		case m.failure == "" && err != nil:
			t.Errorf("%s: %v", m.new, err)
		case m.failure == "" && c.Stray != m.stray:
			t.Errorf("%s: stray %q, want %q", m.new, c.Stray, m.stray)
		}
	}
}

// TestEarly checks what a kernel touches before it has waited, on all paths.
func TestEarly(t *testing.T) {
	const before = "\tld.global.nc.v4.b32 {%r7"
	for _, c := range []struct {
		name, old, new string
		early          []int
		faults         int
		hasty          bool
	}{
		{"waits first", before, "\tgriddepcontrol.wait;\n" + before, nil, 0, false},
		{"waits after a load", "\tld.shared", "\tgriddepcontrol.wait;\n\tld.shared", []int{0}, 0, false},
		{"waits at the end", "\tret;", "\tgriddepcontrol.wait;\n\tret;", []int{0, 1, 2}, 1, false},
		{"never waits", "\tret;", "\tgriddepcontrol.launch_dependents;\n\tret;", []int{0, 1, 2}, 2, true},
		{"jumps over it", "\tld.shared", "\t@%p0 bra L1;\n\tgriddepcontrol.wait;\nL1:\n\tld.shared", []int{0, 1, 2}, 2, false},
		{"both branches", "\tld.shared", "\t@%p0 bra L1;\n\tgriddepcontrol.wait;\n\tbra L2;\nL1:\n\tgriddepcontrol.wait;\nL2:\n\tld.shared", []int{0}, 0, false},
		{"copies before it waits", before, "\tcp.async.cg.shared.global [%r0], [%d0], 16;\n\tgriddepcontrol.wait;\n" + before, []int{0}, 0, false},
		{"asks before it waits", before, "\tprefetch.global.L2 [%d4];\n\tgriddepcontrol.wait;\n" + before, nil, 0, false},
		{"returns", "\tld.shared", "\t@%p0 ret;\n\tgriddepcontrol.wait;\n\tld.shared", []int{0}, 1, false},
		{"lets the next begin behind its wait", before, "\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n" + before, nil, 0, false},
	} {
		code, err := readPTX([]byte(strings.Replace(ptxModule, c.old, c.new, 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(code.Early)); !slices.Equal(got, c.early) || len(code.Faults) != c.faults || code.Hasty != c.hasty || !code.Overlaps {
			t.Errorf("%s: early %v, faults %v, hasty %t; want %v, %d and %t", c.name, got, code.Faults, code.Hasty, c.early, c.faults, c.hasty)
		}
	}
	for how, cached := range map[string]bool{"cp.async.cg.shared.global": false, "cp.async.ca.shared.global": true} {
		code, err := readPTX([]byte(strings.Replace(ptxModule, before, "\t"+how+" [%r0], [%d0], 16;\n\tgriddepcontrol.wait;\n"+before, 1)), nil)
		if err != nil || code.Cached[0] != cached {
			t.Errorf("%s goes through the L1 cache: %t, %v", how, code.Cached[0], err)
		}
	}
	if code, _ := readPTX([]byte(ptxModule), nil); code.Overlaps || code.Early != nil {
		t.Error("a kernel that does not overlap is taken for one that does")
	}
	if _, err := readPTX([]byte(strings.Replace(ptxModule, "\tret;", "\tgriddepcontrol.wait;\n\tret;\n\tbra L9;", 1)), nil); err != nil {
		t.Errorf("code that nothing comes to: %v", err)
	}
	if _, err := readPTX([]byte(strings.Replace(ptxModule, "\tret;", "\tbra L9;\n\tgriddepcontrol.wait;", 1)), nil); err == nil {
		t.Error("a jump to nowhere is taken")
	}
	for _, way := range []string{"bra.uni L9", "brx.idx %r0, L9", "call other", "exit"} { // which the rule would take for one that goes on
		if _, err := readPTX([]byte(strings.Replace(ptxModule, "\tret;", "\t"+way+";\n\tgriddepcontrol.wait;\n\tret;", 1)), nil); err == nil {
			t.Errorf("%s is taken", way)
		}
	}
}

func FuzzReadPTX(f *testing.F) {
	f.Add([]byte(ptxModule))
	f.Add([]byte(".visible .entry x(\nld.global %d, [\n@\nmov.b64 {"))
	f.Fuzz(func(t *testing.T, code []byte) {
		if c, err := readPTX(code, nil); err == nil && c.Shared < 0 {
			t.Error(c.Shared)
		}
	})
}

// TestReadPTXExact reads a module for one architecture alone, which asks for its shared memory.
func TestReadPTXExact(t *testing.T) {
	text := strings.Replace(ptxModule, ".target sm_80", ".target sm_90a", 1)
	text = strings.Replace(text, ".visible", ".extern .shared .align 128 .b8 asked[]; // 98304\n.visible", 1)
	c, err := readPTX([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Shared != 272+98304 {
		t.Errorf("%d bytes of shared memory", c.Shared)
	}
	for _, need := range []struct {
		plans.CUDARequirements
		lacks int
	}{{plans.CUDARequirements{Arch: 90, Exact: true}, 0}, {plans.CUDARequirements{Arch: 90}, 1}, {plans.CUDARequirements{Arch: 100, Exact: true}, 1}} {
		if got := c.Lacks(&plans.Requirements{CUDA: &need.CUDARequirements}); len(got) != need.lacks {
			t.Errorf("%+v: lacks %v", need.CUDARequirements, got)
		}
	}
}
