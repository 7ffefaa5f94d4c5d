package passes

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/zincc-dev/zincc/ir"
)

var update = flag.Bool("update", false, "write what the passes make into the goldens")

// goldenEntries keep the golden of SplitEntries short.
var goldenEntries = []Entry{{Kind: Decode, Rows: 1, Run: 1, Class: ir.ExactStep}, ReadsPrompts(Prefill, 8), ReadsPrompts(Score, 4)}

// TestGolden runs one pass on in.zir of every testdata/PASS.txtar and
// PASS-CASE.txtar. What a pass finds is not always the end of a stage, so in.zir
// may be of an earlier one than the pass's.
func TestGolden(t *testing.T) {
	for _, pass := range Table(goldenEntries, Device{Kernels: goldenKernels{}, Queues: true, Overlaps: true, Widest: 8}) {
		files, err := filepath.Glob("testdata/" + pass.Name + "*.txtar")
		if err != nil || len(files) == 0 {
			t.Errorf("pass %s has no golden (%v)", pass.Name, err)
		}
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { golden(t, pass, file) })
		}
	}
}

// goldenKernels are kernels of no device.
type goldenKernels struct{}

// Unites: no experts are united.
func (goldenKernels) Unites(*ir.Func, *ir.Op, *ir.Op) bool { return false }

// Finishes: products take in squares and factors.
func (goldenKernels) Finishes(op *ir.Op) bool {
	return op.Kind.Name == "relu2" || op.Kind.Name == "scale"
}

// FollowParts: all do.
func (goldenKernels) FollowParts(*ir.Program) bool { return true }

// NormsRuns has norms of runs taken in that have a gain for each element.
func (goldenKernels) NormsRuns(norm, _ *ir.Op, _ int) bool {
	return len(norm.Args) == 2 && norm.Args[1].Type.Last() == norm.Result.Type.Last()
}

// Computes has kernels of groups that write at most one ring, at the rows of the widest exact step.
func (goldenKernels) Computes(_ *ir.Program, f *ir.Func, g *ir.Group) bool {
	writes := 0
	for _, op := range g.Ops {
		if op.Kind.Name == "conv_write" {
			writes++
		}
	}
	return f.Rows == 8 && f.Class == ir.ExactStep && writes < 2
}

func golden(t *testing.T, pass Pass, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Files) != 2 || archive.Files[0].Name != "in.zir" || archive.Files[1].Name != "want.zir" {
		t.Fatal("want in.zir and want.zir")
	}
	p, err := ir.Parse(string(archive.Files[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	p.Stage = pass.Stage
	if err := pass.Run(p); err != nil {
		t.Fatal(err)
	}
	if err := ir.VerifyStructure(p); err != nil {
		t.Error(err)
	}
	have := ir.Print(p)
	if have == string(archive.Files[1].Data) {
		return
	}
	if !*update {
		t.Fatalf("have\n%s\ngo test -update writes it", have)
	}
	archive.Files[1].Data = []byte(have)
	if err := os.WriteFile(file, txtar.Format(archive), 0o666); err != nil {
		t.Fatal(err)
	}
}
