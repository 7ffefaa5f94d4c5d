package kernels_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/ir"
)

// wgmma returns the candidates of gemm_wgmma for a group.
func (w *world) wgmma(out ...*ir.Value) (list []kernels.Candidate) {
	w.t.Helper()
	for _, c := range kernels.Candidates(w.site(lookup(w.t, "sm_90-cuda"), out...)) { // few outputs are not for it
		if c.Family == "gemm_wgmma" {
			list = append(list, c)
		}
	}
	if len(list) != 2 {
		w.t.Fatalf("%d candidates of gemm_wgmma", len(list))
	}
	return list
}

// TestGemmWgmma computes projections with the interpreter, in all tiles. Of the last tile of rows few are there.
func TestGemmWgmma(t *testing.T) {
	for _, d := range []ir.DType{ir.Q4_K, ir.Q6_K, ir.Q8_0} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 260, 258)
			out := []*ir.Value{w.op("add", nil, w.linear(w.rounded(w.rows(ir.T, 256)), d, 132), w.rows(ir.T, 132))}
			for _, c := range w.wgmma(out...) {
				w.near(c, launch(t, c, w.sizes, w.data), 258, 256, out)
			}
		})
	}
}

// TestGemmWgmmaGroups computes groups of several projections, biases and activations, and has their modules assembled.
func TestGemmWgmmaGroups(t *testing.T) {
	for _, g := range coopGroups {
		if g.name != "qkv" && g.name != "residuals" {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 140, 131) // of the second tile three rows are there
			out := g.build(w, w.rounded(w.rows(ir.T, g.k)))
			list := w.wgmma(out...)
			w.near(list[1], launch(t, list[1], w.sizes, w.data), 131, int(g.k), out)
			for _, c := range list {
				assembled(t, c)
			}
		})
	}
}

// assembled holds that NVIDIA's assembler takes a candidate's module, that all fits into registers, and that
// products are made while lanes go on.
func assembled(t *testing.T, c kernels.Candidate) {
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
	if err != nil || !strings.Contains(string(out), " 0 bytes spill stores") || strings.Contains(string(out), "serialized") {
		t.Errorf("%s: %v\n%s", c.Kernel, err, out)
	}
}
