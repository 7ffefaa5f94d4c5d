package hostile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
)

// TestMain keeps tests away from the user's folders.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "zincc-hostile-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// modelPath is a model of testdata, such as gopher, or the header of a shape of package synth.
func modelPath(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("../../testdata/models", name+"-q4_k_m.gguf")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	for _, s := range synth.Small() {
		if s.Name == name {
			m, err := synth.New(s)
			if err != nil {
				t.Fatal(err)
			}
			path = filepath.Join(t.TempDir(), name+".gguf")
			if err := m.WriteHeader(path); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatalf("no model %q", name)
	return ""
}

// compile makes a plan of a model for a target, with entries of so many rows at most.
func compile(t testing.TB, model, on string, rows int) *plans.Plan {
	t.Helper()
	f, err := gguf.OpenHeader(modelPath(t, model))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	to, err := target.Lookup(on)
	if err != nil {
		t.Fatal(err)
	}
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: to, Import: frontend.Options{Ctx: 256, KV: ir.F16, MaxRows: rows}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

// reproduced reports whether `zincc check` would let a plan run.
func reproduced(t testing.TB, p *plans.Plan) bool {
	t.Helper()
	if codegen.Reproducible(p) != nil || len(audit.Check(p)) > 0 {
		return false
	}
	problems, err := codegen.CheckReproduced(t.Context(), p)
	return err == nil && len(problems) == 0
}
