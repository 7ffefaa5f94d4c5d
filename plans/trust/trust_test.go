package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func plan() *plans.Plan {
	return &plans.Plan{
		Header:    plans.Header{Target: "cpu"},
		Require:   plans.Requirements{Backend: plans.CPU, CPU: &plans.CPURequirements{Arch: "amd64"}},
		Modules:   []plans.Module{{Name: "k", Format: "elf-x86-64", Bytes: []byte{1, 2, 3}}},
		Pipelines: []plans.Pipeline{{Consts: []plans.Const{{ID: 1, Name: "n", Value: 7}}}},
		Entries:   []plans.Entry{{Name: "decode/1", Dispatches: []plans.Dispatch{{Grid: [3]int{1, 2, 3}, Args: []plans.Arg{{Name: "x", Bytes: 64}}}}}},
		Program:   &ir.Program{Name: "p"},
	}
}

// TestCheck checks that a plan runs once it is trusted, and that nothing of what it executes may differ then.
func TestCheck(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	p := plan()
	if err := Check(p); err == nil || !strings.Contains(err.Error(), "zincrun trust") {
		t.Fatalf("a plan from elsewhere: %v", err)
	}
	if err := Add(p); err != nil {
		t.Fatal(err)
	}
	p.Header.Model.Path = "elsewhere"
	if err := Check(p); err != nil {
		t.Errorf("a plan that is trusted: %v", err)
	}
	for name, change := range map[string]func(p *plans.Plan){
		"code":      func(p *plans.Plan) { p.Modules[0].Bytes[2]++ },
		"constant":  func(p *plans.Plan) { p.Pipelines[0].Consts[0].Value++ },
		"grid":      func(p *plans.Plan) { p.Entries[0].Dispatches[0].Grid[1]++ },
		"argument":  func(p *plans.Plan) { p.Entries[0].Dispatches[0].Args[0].Offset += 4 },
		"arena":     func(p *plans.Plan) { p.Memory.Arena += 64 },
		"weight":    func(p *plans.Plan) { p.Weights = append(p.Weights, plans.Weight{Name: "w"}) },
		"interface": func(p *plans.Plan) { p.Modules[0].Interface.Args++ },
		"features":  func(p *plans.Plan) { p.Require.CPU.Features = []string{"avx2"} },
	} {
		p := plan()
		change(p)
		if Check(p) == nil {
			t.Errorf("a plan with another %s is trusted", name)
		}
	}
}

func TestAccept(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(t.TempDir(), "none"))
	p := plan()
	p.Memory.Arena = 4096
	Accept(p)
	if err := Check(p); err != nil {
		t.Error(err)
	}
	p.Memory.Arena++
	if Check(p) == nil {
		t.Error("another plan is accepted, too")
	}
	p.Require = plans.Requirements{Backend: plans.Vulkan}
	if err := Check(p); err != nil {
		t.Errorf("a plan without machine code: %v", err)
	}
}

// TestAddFails checks that what cannot be recorded is an error.
func TestAddFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", file)
	if err := Add(plan()); err == nil {
		t.Error("no error")
	}
}
