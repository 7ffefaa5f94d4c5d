package cpu_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/runtime/host"
)

// TestARM64 runs models on emulated processors, with and without dot products of unsigned and signed bytes: all layers
// write the oracle's texts, and each dispatch of one agrees with it. A processor without them refuses the plans that
// have them.
func TestARM64(t *testing.T) {
	if testing.Short() {
		t.Skip("TestNothingIsMissing of internal/tools/makeobjects lowers kernels for arm64, TestTexts runs the models on this processor")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "emulated")
	build := exec.Command("go", "build", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", program, "./cputest/emulated")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	t.Setenv("XDG_CACHE_HOME", dir)
	files, want := map[string][]string{}, map[string]string{}
	for _, name := range []string{"cpu:arm64", "cpu:arm64-i8mm"} {
		for _, m := range []shortModel{gopher, gopherMoE} {
			keepObjects(t, filepath.Join(dir, "zincc", "objects"), name, m.file)
			data, err := encode(name, m.file, m.entries...)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, strings.TrimPrefix(name, "cpu:")+m.file)
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			files[name] = append(files[name], path)
			plan, src := decode(t, data)
			oracle, err := host.New(t.Context(), plan, src)
			if err != nil {
				t.Fatal(err)
			}
			want[name] += fmt.Sprintln(greedy(t, plan, oracle, 4))
		}
	}
	for _, c := range []struct{ processor, plans, fails string }{
		{"neoverse-n1", "cpu:arm64", ""}, {"neoverse-n1", "cpu:arm64-i8mm", "i8mm"}, {"max", "cpu:arm64-i8mm", ""},
	} {
		run := exec.Command("qemu-aarch64-static", append([]string{"-cpu", c.processor, "-L", "/usr/aarch64-linux-gnu", program}, files[c.plans]...)...)
		var said bytes.Buffer
		run.Stderr = &said
		tokens, err := run.Output()
		if c.fails == "" && (err != nil || string(tokens) != want[c.plans]) || c.fails != "" && (err == nil || !strings.Contains(said.String(), c.fails)) {
			t.Errorf("qemu-aarch64-static (Debian's qemu-user-static, libc6-arm64-cross) as %s with plans for %s: %v: %s, tokens %s, want %s", c.processor,
				c.plans, err, said.String(), tokens, want[c.plans])
		}
	}
}

// keepObjects puts the objects of a model that programs for arm64 hold where the compiler keeps those that it makes.
func keepObjects(t *testing.T, dir, name, model string) {
	t.Helper()
	to, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := objects.Open(os.DirFS("../../codegen/objects/arm64"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(models + model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	program, err := codegen.Import(f, frontend.Options{Ctx: 128, KV: ir.F16})
	if err != nil {
		t.Fatal(err)
	}
	err = codegen.Kernels(objects.Listing(t.Context(), func(w objects.Wanted) error {
		text, err := w.Text(w.Machine)
		if err != nil {
			return err
		}
		key := objects.Key(w.Machine, text)
		code, err := archive.Find(key)
		if code == nil {
			return fmt.Errorf("kernel %q for %s is not held: %w", w.Kernel, w.Machine.Name, err)
		}
		return os.WriteFile(filepath.Join(dir, key+".o"), code, 0o666)
	}), program, to, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
}
