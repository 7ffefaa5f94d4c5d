package kernels_test

import (
	"bytes"
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

// wgmma returns the candidates of gemm_wgmma for a group, which are so many.
func (w *world) wgmma(count int, out ...*ir.Value) (list []kernels.Candidate) {
	w.t.Helper()
	for _, c := range kernels.Candidates(w.site(lookup(w.t, "sm_90-cuda"), out...)) { // few outputs are not for it
		if c.Family == "gemm_wgmma" {
			list = append(list, c)
		}
	}
	if len(list) != count {
		w.t.Fatalf("%d candidates of gemm_wgmma", len(list))
	}
	return list
}

// tiled returns x, of f16, as a group has it that takes it from tiles.
func (w *world) tiled(x *ir.Value, lanes string) *ir.Value {
	w.t.Helper()
	attrs := ir.Attrs{{Name: "rows", Value: int64(w.f.Rows)}, {Name: "lanes", Value: lanes}}
	tile, err := w.make.Make("tile", attrs, x)
	if err != nil {
		w.t.Fatal(err)
	}
	w.data[tile.Result] = w.tiles(tile)
	untile, err := w.make.Make("untile", attrs, tile.Result)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ops = append(w.ops, untile)
	w.vals[untile.Result] = w.vals[x]
	return untile.Result
}

// tiles returns what op tile gives.
func (w *world) tiles(tile *ir.Op) []byte {
	orders, err := ir.TileOrders(tile.Attrs.Str("lanes"))
	if err != nil {
		w.t.Fatal(err)
	}
	x := w.data[tile.Args[0]]
	k, n := int(tile.Args[0].Type.Last()), int(w.data[w.p.Global("n")][0])
	y := make([]byte, 2*w.f.Rows*k*len(orders))
	for i := range len(y) / 2 {
		e, r, piece := i%8, i/8%128, i/1024
		tile, order, q := piece/(k/8)/len(orders), piece/(k/8)%len(orders), piece%(k/8)
		row := tile*128 + r
		if row >= n {
			continue
		}
		copy(y[2*i:], x[2*(row*k+q/32*256+ir.TileElement(orders[order], q%32, e)):][:2])
	}
	return y
}

// TestTile puts rows into tiles of two orders with the interpreter.
func TestTile(t *testing.T) {
	w := newWorld(t, 256, 131)
	x := w.rounded(w.rows(ir.T, 512))
	w.ops = nil
	tile, err := w.make.Make("tile", ir.Attrs{{Name: "rows", Value: int64(256)}, {Name: "lanes", Value: "13 12"}}, x)
	if err != nil {
		t.Fatal(err)
	}
	w.ops = []*ir.Op{tile}
	list := kernels.Candidates(w.site(lookup(t, "sm_90-cuda"), tile.Result))
	if len(list) != 1 {
		t.Fatalf("%d candidates", len(list))
	}
	got := launch(t, list[0], w.sizes, w.data)[tile.Result]
	if !bytes.Equal(got, w.tiles(tile)) {
		t.Error("not what the op says")
	}
	w.covered(list[0], tile.Result)
	assembled(t, list[0])
}

// TestGemmWgmma computes projections with the interpreter, in all tiles. Of the last tile of rows few are there.
func TestGemmWgmma(t *testing.T) {
	for _, d := range some([]ir.DType{ir.Q4_K, ir.Q6_K, ir.Q8_0}) {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 256, 230)
			out := []*ir.Value{w.op("add", nil, w.linear(w.tiled(w.rounded(w.rows(ir.T, 512)), "23 12 13"), d, 132), w.rows(ir.T, 132))}
			for _, c := range w.wgmma(2, out...) {
				w.near(c, launch(t, c, w.sizes, w.data), 230, 512, out)
			}
		})
	}
}

// TestGemmWgmmaSplits computes projections whose workgroups share the elements of a row: the last
// of them adds, and leaves the counters as they were.
func TestGemmWgmmaSplits(t *testing.T) {
	w := newWorld(t, 256, 230)
	x := w.tiled(w.rounded(w.rows(ir.T, 2048)), "23 13")
	out := []*ir.Value{w.linear(x, ir.Q8_0, 40), w.op("add", nil, w.linear(x, ir.Q4_K, 36), w.rows(ir.T, 36))}
	w.checkSplits(lookup(t, "sm_90-cuda"), "gemm_wgmma", 230, 2048, out)
}

// TestGemmWgmmaGroups computes groups of several projections, biases and activations, and has their modules assembled.
func TestGemmWgmmaGroups(t *testing.T) {
	for i, g := range coopGroups {
		if g.name != "qkv" && g.name != "residuals" || !takes(i, 2) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 256, 131) // of the second tile three rows are there
			out := g.build(w, w.tiled(w.rounded(w.rows(ir.T, g.k)), "12 23 13"))
			list := w.wgmma(2, out...)
			w.near(list[1], launch(t, list[1], w.sizes, w.data), 131, int(g.k), out)
			for _, c := range list {
				assembled(t, c)
			}
		})
	}
}

// mostSpilled is the bytes that lanes may lack registers for: addresses that are used once.
const mostSpilled = 16

// assembled holds that NVIDIA's assembler takes a candidate's module, that all but little fits into registers, and that
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
	spilled := 0
	if _, before, ok := strings.Cut(string(out), "stack frame, "); ok {
		_, err = fmt.Sscanf(before, "%d bytes spill stores", &spilled)
	}
	if err != nil || spilled > mostSpilled || strings.Contains(string(out), "serialized") {
		t.Errorf("%s: %v\n%s", c.Kernel, err, out)
	}
}
