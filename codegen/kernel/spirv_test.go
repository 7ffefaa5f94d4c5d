package kernel_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/spirv"
)

var update = flag.Bool("update", false, "rewrite the goldens")

func lower(t *testing.T, c kernelCase) (*kernel.Func, []uint32) {
	t.Helper()
	f, err := kernel.Build(c.name, c.build)
	if err != nil {
		t.Fatal(err)
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	return f, words
}

func allCases() []kernelCase {
	rms := kernelCase{"rms_norm", true, rmsNorm}
	return append([]kernelCase{rms}, kernelCases...)
}

func TestModulesAreValid(t *testing.T) {
	for _, c := range allCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, words := lower(t, c)
			if err := spirv.Validate(words, spirv.Vulkan12); err != nil {
				t.Fatal(err)
			}
			_, again := lower(t, c)
			if !slices.Equal(words, again) {
				t.Error("the same kernel gave other words")
			}
			frozen, err := spirv.Specialize(words, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := spirv.Validate(frozen, spirv.Vulkan12); err != nil {
				t.Errorf("specialized: %v", err)
			}
			specs, err := spirv.SpecConstants(words)
			if err != nil {
				t.Fatal(err)
			}
			if len(specs) != len(f.Spec) {
				t.Fatalf("%d specialization constants in the module, %d in the kernel", len(specs), len(f.Spec))
			}
			for i, s := range f.Spec {
				if want := (spirv.SpecConstant{SpecID: s.ID, Name: s.Name, Default: s.Default}); specs[i] != want {
					t.Errorf("specialization constant %d: %+v, want %+v", i, specs[i], want)
				}
			}
		})
	}
}

// TestDisassemblyAssembles holds that spirv-as makes the module of its text: the
// text of what it makes is the same again.
func TestDisassemblyAssembles(t *testing.T) {
	for _, c := range allCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, words := lower(t, c)
			text, err := spirv.Disassemble(words)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("spirv-as", "--target-env", "spv1.5", "--preserve-numeric-ids", "-o", "-", "-")
			cmd.Stdin = bytes.NewReader([]byte(text))
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			back, err := spirv.Words(out)
			if err != nil {
				t.Fatal(err)
			}
			again, err := spirv.Disassemble(back)
			if err != nil {
				t.Fatal(err)
			}
			if withoutHeader(again) != withoutHeader(text) {
				t.Error("spirv-as makes another module")
			}
		})
	}
}

// withoutHeader drops the comments that name the generator and the bound.
func withoutHeader(text string) string {
	return text[strings.LastIndex(text, ";"):]
}

func TestGoldens(t *testing.T) {
	for _, c := range allCases() {
		if !c.golden {
			continue
		}
		f, words := lower(t, c)
		checkGolden(t, c.name, f, words)
	}
}

// checkGolden compares a kernel and its module with what testdata has of them.
func checkGolden(t *testing.T, name string, f *kernel.Func, words []uint32) {
	t.Helper()
	text, err := spirv.Disassemble(words)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, name, f, "spvasm", text)
}

// golden compares a kernel and its code in the form with testdata's file of the name.
func golden(t *testing.T, name string, f *kernel.Func, form, code string) {
	t.Helper()
	got := txtar.Format(&txtar.Archive{Files: []txtar.File{{Name: "kernel", Data: []byte(f.String())}, {Name: form, Data: []byte(code)}}})
	path := filepath.Join("testdata", name+".txtar")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; -update rewrites it", path)
	}
}
