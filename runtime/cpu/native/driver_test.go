package native

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the driver's objects")

// TestDriverObject checks that the embedded objects are what LLVM makes of driver.ll.
func TestDriverObject(t *testing.T) {
	for _, m := range []struct{ file, triple, attributes string }{
		{"driver_amd64.o", "x86_64-unknown-linux-gnu", ""},
		{"driver_arm64.o", "aarch64-unknown-linux-gnu", "+reserve-x18,+reserve-x28"},
	} {
		made := compileIR(t, "driver.ll", m.triple, m.attributes)
		if *update {
			if err := os.WriteFile(m.file, made, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(m.file)
		if err != nil || !bytes.Equal(kept, made) {
			t.Errorf("%s is not what llc makes of driver.ll: %v; go generate rewrites it", m.file, err)
		}
	}
}

// compileIR returns the object that llc makes of a file.
func compileIR(t testing.TB, path, triple, attributes string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.o")
	cmd := exec.Command("llc-19", "-O2", "-mtriple="+triple, "-mattr="+attributes, "-relocation-model=pic", "--stack-size-section", "-filetype=obj", path, "-o", out)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("llc-19 (Debian's llvm-19): %v: %s", err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
