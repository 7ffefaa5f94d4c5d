package rowwise_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

func TestRowwise(t *testing.T) {
	for _, c := range []kerneltest.Case{
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 1000]\nstep @b : f32[T, 1000]\n",
			Group: "%0 = add @a, @b : io f32[T, 1000]"},
		{Family: "elementwise", Rows: 2, Globals: "step @a : f32[T, 1030]\nstep @b : f32[T, 1030]\n",
			Group: `%0 = glu @a, @b {act="silu"} : io f32[T, 1030]`},
		{Family: "elementwise", Rows: 1, Globals: "step @a : f32[1, 33]\nstep @b : f32[1, 33]\n",
			Group: `%0 = glu @a, @b {act="gelu"} : io f32[1, 33]`},
		{Family: "elementwise", Rows: 20, N: 13, Globals: "step @a : f32[T, 96]\n",
			Group: "%0 = last_row @a, @n : io f32[1, 96]"},
		{Family: "elementwise", Rows: 20, N: 13, Globals: "step @a : i32[T]\n",
			Group: "%0 = last_row @a, @n : io i32[1]"},
		{Family: "elementwise", Rows: 96, N: 40, Part: 32, Globals: "step @a : f32[T, 70]\nstep @rows : i32[4]\n", Given: map[string][]byte{"rows": {39, 0, 0, 0, 7, 0, 0, 0, 39, 0, 0, 0, 1, 0, 0, 0}},
			Group: "%0 = take_rows @a, @rows {count=3} : io f32[3, 70]"},
		{Family: "rownorm", Rows: 3, N: 2, Globals: "step @a : f32[T, 2048]\nweight @w : f32[2048]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=2048} : io f32[T, 2048]"},
		{Family: "rownorm", Rows: 12, N: 10, Globals: "step @a : f32[T, 99]\nweight @w : f32[33]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=33} : io f32[T, 99]"},
		{Family: "rownorm", Rows: 12, N: 10, Globals: "step @a : f32[1, 8]\nweight @w : f32[8]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=8} : io f32[1, 8]"},
		{Family: "rownorm", Rows: 30, N: 29, Globals: "step @a : f32[T, 1032]\nweight @w : f32[1032]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=1032} : io f32[T, 1032]\n%1 = half %0 : io f16[T, 1032]"},
		{Family: "rownorm", Rows: 20, N: 19, Globals: "step @a : f32[T, 384]\nstep @z : f32[T, 384]\nweight @w : f32[96]\n",
			Group: "%0 = gated_rmsnorm @a, @w, @z {eps=1e-06, group=96} : f32[T, 384]\n%1 = half %0 : io f16[T, 384]"},
		{Family: "rownorm", Rows: 3, N: 2, Globals: "step @a : f32[T, 384]\nstep @z : f32[T, 384]\nweight @w : f32[128]\n",
			Group: "%0 = gated_rmsnorm @a, @w, @z {eps=1e-06, group=128} : io f32[T, 384]"},
		{Family: "rownorm", Rows: 20, N: 18, Globals: "step @a : f32[T, 90]\n",
			Group: "%0 = l2norm @a {eps=1e-06, group=30} : io f32[T, 90]"},
		{Family: "rownorm", Rows: 2, Globals: "step @a : f32[T, 8]\n",
			Group: "%0 = l2norm @a {eps=10.0, group=4} : io f32[T, 8]"},
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 1000]\nstep @g : f32[T, 1000]\n",
			Group: "%0 = gate @a, @g : io f32[T, 1000]"},
		{Family: "elementwise", Rows: 2, Globals: "step @a : f32[T, 70]\nstep @b : f32[T, 70]\n",
			Group: `%0 = glu @a, @b {act="swiglu_oai"} : io f32[T, 70]`},
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 70]\nstep @b : f32[T, 70]\n", Group: "%0 = mul @a, @b : io f32[T, 70]"},
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 300]\n",
			Group: "%1 = slice @a {first=0, width=100} : f32[T, 100]\n%2 = slice @a {first=200, width=100} : f32[T, 100]\n%0 = mul %1, %2 : io f32[T, 100]"},
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 98]\nstep @b : f32[T, 32]\n",
			Group: "%1 = slice @a {first=34, width=32} : f32[T, 32]\n%0 = glu @b, %1 {act=\"gelu\"} : io f32[T, 32]"},
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 70]\n", Group: "%0 = scale @a {factor=-0.375} : io f32[T, 70]"},
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 1000]\n", Group: "%0 = softcap @a {scale=2.0, cap=3.0} : io f32[T, 1000]"},
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 1000]\n", Group: "%0 = softcap @a {scale=0.125, cap=30.0} : io f32[T, 1000]"},
		{Family: "rownorm", Rows: 3, N: 2, Globals: "step @a : f32[T, 2048]\nstep @b : f32[T, 2048]\nweight @w : f32[2048]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=2048} : f32[T, 2048]\n%1 = add %0, @b : io f32[T, 2048]"},
		{Family: "rownorm", Rows: 20, N: 19, Globals: "step @a : f32[T, 100]\nstep @b : f32[T, 100]\nweight @w : f32[100]\nweight @s : f32[1]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=100} : f32[T, 100]\n%1 = add @b, %0 : f32[T, 100]\n%2 = scale %1, @s {factor=1.0} : io f32[T, 100]"},
		{Family: "rownorm", Rows: 3, N: 2, Globals: "step @a : f32[T, 1500]\nstep @b : f32[T, 1500]\nstep @c : f32[T, 1500]\nweight @w : f32[1500]\nweight @w2 : f32[1500]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=1500} : f32[T, 1500]\n%1 = add %0, @b : f32[T, 1500]\n" +
				"%2 = rmsnorm %1, @w2 {eps=0.5, group=1500} : f32[T, 1500]\n%3 = add @c, %2 : io f32[T, 1500]"},
		{Family: "rownorm", Rows: 20, N: 19, Globals: "step @a : f32[T, 66]\nstep @b : f32[T, 66]\nweight @w2 : f32[66]\nweight @s : f32[1]\n",
			Group: "%0 = rmsnorm @a {eps=1e-05, group=66} : f32[T, 66]\n%1 = add @b, %0 : f32[T, 66]\n" +
				"%2 = rmsnorm %1, @w2 {eps=0.5, group=66} : f32[T, 66]\n%3 = add %2, @a : f32[T, 66]\n%4 = scale %3, @s {factor=0.5} : io f32[T, 66]"},
		{Family: "rownorm", Rows: 2, Globals: "step @a : f32[T, 66]\n", Group: "%0 = rmsnorm @a {eps=1e-05, group=66} : io f32[T, 66]"},
		{Family: "elementwise", Rows: 3, Globals: "step @a : f32[T, 7]\n", Group: "%0 = sigmoid @a : io f32[T, 7]"},
		{Family: "elementwise", Rows: 9, N: 5, Globals: "step @a : f32[T, 48]\nweight @dt : f32[48]\nweight @rate : f32[48]\n",
			Group: "%0 = decay @a, @dt, @rate : io f32[T, 48]"},
		{Family: "elementwise", Rows: 9, N: 5, Globals: "step @a : f32[T, 100]\n",
			Group: "%0 = slice @a {first=6, width=40} : io f32[T, 40]"},
		{Family: "elementwise", Rows: 3, N: 2, Globals: "step @a : f32[T, 70]\n", Group: "%0 = relu2 @a : io f32[T, 70]"},
		{Family: "rownorm", Rows: 3, N: 2, Globals: "step @a : f32[T, 384]\nweight @w : f32[384]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=96} : io f32[T, 384]"},
		{Family: "rownorm", Rows: 30, N: 29, Globals: "step @a : f32[T, 256]\nweight @w : f32[256]\n",
			Group: "%0 = rmsnorm @a, @w {eps=1e-05, group=16} : io f32[T, 256]"},
		{Family: "elementwise", Rows: 9, N: 5, Globals: "step @a : f32[T, 96]\n",
			Group: "%0 = head_cut @a {stride=32, first=4, width=20} : io f32[T, 60]"},
		{Family: "elementwise", Rows: 2, Globals: "step @a : f32[T, 45]\n",
			Group: "%0 = head_cut @a {stride=9, first=2, width=7} : io f32[T, 35]"},
		{Family: "elementwise", Rows: 9, N: 5, Globals: "step @a : f32[T, 96]\nstep @b : f32[T, 24]\n",
			Group: "%0 = head_join @a, @b {heads=3} : io f32[T, 120]"},
		{Family: "elementwise", Rows: 2, Globals: "step @a : f32[T, 7]\nstep @b : f32[T, 3]\n",
			Group: "%0 = head_join @a, @b {heads=1} : io f32[T, 10]"},
		{Family: "elementwise", Rows: 9, N: 5, Globals: "step @a : f32[T, 40]\nweight @by : f32[1]\n", Group: "%0 = scale @a, @by {factor=0.5} : io f32[T, 40]"},
		{Family: "elementwise", Rows: 9, N: 5, Globals: "step @a : f32[T, 60]\nweight @by : f32[12]\nstep @ids : i32[T, 3]\n",
			Group: "%0 = expert_scale @a, @by, @ids : io f32[T, 60]"},
		{Family: "elementwise", Rows: 9, N: 5, Globals: "", Group: "%0 = head_ids @pos {heads=20} : io i32[T, 20]"},
		{Family: "heads", Rows: 9, N: 5, Globals: "step @a : f32[T, 96]\n",
			Group: "%0 = head_slice @a {head_dim=16, parts=2, part=1} : io f32[T, 48]"},
		{Family: "heads", Rows: 2, Globals: "step @a : f32[T, 18]\n",
			Group: "%0 = head_slice @a {head_dim=3, parts=2, part=0} : io f32[T, 9]\n%1 = head_slice @a {head_dim=3, parts=2, part=1} : io f32[T, 9]"},
	} {
		c.Ctx, c.Slots = 64, 1
		c.Run(t)
		c.CheckBuild(t)
	}
}

