package gosrc

import (
	"bytes"
	"flag"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/spirv"
)

var update = flag.Bool("update", false, "write the golden files")

const tinyProgram = `zir 1
stage place
model arch="llama" name="Tiny \"model\" */ one" path="tiny.gguf" source="c0ffee" target="llvmpipe" ctx=64 slots=1 layers=1

weight @token_embd.weight : q8_0[32, 64] as planes
step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
step @out : i32[16]
step @count : i32[1]

func "decode/1" rows=1 sequences=many run=1 class=exact {
  group "embed" stage=0 waits=0 {
    call "embed q8_0/" kernel="embed q8_0" wave=8 grid=[4, 1, 1] const={width=64} args=[@token, @token_embd.weight, %0] why="only candidate"
    %0 = embed @token, @token_embd.weight {scale=1.0} : f32[T, 64] at 256
  }
  group "head" stage=1 waits=1 {
    call "gemv q8_0 cols=1/" kernel="gemv q8_0 cols=1" wave=8 grid=[2, 1, 1] const={k=64, n=32} args=[%0, @token_embd.weight, %1] why="cost model"
    %1 = linear %0, @token_embd.weight : io f32[T, 32]
  }
  group "argmax" stage=2 waits=2 {
    call "argmax/" kernel="argmax" wave=8 grid=[1, 1, 1] const={w=32} args=[%1, %2] why=""
    %2 = argmax %1 : io i32[T]
  }
  group "advance" stage=3 waits=3 {
    call "advance/" kernel="advance" wave=0 grid=[1, 1, 1] const={ring=16} args=[%2, @token, @pos, @slot, @n, @out, @count] why=""
    advance %2, @token, @pos, @slot, @n, @out, @count
  }
}
`

