package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestARM64 runs the tests of this package on an emulated processor: the linked code, the
// call and the driver. What an emulator does not show is whether the caches agree.
func TestARM64(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		return // this is that run, or needs none
	}
	if testing.Short() {
		t.Skip("TestDriverObject compiles the driver for arm64; the tests that this one emulates run on this processor")
	}
	program := filepath.Join(t.TempDir(), "native.test")
	build := exec.Command("go", "test", "-c", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	run := exec.Command("qemu-aarch64-static", program, "-test.run", "^Test(Run|Group|Help|Stop|Wait|CallAllocatesNothing)$", "-rapid.checks", "20")
	if msg, err := run.CombinedOutput(); err != nil {
		t.Errorf("qemu-aarch64-static (Debian's qemu-user-static): %v: %s", err, msg)
	}
}
