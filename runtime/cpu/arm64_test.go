package cpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"testing"
)

// TestARM64 runs models on emulated processors, with and without dot products of unsigned and signed bytes: all layers write the
// oracle's texts, and each dispatch of one agrees with it.
func TestARM64(t *testing.T) {
	if goruntime.GOARCH == "arm64" {
		return // this is that run, or needs none
	}
	program := filepath.Join(t.TempDir(), "cpu.test")
	build := exec.Command("go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	for _, processor := range []string{"neoverse-n1", "max"} {
		run := exec.Command("qemu-aarch64-static", "-cpu", processor, "-L", "/usr/aarch64-linux-gnu", program, "-test.run", "^Test(Verify|Texts)$")
		if msg, err := run.CombinedOutput(); err != nil {
			t.Errorf("qemu-aarch64-static (Debian's qemu-user-static, libc6-arm64-cross) as %s: %v: %s", processor, err, msg)
		}
	}
}