// tinyPlan has what plans have, and names that are no good in Go.
func tinyPlan(t *testing.T) *plans.Plan {
	t.Helper()
	program, err := ir.Parse(tinyProgram)
	if err != nil {
		t.Fatal(err)
	}
	in := func(name, space, region string, offset, n int64) plans.Arg {
		return plans.Arg{Name: name, Space: space, Region: region, Offset: offset, Bytes: n, Read: true}
	}
	out := func(name, space, region string, offset, n int64) plans.Arg {
		return plans.Arg{Name: name, Space: space, Region: region, Offset: offset, Bytes: n, Write: true}
	}
	module := func(name string) plans.Module {
		return plans.Module{Name: name, Format: plans.SPIRV, Bytes: spirv.Bytes([]uint32{0x07230203, 0x10300, 0, 1, 0}), Interface: plans.Interface{Entry: "main", Args: 3,
			Open: []plans.OpenConst{{ID: 0, Name: "k"}, {ID: 2, Name: "n"}}}}
	}
	weight := in("w", "weight", "token_embd.weight", 0, 2176)
	return &plans.Plan{
		Header: plans.Header{Compiler: "zincc test", Target: "llvmpipe", Ctx: 64, Slots: 1, KV: "f16", MaxRows: 1, Ring: 16, Model: plans.Model{
			Arch: "llama", Name: program.Name, Path: "tiny.gguf", Fingerprint: "c0ffee", Shards: 1, Layers: 1, Vocab: 32, Parameters: 2048}},
		Require: plans.Requirements{Backend: plans.Vulkan, Memory: 4096, Vulkan: &plans.VulkanRequirements{Features: []string{"bufferDeviceAddress"}, Subgroup: [2]int{8, 8}, Workgroup: 64}},
		Modules: []plans.Module{module("embed q8_0"), module("gemv q8_0 cols=1"), module("/* argmax */ panic(1)\n"), module("advance")},
		Pipelines: []plans.Pipeline{
			{Module: 0, Consts: []plans.Const{{ID: 0, Name: "width", Value: 64}}, Wave: 8, Workgroup: 8},
			{Module: 1, Consts: []plans.Const{{ID: 0, Name: "k", Value: 64}, {ID: 1, Name: "n", Value: 32}}, Wave: 8, Workgroup: 64, Shared: 128,
				Machine: &plans.Machine{Compiler: "ACO", VGPRs: 24, Waves: 16, Code: 512}},
			{Module: 2, Wave: 8, Workgroup: 8}, {Module: 3, Workgroup: 1},
		},
		Memory: plans.Memory{
			Arena: 512,
			Step: []plans.Region{{Name: "token", Bytes: 4}, {Name: "pos", Bytes: 4}, {Name: "slot", Bytes: 4}, {Name: "n", Bytes: 4},
				{Name: "out", Bytes: 64}, {Name: "count", Bytes: 4}},
			IO: []plans.Region{{Name: "decode/1:%1", Bytes: 128}, {Name: "decode/1:%2", Bytes: 4}},
		},
		Weights: []plans.Weight{{Name: "token_embd.weight", DType: ir.Q8_0, Shape: []int64{32, 64}, Offset: 4096, Size: 2176, Layout: "planes", Bytes: 2176, At: -1}},
		Entries: []plans.Entry{{
			Name: "decode/1", Kind: "decode", Rows: 1, Run: 1, Class: "exact", Reach: 1, Logits: "decode/1:%1", Next: "decode/1:%2",
			Dispatches: []plans.Dispatch{
				{Site: "embed", Pipeline: 0, Grid: [3]int{4, 1, 1}, Why: "only candidate",
					Args:  []plans.Arg{in("ids", "step", "token", 0, 4), weight, out("y", "arena", "", 256, 256)},
					Cover: []plans.Cover{{Arg: "y", Dims: []int{1, 64}, Tile: []int{1, 16}, Axis: []int{-1, 0}}},
					Cost:  plans.Cost{ReadBytes: 72, WriteBytes: 256}},
				{Site: "head", Pipeline: 1, Grid: [3]int{2, 1, 1}, Order: ir.Order{Stage: 1, Waits: 1}, Why: "cost model: 2.5 us\nof two",
					Args:  []plans.Arg{in("x", "arena", "", 256, 256), weight, out("y", "io", "decode/1:%1", 0, 128)},
					Cover: []plans.Cover{{Arg: "y", Dims: []int{1, 32}, Tile: []int{1, 16}, Axis: []int{-1, 0}}},
					Cost:  plans.Cost{ReadBytes: 2432, WriteBytes: 128, FLOPs: 4096, Predicted: plans.Times{Bytes: 5e-7, Operations: 1e-7, Stage: 2e-6}}},
				{Site: "argmax", Pipeline: 2, Grid: [3]int{1, 1, 1}, Order: ir.Order{Stage: 2, Waits: 2},
					Args:  []plans.Arg{in("x", "io", "decode/1:%1", 0, 128), out("y", "io", "decode/1:%2", 0, 4)},
					Cover: []plans.Cover{{Arg: "y", Dims: []int{1}, Tile: []int{1}, Axis: []int{0}}}},
				{Site: "advance", Pipeline: 3, Grid: [3]int{1, 1, 1}, Order: ir.Order{Stage: 3, Waits: 3}, Args: []plans.Arg{
					in("next", "io", "decode/1:%2", 0, 4), out("token", "step", "token", 0, 4), out("pos", "step", "pos", 0, 4), in("slot", "step", "slot", 0, 4),
					in("n", "step", "n", 0, 4), out("out", "step", "out", 0, 64), out("count", "step", "count", 0, 4)}},
			},
		}},
		Program: program,
		Vocab:   plans.Vocab{Model: "gpt2", Pre: "qwen2", Tokens: slices.Repeat([]string{"\x00\xff"}, 32)},
	}
}

