package kernel_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
)

// assemble holds that NVIDIA's assembler takes a module. Debian's package of it knows
// architectures up to sm_90.
func assemble(t *testing.T, arch int, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "module.ptx")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ptxas", fmt.Sprintf("-arch=sm_%d", arch), "-o", os.DevNull, path).CombinedOutput()
	if err != nil {
		t.Errorf("sm_%d: %v\n%s%s", arch, err, out, text)
	}
}

// TestPTX compares modules with testdata and has them assembled, for the oldest architecture,
// the newest that the assembler knows, and one between.
func TestPTX(t *testing.T) {
	cases := append(allCases(), kernelCase{"matrices", true, matrices}, kernelCase{"pairs", true, pairs})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := kernel.Build(c.name, c.build)
			if err != nil {
				t.Fatal(err)
			}
			for _, arch := range []int{75, 80, 90} {
				text, err := ptx.Lower(f, ptx.Options{Arch: arch})
				if err != nil {
					t.Fatal(err)
				}
				assemble(t, arch, text)
				if again, _ := ptx.Lower(f, ptx.Options{Arch: arch}); again != text {
					t.Error("the same kernel gave another text")
				}
				if arch == 90 && c.golden {
					goldenPTX(t, c.name, f, text)
				}
			}
		})
	}
}

func goldenPTX(t *testing.T, name string, f *kernel.Func, text string) {
	t.Helper()
	got := txtar.Format(&txtar.Archive{Files: []txtar.File{{Name: "kernel", Data: []byte(f.String())}, {Name: "ptx", Data: []byte(text)}}})
	path := filepath.Join("testdata", "ptx", name+".txtar")
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