const stepBlock = "step @token : i32[T]\nstep @out : i32[16]\nstep @count : i32[1]\n"

const parts = "step @arrivals : i32[8]\n"

func TestArgmax(t *testing.T) {
	for _, c := range []kerneltest.Case{
		{Rows: 1, Globals: "step @x : f32[T, 40000]\n", Group: "%0 = argmax @x : io i32[T]\nadvance %0, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 4, N: 3, Globals: "step @x : f32[T, 5000]\n", Group: "%0 = argmax @x : io i32[T]\nadvance %0, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 4, Globals: "step @tied : f32[T, 5001]\n", Group: "%0 = argmax @tied : i32[T]\nadvance %0, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 32, N: 30, Slot: []int{2}, Globals: "step @x : f32[1, 12]\n", Group: "%0 = argmax @x : io i32[1]\nadvance %0, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 1, Globals: parts + "step @x : f32[T, 40002]\n", Group: "%0 = argmax_split @x {splits=5} : f32[T, 10]\n%1 = argmax_merge %0 {splits=5} : i32[T]\nadvance %1, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 8, N: 7, Globals: parts + "step @x : f32[T, 40002]\n", Group: "%0 = argmax_split @x {splits=5} : f32[T, 10]\n%1 = argmax_merge %0 {splits=5} : i32[T]\nadvance %1, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 16, N: 13, Globals: parts + "step @tied : f32[T, 700]\n", Group: "%0 = argmax_split @tied {splits=5} : f32[T, 10]\n%1 = argmax_merge %0 {splits=5} : io i32[T]\nadvance %1, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 80, N: 71, Globals: parts + "step @tied : f32[T, 60]\n", Group: "%0 = argmax_split @tied {splits=2} : f32[T, 4]\n%1 = argmax_merge %0 {splits=2} : io i32[T]"}, // subgroups take rows twice
		{Rows: 5, N: 4, Globals: parts + "step @x : f32[T, 700]\n", Group: "%0 = argmax_split @x {splits=1} : f32[T, 2]\n%1 = argmax_merge %0 {splits=1} : io i32[T]"},
		{Rows: 4, N: 3, Globals: parts + "step @tied : f32[T, 5001]\n", Group: "%0 = argmax_split @tied {splits=32} : f32[T, 64]\n%1 = argmax_merge %0 {splits=32} : io i32[T]\nadvance %1, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 32, N: 30, Slot: []int{2}, Globals: parts + "step @x : f32[1, 12]\n", Group: "%0 = argmax_split @x {splits=4} : f32[1, 8]\n%1 = argmax_merge %0 {splits=4} : io i32[1]"},
		{Rows: 5, Globals: "step @x : f32[T, 700]\n", Group: "%0 = argmax @x : io i32[T]"},
		{Rows: 5, Globals: "step @x : i32[T]\n", Group: "advance @x, @token, @pos, @slot, @n, @out, @count"},
		{Rows: 16, Globals: "step @x : i32[1]\n", Group: "advance @x, @token, @pos, @slot, @n, @out, @count"},
	} {
		c.Family, c.Ctx, c.Slots, c.Pos = "argmax", 64, 4, []int{20}
		c.Globals = stepBlock + c.Globals
		c.Run(t)
		c.CheckBuild(t)
	}
}

// TestCandidates has rows of less than a part, of a few parts, and of all with some left; few and many ties, and NaNs;
// and fewer rows than there is room for.
func TestCandidates(t *testing.T) {
	for _, c := range []kerneltest.Case{
		{Rows: 1, Globals: "step @x : f32[T, 3]\n"},
		{Rows: 4, N: 3, Globals: "step @x : f32[T, 700]\n"},
		{Rows: 3, N: 2, Globals: "step @x : f32[T, 9001]\n"},
		{Rows: 2, Globals: "step @tied : f32[T, 5001]\n"},
		{Rows: 2, N: 1, Globals: "step @x : f32[T, 70001]\n"}, // of which lanes do not keep theirs
		{Rows: 1, Globals: "step @tied : f32[T, 40000]\n"},    // of which too many may be candidates
	} {
		value := "@x"
		if strings.Contains(c.Globals, "@tied") {
			value = "@tied"
		}
		c.Family, c.Ctx, c.Slots = "candidates", 64, 4
		c.Group = fmt.Sprintf("%%0 = candidates %s : io i32[T, %d]", value, ir.CandidateRow)
		c.Run(t)
		c.CheckBuild(t)
	}
}

// TestMasked: of a row with a mask the allowed logits alone count, also where none is near the largest, one alone may
// come, or none; the other rows have all. A row may have the mask of another.
func TestMasked(t *testing.T) {
	const vocab = 5001
	words := ir.MaskWords(vocab) // of 5000, too
	rng := rand.New(rand.NewPCG(1, 2))
	mask := make([]uint32, 4*words)
	for i := range words {
		mask[i], mask[words+i] = rng.Uint32(), rng.Uint32()&rng.Uint32()&rng.Uint32()&rng.Uint32()
	}
	mask[2*words+vocab/32] = 1 << ((vocab - 1) % 32)
	given := func(x any) []byte { b, _ := binary.Append(nil, binary.LittleEndian, x); return b }
	for _, width := range []int{vocab, 5000} {
		for _, op := range []string{"%0 = argmax @x, @masked, @mask : io i32[T]\nadvance %0, @token, @pos, @slot, @n, @out, @count",
			"%0 = argmax_split @x, @masked, @mask {splits=5} : f32[T, 10]\n%1 = argmax_merge %0 {splits=5} : io i32[T]\nadvance %1, @token, @pos, @slot, @n, @out, @count"} {
			c := kerneltest.Case{Family: "argmax", Ctx: 64, Slots: 4, Pos: []int{20}, Rows: 8, N: 7, Group: op,
				Globals: fmt.Sprintf("%s%sstep @x : f32[T, %d]\nstep @masked : i32[T]\nstep @mask : i32[4, %d]\n", stepBlock, parts, width, words),
				Given:   map[string][]byte{"masked": given([]int32{2, 0, 1, 3, 4, 1, 2, 0}), "mask": given(mask)}}
			c.Run(t)
			c.CheckBuild(t)
		}
	}
}

// TestCandidatesOfAnything has rows of numbers of all kinds, in workgroups of some sizes.
func TestCandidatesOfAnything(t *testing.T) {
	const vocab = 5002
	rng, inf := rand.New(rand.NewPCG(6, 7)), float32(math.Inf(1))
	kinds := []func(i int) float32{
		func(int) float32 { return float32(rng.NormFloat64()) },
		func(int) float32 { return float32(rng.IntN(3)) },
		func(int) float32 { return -inf },
		func(i int) float32 { return -float32(i) },
		func(int) float32 { return math.Float32frombits(rng.Uint32() & 0x807fffff) }, // denormal
		func(int) float32 { return math.Float32frombits(rng.Uint32()) },              // some are NaN
		func(int) float32 {
			return math.Float32frombits(rng.Uint32()&3<<30 | 0x7f800000 | rng.Uint32()&rng.Uint32()&1)
		},
		func(int) float32 {
			return []float32{inf, 0, float32(math.Copysign(0, -1)), math.MaxFloat32, -1}[rng.IntN(5)]
		},
	}
	x := make([]float32, len(kinds)*vocab)
	for i := range x {
		x[i] = kinds[i/vocab](i % vocab)
	}
	given, _ := binary.Append(nil, binary.LittleEndian, x)
	for _, c := range []struct{ wave, workgroup int }{{4, 1024}, {8, 512}, {32, 384}, {64, 384}, {64, 128}} {
		on := *kerneltest.Llvmpipe(t)
		on.Wave, on.Workgroup = c.wave, c.workgroup
		kerneltest.Case{Family: "candidates", Exact: true, Ctx: 64, Slots: 4, Rows: len(kinds), N: len(kinds) - 1, Globals: fmt.Sprintf("step @x : f32[T, %d]\n", vocab),
			Group: fmt.Sprintf("%%0 = candidates @x : io i32[T, %d]", ir.CandidateRow), Given: map[string][]byte{"x": given}}.RunOn(t, &on)
	}
}

// TestAmong: by candidates a row has the choice that its logits have: the first of equal ones, of zeros of both signs,
// beside NaNs, where all are -Inf; within its mask, if it has one.
func TestAmong(t *testing.T) {
	const vocab, rows = 5001, 8
	words, rng, inf := ir.MaskWords(vocab), rand.New(rand.NewPCG(4, 5)), float32(math.Inf(1))
	x, among, mask := make([]float32, rows*vocab), make([]int32, rows*ir.CandidateRow), make([]uint32, words)
	for r := range rows {
		row := x[r*vocab:][:vocab]
		for i := range row {
			switch row[i] = rng.Float32() - 2; r {
			case 1: // many are equal
				row[i] = float32(int(4 * row[i]))
			case 2:
				row[i] = -inf
			case 3:
				row[i] = -max(0, row[i]+1.5)
			}
		}
		switch r {
		case 3: // the first zero is negative, the first candidate is not
			row[17], row[4000] = float32(math.Copysign(0, -1)), 0
		case 4:
			row[300], row[301], row[4900] = float32(math.NaN()), 7, 6
		case 5:
			row[vocab-1] = inf
		}
		ir.Candidates(row, among[r*ir.CandidateRow:][:ir.CandidateRow])
	}
	for i := range mask {
		mask[i] = rng.Uint32() & rng.Uint32()
	}
	given := func(x any) []byte { b, _ := binary.Append(nil, binary.LittleEndian, x); return b }
	for _, op := range []string{"%0 = argmax @x, @masked, @mask, @among : io i32[T]",
		"%0 = argmax_split @x, @masked, @mask, @among {splits=5} : f32[T, 10]\n%1 = argmax_merge %0 {splits=5} : io i32[T]"} {
		c := kerneltest.Case{Family: "argmax", Ctx: 64, Slots: 4, Pos: []int{20}, Rows: rows, N: rows - 1, Group: op,
			Globals: fmt.Sprintf("%s%sstep @x : f32[T, %d]\nstep @masked : i32[T]\nstep @mask : i32[1, %d]\nstep @among : i32[T, %d]\n", stepBlock, parts, vocab, words, ir.CandidateRow),
			Given:   map[string][]byte{"x": given(x), "masked": given([]int32{0, 0, 0, 0, 0, 0, 1, 0}), "mask": given(mask), "among": given(among)}}
		c.Run(t)
		c.CheckBuild(t)
	}
}

// TestOtherNormsAreNoPostNorms has pairs of norms that no kernel joins: the first is one of heads, and what is added
// last is made by the group.
func TestOtherNormsAreNoPostNorms(t *testing.T) {
	const sums = `%%0 = rmsnorm @a, @w {eps=1e-05, group=%d} : f32[T, 96]
%%1 = add %%0, @b : f32[T, 96]
%%2 = rmsnorm %%1, @w2 {eps=0.5, group=96} : f32[T, 96]
%%3 = add %%2, %s : io f32[T, 96]`
	for _, c := range []struct {
		group   int
		added   string
		offered bool
	}{{96, "@c", true}, {32, "@c", false}, {96, "%0", false}, {96, "%1", false}} {
		s := kerneltest.Case{Family: "rownorm", Ctx: 8, Slots: 1, Rows: 3, N: 2, Globals: fmt.Sprintf("step @a : f32[T, 96]\nstep @b : f32[T, 96]\nstep @c : f32[T, 96]\nweight @w : f32[%d]\nweight @w2 : f32[96]\n", c.group),
			Group: fmt.Sprintf(sums, c.group, c.added)}
		if list := kernels.Candidates(s.Site(t, kerneltest.Llvmpipe(t))); len(list) > 0 != c.offered {
			t.Errorf("%s: %d candidates", s.Group, len(list))
		}
	}
}
