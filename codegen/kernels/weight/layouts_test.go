package weight_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// TestLay: which weights are interleaved follows from the target and from who reads them, whatever their name.
func TestLay(t *testing.T) {
	for _, c := range []struct {
		target string
		dtype  ir.DType
		shape  []ir.Dim
		reader string
		want   string
	}{
		{"llvmpipe", ir.Q4_K, []ir.Dim{64, 256}, "linear", "raw"},
		{"llvmpipe", ir.Q8_0, []ir.Dim{64, 256}, "linear", "planes"},
		{"llvmpipe", ir.IQ4_XS, []ir.Dim{64, 256}, "linear", "packed"},
		{"host", ir.Q8_0, []ir.Dim{64, 256}, "linear", "planes"},
		{"cpu:x86-64-v4", ir.Q4_K, []ir.Dim{64, 256}, "linear", "rows16"},
		{"cpu:x86-64-v4", ir.Q8_0, []ir.Dim{64, 64}, "linear", "rows16"},
		{"cpu:x86-64-v4", ir.Q8_0, []ir.Dim{64, 96}, "linear", "planes"}, // an odd number of blocks
		{"cpu:x86-64-v4", ir.F32, []ir.Dim{64, 256}, "linear", "raw"},
		{"cpu:x86-64-v4", ir.Q4_K, []ir.Dim{256}, "rmsnorm", "raw"},
		{"cpu:x86-64-v4", ir.Q4_K, []ir.Dim{4, 64, 256}, "expert_linear", "rows16"},
		{"cpu:x86-64-v4", ir.Q4_K, []ir.Dim{4, 64, 256}, "head_ids", "raw"},      // a matrix for each head
		{"cpu:x86-64-v4", ir.Q4_K, []ir.Dim{4, 48, 256}, "expert_linear", "raw"}, // half of the rows are no whole groups
		{"cpu:x86-64-v4", ir.Q8_0, []ir.Dim{4, 64, 64}, "expert_linear", "planes"},
	} {
		on, err := target.Lookup(c.target)
		if err != nil {
			t.Fatal(err)
		}
		p := &ir.Program{}
		w := p.AddGlobal("w", ir.Weight, ir.MakeType(c.dtype, c.shape...))
		p.AddGlobal("token", ir.Step, ir.MakeType(ir.I32, ir.T))
		ids := &ir.Value{}
		if c.reader == "head_ids" {
			c.reader, ids.Def = "expert_linear", &ir.Op{Kind: ir.LookupOp("head_ids")}
		}
		p.Funcs = []*ir.Func{{Groups: []*ir.Group{{Ops: []*ir.Op{{Kind: ir.LookupOp(c.reader), Args: []*ir.Value{nil, w, ids}}}}}}}
		if err := weight.Lay(on, p); err != nil {
			t.Fatal(err)
		}
		l, err := weight.LayoutOf(w)
		if err != nil || w.Layout != c.want || l.Name != c.want || p.Globals[1].Layout != "" {
			t.Errorf("%s, %s read by %s: layout %q, %v, want %q", c.target, w.Type, c.reader, w.Layout, err, c.want)
		}
		if rows := weight.RowsOf(on, w) != nil; rows != (c.want == "rows16") {
			t.Errorf("%s, %s read by %s: read as rows %t", c.target, w.Type, c.reader, rows)
		}
	}
	on, err := target.Lookup("llvmpipe")
	if err != nil {
		t.Fatal(err)
	}
	p := &ir.Program{}
	w := p.AddGlobal("odd", ir.Weight, ir.MakeType(ir.F16, 4, 3))
	if err := weight.Lay(on, p); err == nil || !strings.HasPrefix(err.Error(), `tensor "odd": layout: rows of 3 f16`) {
		t.Errorf("rows of no whole words: %v", err)
	}
	if _, err := weight.LayoutOf(w); err == nil {
		t.Error("a weight without a layout has one")
	}
}
