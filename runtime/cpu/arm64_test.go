package cpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"testing"
)

// TestARM64 compares the dispatches of a layer with the oracle on emulated processors: one with dot products of unsigned and signed bytes,
// one without. LLVM makes their code, on this processor.
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
	for _, kind := range []string{"max", "neoverse-n1"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			run := exec.Command("qemu-aarch64-static", "-cpu", kind, "-L", "/usr/aarch64-linux-gnu", program, "-test.run", "^TestVerify$")
			if msg, err := run.CombinedOutput(); err != nil {
				t.Errorf("qemu-aarch64-static (Debian's qemu-user-static, libc6-arm64-cross): %v: %s", err, msg)
			}
		})
	}
}
