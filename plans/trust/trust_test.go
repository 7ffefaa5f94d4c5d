package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// plan is a plan that was written to a file and read from it; change, if not nil, changes it before.
func plan(t *testing.T, change func(p *plans.Plan)) *plans.Plan {
	t.Helper()
	program := &ir.Program{Name: "p", Stage: ir.Place, Target: "host", Ctx: 1, Slots: 1, Source: "00"}
	p := &plans.Plan{
		Header: plans.Header{Target: "host", KV: "none", Ctx: 1, Slots: 1, MaxRows: 1, Ring: 1, Model: plans.Model{Fingerprint: "00", Shards: 1}},
		Memory: plans.Memory{Arena: 64}, Require: plans.Requirements{Backend: plans.Host}, Program: program,
	}
	if change != nil {
		change(p)
	}
	path := filepath.Join(t.TempDir(), "plan.bin")
	if _, err := plans.WriteFile(path, p); err != nil {
		t.Fatal(err)
	}
	p, err := plans.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func digest(t *testing.T, p *plans.Plan) plans.Digest {
	t.Helper()
	d, ok := p.Digest()
	if !ok {
		t.Fatal("no digest")
	}
	return d
}

// TestCheck checks that a plan of any backend runs once it is trusted, and that nothing of it may differ then.
func TestCheck(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	p := plan(t, nil)
	unknown := func(what string, err error) {
		t.Helper()
		var e *UnknownError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "zincrun trust") || !strings.Contains(err.Error(), "zincc check") {
			t.Errorf("%s: %v", what, err)
		}
	}
	unknown("a plan from elsewhere", Check(p))
	if err := Add(digest(t, p)); err != nil {
		t.Fatal(err)
	}
	if err := Check(plan(t, nil)); err != nil {
		t.Errorf("a plan that is trusted: %v", err)
	}
	for name, change := range map[string]func(p *plans.Plan){
		"vocabulary": func(p *plans.Plan) { p.Header.Model.Vocab = 3_000_000 },
		"compiler":   func(p *plans.Plan) { p.Header.Compiler = "another" },
		"template":   func(p *plans.Plan) { p.Vocab.ChatTemplate = "{{ 1 }}" },
		"dialect":    func(p *plans.Plan) { p.Dialect.Name = "another" },
		"arena":      func(p *plans.Plan) { p.Memory.Arena += 64 },
	} {
		unknown("another "+name, Check(plan(t, change)))
	}
}

// TestAccept checks what needs no record.
func TestAccept(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(t.TempDir(), "none"))
	p := plan(t, func(p *plans.Plan) { p.Memory.Arena = 4096 })
	q := plan(t, func(p *plans.Plan) { p.Memory.Arena = 8192 })
	Accept(digest(t, p))
	if err := Check(p); err != nil {
		t.Error(err)
	}
	if Check(q) == nil {
		t.Error("another plan is accepted, too")
	}
	if err := Check(&plans.Plan{}); err != nil {
		t.Errorf("a plan that this program has made: %v", err)
	}
}

// TestRecords checks that records count only where nobody else can have written them.
func TestRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", file)
	p := plan(t, func(p *plans.Plan) { p.Memory.Arena = 128 })
	if err := Add(digest(t, p)); err == nil {
		t.Error("a record below a file")
	}
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	if err := Add(digest(t, p)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"zincc/trusted", "zincc"} {
		dir = filepath.Join(config, dir)
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := Check(p); err == nil || !strings.Contains(err.Error(), dir+": others may write it") {
			t.Errorf("a record that others can have made in %s: %v", dir, err)
		}
		if err := Add(digest(t, p)); err == nil {
			t.Error("a record is made that does not count")
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(p); err != nil {
		t.Error(err)
	}
}
