package zincc

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/zincc-dev/zincc"

// familyUses is what kernels are made of.
var familyUses = []string{"codegen/kernel", "codegen/target", "codegen/kernels/lane", "codegen/kernels/fragment", "codegen/kernels/site", "ir", "plans"}

// layers is the dependency rule: a package may import its own folder's packages
// and the listed folders, with what is below them. The longest row that fits a
// package counts. Tests may import more: they compare layers with each other.
var layers = []struct {
	folder string
	uses   []string
}{
	{".", []string{"runtime"}},
	{"ir", nil},
	{"gpu", nil},
	{"ir/gguf", []string{"ir", "internal/mapped"}},
	{"ir/frontend", []string{"ir", "ir/gguf", "internal/mapped"}},
	{"ir/oracle", []string{"ir", "ir/gguf", "internal/mapped"}},
	{"spirv", []string{"ir"}},
	{"passes", []string{"ir"}},
	{"plans", []string{"ir", "internal/mapped", "internal/outfile", "internal/printable", "internal/private", "internal/processor", "internal/table"}},
	// What reads the code in a plan; plans itself takes modules as they are.
	{"plans/modules", []string{"plans/object", "plans", "spirv"}},
	{"plans/audit", []string{"plans", "plans/modules"}},
	{"plans/report", []string{"ir", "plans", "plans/modules", "internal/table"}},
	{"codegen", []string{"internal/mapped", "internal/outfile", "internal/private", "internal/table", "gpu", "ir", "passes", "plans", "spirv", "internal/printable", "internal/version"}},
	{"codegen/kernel", []string{"ir"}},
	{"codegen/kernel/llvm", []string{"codegen/kernel", "internal/processor"}},
	{"codegen/kernel/spirv", []string{"codegen/kernel", "spirv"}},
	// Families of kernels share what lies below them, and nothing with each other.
	{"codegen/kernels/lane", []string{"codegen/kernel"}},
	{"codegen/kernels/fragment", []string{"codegen/kernel"}},
	{"codegen/kernels/site", []string{"codegen/kernel", "codegen/target", "ir", "plans"}},
	{"codegen/kernels/weight", familyUses},
	{"codegen/kernels/matmul", append(familyUses, "codegen/kernels/weight")},
	{"codegen/kernels/attention", append(familyUses, "codegen/kernels/weight")},
	{"codegen/kernels/recurrent", append(familyUses, "codegen/kernels/weight")},
	{"codegen/kernels/rowwise", append(familyUses, "codegen/kernels/weight")},
	// What runs kernels in tests has a device.
	{"codegen/kernels/kerneltest", []string{"codegen/kernel", "codegen/kernels", "codegen/kernels/weight", "codegen/radv", "codegen/strategy", "codegen/target", "internal/rdna", "internal/synth", "ir", "plans", "runtime/vulkan", "spirv"}},
	{"codegen/strategy", []string{"codegen/kernels", "codegen/target", "ir", "plans"}},
	// The one compiler-side package that opens a device: a driver compiles for it.
	{"codegen/radv", []string{"internal/private", "plans", "runtime/vulkan"}},
	{"codegen/radv/emulate", []string{"codegen/radv", "internal/rdna", "internal/table", "ir", "plans", "runtime"}},
	{"codegen/radvpeer", []string{"codegen", "codegen/kernel", "codegen/kernels", "codegen/radv", "codegen/target", "internal/rdna", "ir"}},
	// A driver knows plans and its device; what runs plans on it is above.
	{"runtime/driver", []string{"ir", "plans"}},
	{"runtime", []string{"gpu", "ir", "plans", "internal/disk", "internal/table", "internal/mapped", "internal/outfile", "internal/printable", "internal/private", "internal/processor", "internal/progress"}},
	{"runtime/standalone", []string{"ir", "plans", "runtime", "runtime/device", "runtime/engine", "runtime/text", "internal/cli", "internal/printable"}},
	{"internal", nil},
	{"internal/cli/clitest", []string{"ir", "plans", "internal/cli"}},
	{"internal/synth", []string{"ir"}},
	{"internal/models", []string{"internal/cli", "internal/printable", "internal/table", "runtime/library", "runtime/pull"}},
	// What serves models within tests.
	{"internal/hosted", []string{"ir", "plans", "codegen", "runtime"}},
	{"internal/conform/grammars", []string{"runtime/grammar"}},
	{"internal/tools/soak", []string{"runtime"}},
	{"internal/tools/digests", []string{"ir", "passes", "plans", "codegen", "spirv", "internal/synth"}},
	{"internal/tools/amdkernels", []string{"ir", "plans", "codegen", "internal/rdna", "internal/synth", "internal/table"}},
	{"internal/tools/headers", []string{"codegen", "internal/synth"}},
	{"internal/tools/makeobjects", []string{"ir", "internal/outfile", "plans", "codegen", "internal/synth"}},
	{"cmd", []string{"gpu", "ir", "passes", "plans", "codegen", "spirv", "runtime", "internal"}},
}

