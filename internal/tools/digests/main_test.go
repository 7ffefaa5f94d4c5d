package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/spirv"
)

// TestDigests compares the plans of the smallest models, of -short those of one for some targets; make digests compares
// all.
func TestDigests(t *testing.T) {
	some := selection{models: []string{"gopher-moe", "llama-1b"}}
	if testing.Short() {
		some = selection{[]string{"host", "llvmpipe", "sm_90", "sm_86-cuda", "gfx1201", "cpu:x86-64-v3"}, some.models[:1]}
	}
	if err := run("../../..", false, some); err != nil {
		t.Error(err)
	}
}

func TestCompare(t *testing.T) {
	want := []string{"aa  gopher sm_90 decode/1", "bb  gopher xe2 -"}
	if err := compare(want, want, true, list); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		have  []string
		whole bool
		says  string
	}{
		{[]string{"aa  gopher sm_90 decode/1"}, true, "gopher xe2 - is listed only"},
		{[]string{"ab  gopher sm_90 decode/1"}, false, "1 of 1 parts of plans are not those of " + list + ":\ngopher sm_90 decode/1 differs"},
		{[]string{"aa  gopher gfx1201 -"}, false, "gopher gfx1201 - is not listed"},
	} {
		if err := compare(want, c.have, c.whole, list); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.have, err, c.says)
		}
	}
	if err := compare(want, want[:1], false, list); err != nil {
		t.Error(err)
	}
}

func TestReplaced(t *testing.T) {
	have := replaced([]string{"aa  gopher sm_90 decode/1", "bb  gopher xe2 -"}, []string{"cc  gopher xe2 -", "dd  gopher xe2 decode/1"})
	if want := []string{"aa  gopher sm_90 decode/1", "cc  gopher xe2 -"}; !slices.Equal(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
}

func TestModelsAndTargetsByName(t *testing.T) {
	if _, err := compute("../../..", selection{[]string{"sm_90"}, []string{"nobody"}}, digests); err == nil {
		t.Error("a model that is not there gives an empty list")
	}
}

// named is a plan of one dispatch, whose kernel and its parts have a name.
func named(name string) *plans.Plan {
	b := spirv.NewBuilder()
	b.Name(b.Type(spirv.OpTypeVoid), name)
	b.Capability(spirv.CapabilityShader)
	words, err := b.Words()
	if err != nil {
		panic(err)
	}
	return &plans.Plan{
		Modules:   []plans.Module{{Name: name, Format: plans.SPIRV, Bytes: spirv.Bytes(words)}, {Name: name, Format: plans.PTX, Bytes: []byte("// " + name + "\nret;\n")}},
		Pipelines: []plans.Pipeline{{Module: 0, Wave: 32, Consts: []plans.Const{{ID: 3, Name: name, Value: 7}}}, {Module: 1}},
		Entries: []plans.Entry{{Name: "decode/1", Dispatches: []plans.Dispatch{
			{Site: name, Pipeline: 0, Grid: [3]int{1, 2, 3}, Args: []plans.Arg{{Name: name, Space: "arena", Offset: 64}}}, {Pipeline: 1},
		}}},
	}
}

// TestCodes: what things are called is no part of the code, and a change is told by what has changed.
func TestCodes(t *testing.T) {
	lines := func(p *plans.Plan) []string {
		list, err := codes(p)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := lines(named("gemv"))
	if after := lines(named("product")); !slices.Equal(after, before) {
		t.Errorf("%q with other names, %q before", after, before)
	}
	for want, change := range map[string]func(*plans.Plan){
		"in code":                 func(p *plans.Plan) { p.Modules[1].Bytes = []byte("exit;\n") },
		"in constants":            func(p *plans.Plan) { p.Pipelines[0].Consts[0].Value++ },
		"in grids":                func(p *plans.Plan) { p.Entries[0].Dispatches[0].Grid[1]++ },
		"in offsets":              func(p *plans.Plan) { p.Entries[0].Dispatches[0].Args[0].Offset++ },
		"in code, constants":      func(p *plans.Plan) { p.Entries[0].Dispatches[1].Pipeline = 0 },
		"decode/1 is listed only": func(p *plans.Plan) { p.Entries[0].Name = "decode/2" },
		"decode/2 is not listed":  func(p *plans.Plan) { p.Entries[0].Name = "decode/2" },
		"2 parts of plans are not t": func(p *plans.Plan) {
			p.Entries = append(p.Entries, p.Entries[0])
			p.Entries[0].Name, p.Entries[1].Name = "a", "b"
		},
	} {
		p := named("gemv")
		change(p)
		if err := compare(before, lines(p), true, "HEAD"); err == nil || !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestListCode lists the code of one plan's entries.
func TestListCode(t *testing.T) {
	var b strings.Builder
	if err := listCode(&b, "../../..", selection{[]string{"cpu:arm64"}, []string{"gopher"}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if i := slices.IndexFunc(lines, func(s string) bool { return strings.HasSuffix(s, "  gopher cpu:arm64 decode/1") }); i < 0 || len(strings.Fields(lines[i])) != len(codeColumns)+3 {
		t.Errorf("%q", lines)
	}
}
