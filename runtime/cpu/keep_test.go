package cpu_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu"
)

// TestKeep runs a plan from weights that were kept: tokens are the same. A damaged file, and one of a model that was
// written since, is not used; one that is written meanwhile is not kept; a folder that cannot be is no reason to fail.
func TestKeep(t *testing.T) {
	plan, _ := compile(t)
	path := filepath.Join(t.TempDir(), "plan.bin")
	if _, err := plans.WriteFile(path, plan); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "kept")
	var want []int32
	run := func(keep, said string, loading ...func()) {
		t.Helper()
		plan, err := plans.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		defer plan.Close()
		src, err := plans.OpenSource(plan, path, "")
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		var lines []string
		bytes := int64(0)
		x, err := cpu.New(t.Context(), plan, src, cpu.Options{Threads: 2, Keep: keep, Said: func(line string) { lines = append(lines, line) },
			Progress: func(n int64) {
				bytes += n
				for _, do := range loading {
					do()
				}
				loading = nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if all := strings.Join(lines, "\n"); said == "" && all != "" || !strings.Contains(all, said) {
			t.Errorf("said %q, want %q", all, said)
		}
		have := greedy(t, plan, x, 9)
		if want == nil {
			want = have
		}
		if !slices.Equal(have, want) {
			t.Errorf("%q: tokens %d, want %d", said, have, want)
		}
		if bytes != plan.WeightBytes() {
			t.Errorf("%q: progress of %d bytes, want %d", said, bytes, plan.WeightBytes())
		}
		in, err := x.Inspect()
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Overwrite(t.Context(), plans.Arg{Space: "weight", Region: plan.Weights[0].Name}, []byte{1}); err == nil {
			t.Error("a weight is overwritten")
		}
	}
	run(dir, "kept the weights as "+dir)
	run(dir, "")
	files, err := filepath.Glob(filepath.Join(dir, "*.weights"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	run(dir, "the kept weights are damaged; they are made anew\nkept the weights as ")
	run(dir, "")
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	run(dir, "kept the weights as "+dir)
	run(filepath.Join(path, "below a file"), "the weights are not kept")

	// Another model in its place, and this one written, while the weights are read.
	const meanwhile = "the weights are not kept: the model file was written meanwhile"
	run(filepath.Join(dir, "moved"), meanwhile, func() {
		info, err := os.Stat(path)
		if err == nil {
			_, err = plans.WriteFile(path, plan)
		}
		if err == nil {
			err = os.Chtimes(path, time.Time{}, info.ModTime())
		}
		if err != nil {
			t.Error(err)
		}
	})
	run(filepath.Join(dir, "written"), meanwhile, func() {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(2*time.Hour)); err != nil {
			t.Error(err)
		}
	})
	if kept, err := filepath.Glob(filepath.Join(dir, "*", "*.weights")); err != nil || len(kept) > 0 {
		t.Errorf("%q, %v", kept, err)
	}
}
