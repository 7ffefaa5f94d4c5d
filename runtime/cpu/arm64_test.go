package cpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"testing"
)

// TestARM64 compares the dispatches of a layer with the oracle on an emulated processor, for which LLVM makes the code here.
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
	run := exec.Command("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", program, "-test.run", "^TestVerify$")
	if msg, err := run.CombinedOutput(); err != nil {
		t.Errorf("qemu-aarch64-static (Debian's qemu-user-static, libc6-arm64-cross): %v: %s", err, msg)
	}
}