// TestGolden compares the Go files of the tiny plan with testdata/tiny.txtar.
func TestGolden(t *testing.T) {
	files, err := Files(tinyPlan(t))
	if err != nil {
		t.Fatal(err)
	}
	have := &txtar.Archive{}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		if path.Ext(f.Name) == ".go" {
			have.Files = append(have.Files, txtar.File{Name: f.Name, Data: f.Data})
			if _, err := parser.ParseFile(token.NewFileSet(), f.Name, f.Data, 0); err != nil {
				t.Error(err)
			}
		}
	}
	want := "entry_decode_1.go files.go kernels/000-embed-q8-0.spv kernels/001-gemv-q8-0-cols-1.spv kernels/002-argmax-panic-1.spv kernels/003-advance.spv " +
		"main.go memory.go pipelines.go plan.go program.zir vocab.bin weights.go"
	if strings.Join(names, " ") != want {
		t.Errorf("files %q, want %s", names, want)
	}
	golden := filepath.Join("testdata", "tiny.txtar")
	if *update {
		if err := os.WriteFile(golden, txtar.Format(have), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := txtar.Format(have); !bytes.Equal(got, text) {
		t.Errorf("source differs from %s (-update to accept):\n%s", golden, got)
	}
	again, err := Files(tinyPlan(t))
	if err != nil || !reflect.DeepEqual(files, again) {
		t.Errorf("another run gives other files, %v", err)
	}
}

func TestNames(t *testing.T) {
	n := names{"blk0K": true}
	for _, c := range []struct{ text, want string }{
		{"blk.0.attn_q.weight", "blk0AttnQWeight"},
		{"blk.0.k", "blk0KX2"},
		{"blk.0_k", "blk0KX3"},
		{"func", "funcX"},
		{"8b", "x8b"},
		{"語", "X"},
		{"語.", "XX2"},
		{"a*/b\n", "aB"},
	} {
		if got := n.add(c.text); got != c.want || !token.IsIdentifier(got) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestLiterals(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{"a\"\n`\x00", `"a\"\n` + "`" + `\x00"`},
		{float32(0.1), "0.1"},
		{float32(1e-45), "1e-45"},
		{float32(math.Inf(1)), "math.Float32frombits(0x7f800000)"},
		{math.Float32frombits(1 << 31), "math.Float32frombits(0x80000000)"},
		{plans.Times{Stage: math.Float32frombits(1 << 31)}, "plans.Times{Stage: math.Float32frombits(0x80000000)}"},
		{int64(math.MinInt64), "-9223372036854775808"},
		{uint32(math.MaxUint32), "4294967295"},
		{ir.IQ4_XS, "ir.IQ4_XS"},
		{[3]int{1, 0, 2}, "[3]int{1, 0, 2}"},
		{[]string{}, "[]string{}"},
		{plans.Const{ID: 0, Name: "k"}, `plans.Const{Name: "k"}`},
		{&plans.Times{Bytes: 2}, "&plans.Times{Bytes: 2}"},
		{plans.Cover{Dims: []int{}, Tile: []int{1}}, "plans.Cover{Tile: []int{1}}"},
	} {
		var b bytes.Buffer
		if err := jen.Var().Id("x").Op("=").Add(literal(reflect.ValueOf(c.value), plain)).Render(&b); err != nil {
			t.Errorf("%v: %v", c.value, err)
		} else if got := strings.TrimPrefix(b.String(), "var x = "); got != c.want {
			t.Errorf("%v: %s, want %s", c.value, got, c.want)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../../ir/dtype.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ir.DTypes() {
		if name := strings.ToUpper(d.String()); file.Scope.Lookup(name) == nil {
			t.Errorf("package ir has no %s", name)
		}
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// write writes the program of p.
func write(dir string, p *plans.Plan) error {
	files, err := Files(p)
	if err != nil {
		return err
	}
	return WriteFiles(dir, files)
}

func TestWrite(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "tiny")
	p := tinyPlan(t)
	if err := write(dir, p); err != nil {
		t.Fatal(err)
	}
	first := list(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module tiny\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	// Another plan takes the place of all but the module's file.
	p.Entries[0].Dispatches[0].Why = "another"
	p.Modules[0].Name = "embed other"
	if err := write(dir, p); err != nil {
		t.Fatal(err)
	}
	second := list(t, dir)
	if want := strings.Replace(strings.Replace(first, "files.go", "files.go go.mod", 1), "000-embed-q8-0", "000-embed-other", 1); second != want {
		t.Errorf("files\n%s, want\n%s", second, want)
	}
	// A plan that is wrong, and files of someone else, leave everything as it is.
	p.Entries[0].Dispatches[0].Pipeline = 99
	if err := write(dir, p); err == nil {
		t.Error("a plan that is wrong was written")
	}
	p.Entries[0].Dispatches[0].Pipeline = 0
	if err := os.WriteFile(filepath.Join(dir, "mine.go"), []byte("package main\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, p); err == nil || !strings.Contains(err.Error(), "mine.go is not from zincc") {
		t.Errorf("error %v", err)
	}
	if got := list(t, dir); got != strings.Replace(second, "memory.go", "memory.go mine.go", 1) {
		t.Errorf("after failures: %s", got)
	}
	if err := write(filepath.Join(parent, "none", "tiny"), p); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v", err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
