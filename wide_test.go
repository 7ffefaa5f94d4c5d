package zincc_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// wideVariable marks the process that TestWideSubgroups starts.
const wideVariable = "ZINC_TEST_WIDE"

// TestWideSubgroups verifies kernels that need subgroups of 16 lanes, which lavapipe has when
// LLVM is to make vectors of 512 bits: the delta rule chunk by chunk, projections of f32 in tiles.
// The environment that asks for it stays in a child process.
func TestWideSubgroups(t *testing.T) {
	if os.Getenv(wideVariable) != "" {
		wideSubgroups(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWideSubgroups$", "-test.v")
	cmd.Env = append(os.Environ(), wideVariable+"=1", "LP_NATIVE_VECTOR_WIDTH=512")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func wideSubgroups(t *testing.T) {
	llvmpipe, err := target.Lookup("llvmpipe")
	if err != nil {
		t.Fatal(err)
	}
	on := *llvmpipe
	on.Wave, on.Chunks = 16, true
	const model = "tiny-qwen35moe-3-6"
	plan := compileFor(t, model, &on, ir.F16)
	for _, kernel := range []string{"delta_chunk ", "delta_chunked ", "gemm_float "} {
		if !slices.ContainsFunc(plan.Modules, func(m plans.Module) bool { return strings.HasPrefix(m.Name, kernel) }) {
			t.Errorf("the plan has no %s", kernel)
		}
	}
	// 301 rows are 37 chunks and a part of one.
	checkDispatches(t, model, plan, verify.Options{Entry: "prefill/512", Rows: 301, Layers: []int{0, 2}}, 70)
}
