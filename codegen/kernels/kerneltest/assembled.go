package kerneltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
	"github.com/zincc-dev/zincc/codegen/kernels"
)

// mostSpilled is the bytes that lanes may lack registers for: values that are used once.
const mostSpilled = 48

// Assembled holds that NVIDIA's assembler takes a candidate's module, that all but little fits into registers, and that
// products are made while lanes go on.
func Assembled(t testing.TB, c kernels.Candidate) {
	t.Helper()
	f, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]uint32{}
	for _, k := range c.Consts {
		byName[k.Name] = k.Value
	}
	spec, err := f.SpecValues(byName)
	if err != nil {
		t.Fatal(err)
	}
	text, err := ptx.Lower(f, ptx.Options{Arch: 90, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "module.ptx")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ptxas", "-v", "-arch=sm_90a", "-o", os.DevNull, path).CombinedOutput()
	spilled := 0
	if _, before, ok := strings.Cut(string(out), "stack frame, "); ok {
		_, err = fmt.Sscanf(before, "%d bytes spill stores", &spilled)
	}
	if err != nil || spilled > mostSpilled || strings.Contains(string(out), "serialized") {
		t.Errorf("%s: %v\n%s", c.Kernel, err, out)
	}
}