// exact are the folders whose packages are not one layer: a row for ir does not
// let ir itself import ir/gguf.
var exact = map[string]bool{"ir": true}

func TestDependencyRule(t *testing.T) {
	packages := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "vkcheck") {
			return filepath.SkipDir
		}
		pkg, err := build.ImportDir(path, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil {
			return err
		}
		packages++
		for _, imported := range pkg.Imports {
			if name, ours := strings.CutPrefix(imported, module+"/"); ours && !mayImport(filepath.ToSlash(path), name) {
				t.Errorf("%s must not import %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if packages < 15 {
		t.Errorf("only %d packages found", packages)
	}
}

func TestDependencyRuleHolds(t *testing.T) {
	for _, c := range []struct {
		pkg, imports string
		want         bool
	}{
		{"ir", "ir/gguf", false},
		{"ir/gguf", "ir", true},
		{"ir/gguf", "ir/frontend", false},
		{"passes", "codegen", false},
		{"runtime/vulkan", "codegen/target", false},
		{"runtime/text", "passes", false},
		{"runtime/device", "runtime/host", true},
		{"runtime/driver", "runtime", false},
		{"runtime/driver/fake", "runtime/driver", true},
		{"codegen/kernels", "plans/layout", true},
		{"codegen/kernels", "runtime/vulkan", false},
		{"codegen/kernels", "codegen/kernels/matmul", true},
		{"codegen/kernels/attention", "codegen/kernels/matmul", false},
		{"codegen/kernels/matmul", "codegen/kernels", false},
		{"codegen/kernels/matmul", "codegen/strategy", false},
		{"codegen/strategy", "codegen/radv", false},
		{"codegen/kernels/kerneltest", "runtime/vulkan", true},
		{"codegen/kernels/lane", "codegen/kernels/site", false},
		{"codegen/radv", "runtime/vulkan", true},
		{"plans", "runtime", false},
		{"plans", "spirv", false},
		{"plans/modules", "spirv", true},
		{"plans/audit", "spirv", false},
		{"plans/audit", "plans/modules", true},
		{"nowhere", "ir", false},
	} {
		if got := mayImport(c.pkg, c.imports); got != c.want {
			t.Errorf("%s imports %s: %v, want %v", c.pkg, c.imports, got, c.want)
		}
	}
}

func mayImport(pkg, imported string) bool {
	best := -1
	for i, l := range layers {
		if within(pkg, l.folder) && (best < 0 || len(l.folder) > len(layers[best].folder)) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	row := layers[best]
	if within(imported, row.folder) && !exact[row.folder] {
		return true
	}
	for _, u := range row.uses {
		// "ir" is all of ir for the folders above it, but only itself within it.
		if imported == u || within(imported, u) && !within(pkg, u) {
			return true
		}
	}
	return false
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
