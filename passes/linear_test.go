package passes_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var layerCount = flag.Int("layers", 3, "layers of the model that TestAllPasses compiles")

// TestAllPasses runs all passes, to be counted by TestPassesAreLinear.
func TestAllPasses(t *testing.T) { runAll(t, *layerCount) }

// TestPassesAreLinear counts how often each block of the compiler's code, and of what it
// sorts and searches with, runs for 12 and for 96 layers: eight times as many layers may
// take 32 times as many runs. A block that is quadratic takes up to 64 times as many.
func TestPassesAreLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the compiler anew; TestAllPasses runs the passes")
	}
	binary := filepath.Join(t.TempDir(), "passes.test")
	// Blocks are counted alike without what makes code fast or what debuggers want, which takes a quarter of the build.
	build := exec.Command("go", "test", "-c", "-o", binary, "-gcflags=all=-l -dwarf=false", "-ldflags=-s -w", "-covermode=count", "-coverpkg=../passes,../codegen,../ir,slices,sort,maps", ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	few, many := countBlocks(t, binary, 12), countBlocks(t, binary, 96)
	if len(few) < 1000 {
		t.Fatalf("only %d blocks are counted", len(few))
	}
	for block, n := range many {
		// What runs less often costs nothing, whatever it grows with.
		if n > 5_000 && n > 32*max(few[block], 1) {
			t.Errorf("%s runs %d times for 96 layers, %d for 12", block, n, few[block])
		}
	}
}

// countBlocks returns how often each block runs, by file and position.
func countBlocks(t *testing.T, binary string, layers int) map[string]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	run := exec.Command(binary, "-test.run=^TestAllPasses$", "-test.coverprofile="+profile, fmt.Sprintf("-layers=%d", layers))
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		fields := strings.Fields(line) // position, statements, runs
		if len(fields) != 3 {
			t.Fatalf("a profile's line is %q", line)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		counts[fields[0]] += n
	}
	return counts
}
