package strategy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/ir"
)

// linears are projections of one x in f16, as ApplyWants leaves it.
func linears(t *testing.T, on string, rows, k, matrices int, widths ...int) *kernels.Site {
	t.Helper()
	target, err := target.Lookup(on)
	if err != nil {
		t.Fatal(err)
	}
	f := &ir.Func{Name: "f", Rows: rows, Class: map[bool]ir.StepClass{true: ir.ExactStep}[rows <= 8]}
	p := &ir.Program{Ctx: 16, Slots: 1, Funcs: []*ir.Func{f}}
	p.AddGlobal("n", ir.Step, ir.MakeType(ir.I32, 1))
	p.AddGlobal("arrivals", ir.Step, ir.MakeType(ir.I32, 1<<16))
	b := ir.NewBuilder(f)
	make := func(name string, attrs ir.Attrs, args ...*ir.Value) *ir.Op {
		op, err := b.Make(name, attrs, args...)
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	x := &ir.Value{ID: 1000, Type: ir.MakeType(ir.F16, ir.T, ir.Dim(k)), Offset: -1}
	g := &ir.Group{Name: "g"}
	s := &kernels.Site{Program: p, Func: f, Group: g, Target: target}
	for i, width := range widths {
		var ops []*ir.Op
		for m := range matrices {
			w := p.AddGlobal(string(rune('a'+i))+string(rune('a'+m)), ir.Weight, ir.MakeType(ir.Q4_K, ir.Dim(width), ir.Dim(k)))
			ops = append(ops, make("linear", nil, x, w))
		}
		if matrices == 2 {
			ops = append(ops, make("glu", ir.Attrs{{Name: "act", Value: "silu"}}, ops[0].Result, ops[1].Result))
		}
		g.Ops = append(g.Ops, ops...)
		s.Outputs = append(s.Outputs, ops[len(ops)-1].Result)
	}
	return s
}

// TestCoopTiles holds which tile of gemm_coop projections of an 8B model take: one whose workgroups
// fill whole rounds of the units; on AMD one whose registers do not spill.
func TestCoopTiles(t *testing.T) {
	for _, c := range []struct {
		target            string
		rows, k, matrices int
		widths            []int
		want              string
	}{
		{"sm_90", 512, 4096, 2, []int{12288}, "tile=128x192 "},
		{"sm_90", 512, 4096, 1, []int{4096, 1024, 1024}, "tile=128x96 "},
		{"sm_90", 512, 4096, 1, []int{4096}, "tile=128x128 "},
		{"sm_90", 512, 12288, 1, []int{4096}, "tile=128x128 "},
		{"sm_90", 48, 4096, 2, []int{12288}, "tile=48x64 "},
		{"sm_80-cuda", 512, 4096, 2, []int{12288}, "tile=128x192 "}, // by its roofline, as all below
		{"sm_89-cuda", 512, 4096, 1, []int{4096}, "tile=128x128 "},
		{"gfx1100", 512, 4096, 2, []int{12288}, "tile=128x128 subgroup=64x32 groups=1 ahead=1,1"},
		{"gfx1100", 512, 4096, 1, []int{4096, 1024, 1024}, "tile=128x128 "},
	} {
		list := strategy.Candidates(linears(t, c.target, c.rows, c.k, c.matrices, c.widths...))
		i := slices.IndexFunc(list, func(c kernels.Candidate) bool { return c.Family == "gemm_coop" })
		if i < 0 || !strings.HasPrefix(list[i].Shape, c.want) {
			t.Errorf("%s, %d rows of %d to %v: candidate %d, want %s", c.target, c.rows, c.k, c.widths, i, c.want)
		}
	}
}

// TestOffersAreRanked holds that families offer more than what stays, and that what stays is theirs.
func TestOffersAreRanked(t *testing.T) {
	for _, c := range []struct {
		target string
		rows   int
		stays  map[string]int
	}{
		{"sm_90", 48, map[string]int{"gemm_fragment": 1, "gemm_coop": 4}},
		{"sm_90", 128, map[string]int{"gemm_fragment": 1}}, // of one tile of many rows it takes all steps
		{"sm_90", 512, map[string]int{"gemm_fragment": 1, "gemm_coop": 4}},
		{"gfx1201", 512, map[string]int{"gemm_coop": 3}},
	} {
		s := linears(t, c.target, c.rows, 4096, 2, 12288)
		all, kept := kernels.Candidates(s), strategy.Candidates(s)
		stays := map[string]int{}
		for _, k := range kept {
			stays[k.Family]++
			if !slices.ContainsFunc(all, func(a kernels.Candidate) bool { return a.Kernel == k.Kernel }) {
				t.Errorf("%s: %s is not offered", c.target, k.Kernel)
			}
		}
		for family, n := range c.stays {
			if stays[family] != n {
				t.Errorf("%s, %d rows: %d candidates of %s, want %d", c.target, c.rows, stays[family], family, n)
			}
		}
		if len(all) <= len(kept) {
			t.Errorf("%s, %d rows: %d offered, %d kept", c.target, c.rows, len(all), len(kept))
		}
	}
}

// TestWorkspaces holds that of the workspaces that gemm_fragment could use one is granted, where
// sharing rows pays.
func TestWorkspaces(t *testing.T) {
	for _, c := range []struct{ rows, k, width, want int }{
		{48, 12288, 4096, 1}, // few workgroups, long rows
		{2048, 4096, 12288, 0},
		{16, 4096, 4096, 0},
	} {
		s := linears(t, "sm_90", c.rows, c.k, 1, c.width)
		n := 0
		for _, w := range strategy.Wants(s) {
			if w.Workspace > 0 {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%d rows of %d to %d: %d workspaces of %d wishes, want %d", c.rows, c.k, c.width, n, len(kernels.Wants(s)), c.want)
		}
	}
}

// TestAttentionLeavesRoom holds which attention has a form that leaves room as the best guess: that of three rows and
// more, of heads and on the device that were measured.
func TestAttentionLeavesRoom(t *testing.T) {
	for _, c := range []struct {
		target     string
		op         string
		rows, head int
		first      int // lanes that there is room for
	}{
		{"sm_90-cuda", "attention_split", 8, 128, 512}, {"sm_90-cuda", "attention_split", 4, 64, 512},
		{"sm_90-cuda", "attention_split", 2, 128, 0}, {"sm_90-cuda", "attention_split", 8, 256, 0}, {"sm_90-cuda", "linear", 8, 128, 0},
		{"sm_100-cuda", "attention_split", 8, 128, 0}, // which was not measured
	} {
		op := &ir.Op{Kind: ir.LookupOp(c.op), Attrs: ir.Attrs{{Name: "head_dim", Value: int64(c.head)}}}
		on, err := target.Lookup(c.target)
		if err != nil {
			t.Fatal(err)
		}
		s := &kernels.Site{Target: on, Func: &ir.Func{Rows: c.rows, Class: ir.ExactStep}, Group: &ir.Group{Ops: []*ir.Op{op}}}
		var rooms []int
		for _, k := range strategy.Rank(s, []kernels.Candidate{{}, {Room: 512}, {Room: 768}}) {
			rooms = append(rooms, k.Room)
		}
		want := []int{0, 512, 768}
		if c.first > 0 {
			want = []int{512, 0, 768}
		}
		if !slices.Equal(rooms, want) {
			t.Errorf("%s of %d rows, heads of %d: room for %d, want %d", c.op, c.rows, c.head, rooms, want)
		}
	}
}

// TestFewRows holds what is dropped of few rows: gemm_fixed of less than three, whatever the step has, and lanes of
// gemv that keep more than those of other makers than AMD have room for, and where nobody times them shapes of which
// only times tell whether they are best.
func TestFewRows(t *testing.T) {
	for _, c := range []struct {
		target string
		rows   int // of the step
		offers []kernels.Candidate
		want   int
	}{
		{"sm_90", 2, []kernels.Candidate{{Family: "gemv", Rows: 2}, {Family: "gemm_fixed", Rows: 2}}, 1},
		{"sm_90", 4, []kernels.Candidate{{Family: "gemv", Rows: 4}, {Family: "gemm_fixed", Rows: 4}}, 2},
		{"sm_90", 3, []kernels.Candidate{{Family: "gemv", Rows: 3}, {Family: "gemm_fixed", Rows: 3}}, 2},
		{"sm_80-cuda", 3, []kernels.Candidate{{Family: "gemv", Rows: 3}, {Family: "gemm_fixed", Rows: 3}}, 1}, // not half of a matrix
		{"sm_80-cuda", 4, []kernels.Candidate{{Family: "gemv", Rows: 4}, {Family: "gemm_fixed", Rows: 4}}, 2},
		{"sm_100-cuda", 1, []kernels.Candidate{{Family: "gemv"}, {Family: "gemv", Timed: true}}, 1},
		{"sm_90", 512, []kernels.Candidate{{Family: "gemv", Rows: 1}, {Family: "gemm_fixed", Rows: 1}}, 1},
		{"sm_90", 8, []kernels.Candidate{{Family: "gemv", Kept: 96}, {Family: "gemv", Kept: 128}}, 1},
		{"gfx1201", 8, []kernels.Candidate{{Family: "gemv", Kept: 96}, {Family: "gemv", Kept: 128}}, 2},
		{"gfx1201", 1, []kernels.Candidate{{Family: "gemv"}, {Family: "gemv", Timed: true}}, 1},
		{"sm_90", 1, []kernels.Candidate{{Family: "gemv"}, {Family: "gemv", Timed: true}}, 1},
		{"sm_90-cuda", 1, []kernels.Candidate{{Family: "gemv"}, {Family: "gemv", Timed: true}}, 2},
	} {
		s := linears(t, c.target, c.rows, 4096, 1, 4096)
		if list := strategy.Rank(s, c.offers); len(list) != c.want || list[0].Family != "gemv" {
			t.Errorf("%s, %d rows: %d candidates stay, want %d", c.target, c.rows, len(list), c.want)
		}
	}
	for rows, want := range map[int]int{2: 0, 4: 1} {
		s := linears(t, "sm_90", rows, 19*256, 1, 4096) // rows so long that workgroups share them
		b, linear := ir.NewBuilder(s.Func), s.Group.Ops[0]
		x := &ir.Value{ID: 1001, Type: ir.MakeType(ir.F32, ir.T, 19*256), Offset: -1}
		fixed, err := b.Make("fixed12", nil, x)
		if err != nil {
			t.Fatal(err)
		}
		linear.Args[0] = fixed.Result
		s.Group.Ops = []*ir.Op{fixed, linear}
		n := 0
		for _, w := range strategy.Wants(s) {
			if w.Family == "gemm_fixed" {
				n++
			}
		}
		if n != want {
			t.Errorf("%d rows: %d wishes of gemm_fixed, want %d", rows, n, want)
		}
	}
}

// TestExpertSeries holds which tiles of expert_fragment whose lanes keep x stay of all powers of two: about as many in
// a row as leave two or three rounds of workgroups, best first.
func TestExpertSeries(t *testing.T) {
	for _, c := range []struct {
		experts, across int
		want            []int
	}{
		{8, 8, []int{1, 2}},
		{128, 96, []int{16, 8, 32}}, // about 81 experts are chosen, of whose tiles 264 run at once
	} {
		s := linears(t, "sm_90", 16, 2048, 2, 768)
		var offers []kernels.Candidate
		for n := 1; n < 4*c.across; n *= 2 {
			offers = append(offers, kernels.Candidate{Family: "expert_fragment",
				Tiling: &kernels.Tiling{Name: "kept", Series: n, Slots: 8, Experts: c.experts, Across: c.across, Groups: 8}})
		}
		var have []int
		for _, o := range strategy.Rank(s, offers) {
			have = append(have, o.Tiling.Series)
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%d experts, %d tiles: series of %v, want %v", c.experts, c.across, have, c.want)
		}
	}
}

// TestDecodeSplits holds that workgroups of attention of four heads, which load ahead, and of eight are in one round
// where there are as many units, with splits of any multiple of 16 positions, that others have the splits that were
// measured for them, and that on processors there is never one where kernels of two are held.
func TestDecodeSplits(t *testing.T) {
	for _, c := range []struct {
		target                       string
		dim, heads, kvHeads, context int
		splits, block, least         int
	}{
		{"sm_90-cuda", 128, 32, 8, 1 << 16, 16, 16, 128},
		{"sm_90-cuda", 128, 16, 2, 1 << 16, 32, 128, 0},  // 33 would fill it
		{"sm_90-cuda", 256, 16, 2, 1 << 16, 66, 16, 128}, // of eight heads
		{"sm_90-cuda", 256, 16, 2, 1 << 14, 32, 16, 128},
		{"sm_90-cuda", 256, 24, 4, 1 << 16, 32, 128, 0}, // of three
		{"sm_90-cuda", 128, 64, 8, 1 << 16, 8, 16, 128},
		{"sm_90-cuda", 128, 16, 8, 1 << 16, 32, 128, 0}, // of two heads
		{"sm_90-cuda", 128, 48, 8, 1 << 16, 32, 128, 0}, // of three
		{"sm_90-cuda", 128, 40, 8, 1 << 16, 32, 128, 0}, // of one
		{"sm_90", 256, 16, 2, 1 << 16, 32, 128, 0},
		{"cpu:x86-64-v4", 64, 8, 2, 512, 4, 128, 0},
		{"cpu:x86-64-v4", 64, 8, 2, 256, 2, 128, 0},
		{"cpu:x86-64-v4", 64, 8, 2, 128, 2, 64, 0}, // no kernels are held of one split
		{"cpu:x86-64-v4", 128, 32, 8, 512, 2, 32, 0},
	} {
		on, err := target.Lookup(c.target)
		if err != nil {
			t.Fatal(err)
		}
		b := ir.NewBuilder(&ir.Func{Name: "decode/1", Rows: 1})
		value := func(of ir.DType, dims ...ir.Dim) *ir.Value {
			return &ir.Value{Type: ir.MakeType(of, dims...), Offset: -1}
		}
		cache := value(ir.F16, 1, ir.L, ir.Dim(c.dim*c.kvHeads))
		op, err := b.Make("attention", ir.Attrs{{Name: "head_dim", Value: int64(c.dim)}, {Name: "heads", Value: int64(c.heads)}, {Name: "kv_heads", Value: int64(c.kvHeads)}, {Name: "scale", Value: 0.125}},
			value(ir.F32, ir.T, ir.Dim(c.dim*c.heads)), cache, cache, value(ir.I32, ir.T), value(ir.I32, ir.T))
		if err != nil {
			t.Fatal(err)
		}
		if n, block, least := strategy.DecodeSplits(op, c.context, on); n != c.splits || block != c.block || least != c.least {
			t.Errorf("%s, %d heads of %d, %d of the caches: %d splits by %d and at least %d, want %d by %d and %d", c.target, c.heads, c.dim, c.kvHeads, n, block, least, c.splits, c.block, c.least)
		}
	}
}

// TestStaging holds which staging buffer of gemm_fixed stays: the longest of at most four tiles of which a unit holds
// as many workgroups as its registers allow, in as much shared memory as is fast.
func TestStaging(t *testing.T) {
	for _, c := range []struct {
		on                        string
		bytes, besides, subgroups int
		want                      []int
	}{
		{"sm_90-cuda", 40 << 10, 10 << 10, 16, []int{4}},
		{"sm_90-cuda", 60 << 10, 10 << 10, 16, []int{3}},
		{"sm_90-cuda", 30 << 10, 10 << 10, 8, []int{2}}, // two workgroups
		{"sm_90-cuda", 50 << 10, 10 << 10, 8, nil},
	} {
		on, err := target.Lookup(c.on)
		if err != nil {
			t.Fatal(err)
		}
		s := &kernels.Site{Func: &ir.Func{Rows: 8, Class: ir.ExactStep}, Group: &ir.Group{}, Target: on}
		var list []kernels.Candidate
		for _, n := range []int{2, 3, 4, 6, 8} {
			list = append(list, kernels.Candidate{Staging: &site.Staging{Tiles: n, Bytes: c.bytes, Besides: c.besides, Subgroups: c.subgroups}})
		}
		var stages []int
		for _, k := range strategy.Rank(s, list) {
			stages = append(stages, k.Staging.Tiles)
		}
		if !slices.Equal(stages, c.want) {
			t.Errorf("%d subgroups, %d bytes a tile: staging buffers of %d tiles, want %d", c.subgroups, c.bytes, stages, c.want)
		}
	}
}

// TestConvolvedColumns holds up to how many columns a projection takes in the gated convolution behind it.
func TestConvolvedColumns(t *testing.T) {
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	for rows := 1; rows <= target.DecodeRows; rows++ {
		f := &ir.Func{Name: "f", Rows: rows, Class: ir.ExactStep}
		conv := &ir.Op{Kind: &ir.OpKind{Name: "conv1d"}}
		s := &kernels.Site{Func: f, Group: &ir.Group{Ops: []*ir.Op{conv}}, Target: on}
		if n := len(strategy.Rank(s, []kernels.Candidate{{Family: "gemv", Rows: rows}})); n != 0 != (rows <= 2) {
			t.Errorf("%d columns: %d candidates", rows, n)
		}
	}
}

// TestFloatsApart holds from how many rows on projections stay apart from those in float32. By its roofline an H200
// would have what was measured there, within one row and a factor of two of the products.
func TestFloatsApart(t *testing.T) {
	for _, c := range []struct {
		target string
		rows   int
		work   int64
	}{
		{"sm_90-cuda", 4, 1 << 27}, {"sm_80-cuda", 4, 28.5e6}, {"sm_100-cuda", 3, 97.5e6}, {"sm_86-cuda", 11, 54e6},
		{"sm_89-cuda", 16, 124.5e6}, // one tile is bound by reading
		{"gfx1201", 0, 0}, {"cpu:x86-64-v3", 0, 0},
	} {
		on, err := target.Lookup(c.target)
		if err != nil {
			t.Fatal(err)
		}
		if rows, work := strategy.FloatsApart(on); rows != c.rows || work != c.work {
			t.Errorf("%s: from %d rows and %d products on, want %d and %d", c.target, rows, work, c.rows, c.work)
		}
		if on.Name == "sm_90-cuda" {
			other := *on
			other.Thresholds = device.Thresholds{}
			if rows, work := strategy.FloatsApart(&other); rows < c.rows-1 || rows > c.rows+1 || work < c.work/2 || work > 2*c.work {
				t.Errorf("by its roofline from %d rows and %d products on, measured %d and %d", rows, work, c.rows, c.work)
			}
		}
	}
}
