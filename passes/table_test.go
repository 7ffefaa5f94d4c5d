package passes_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
)

func TestOrder(t *testing.T) {
	for _, on := range target.All() {
		if err := passes.CheckOrder(codegen.Table(on, codegen.MaxRows)); err != nil {
			t.Errorf("%s: %v", on.Name, err)
		}
	}
	table := codegen.Table(target.All()[0], codegen.MaxRows)
	index := func(name string) int {
		i := slices.IndexFunc(table, func(p passes.Pass) bool { return p.Name == name })
		if i < 0 {
			t.Fatalf("an order names pass %s, which no table has", name)
		}
		return i
	}
	for _, o := range passes.Orders {
		i, j := index(o.Before), index(o.After)
		wrong := slices.Clone(table)
		wrong[i], wrong[j] = wrong[j], wrong[i]
		if passes.CheckOrder(wrong) == nil {
			t.Errorf("%s and %s may change places, though %s", o.Before, o.After, o.Reason)
		}
		if o.Reason == "" {
			t.Errorf("%s before %s: no reason", o.Before, o.After)
		}
	}
	slices.Reverse(table)
	if err := passes.CheckOrder(table); err == nil || !strings.Contains(err.Error(), "stands after stage") {
		t.Errorf("reversed table: %v", err)
	}
	if _, err := passes.Run(&ir.Program{}, table, passes.Options{}); err == nil {
		t.Error("a table in wrong order was run")
	}
}

const gopher = "../testdata/models/gopher-q4_k_m.gguf"

func compile(t *testing.T, on *target.Target) []byte {
	t.Helper()
	f, err := gguf.Open(gopher)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: on, Import: frontend.Options{KV: ir.F16}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := plans.Write(&b, r.Plan); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSameBytesEveryTime(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, name := range []string{"host", "llvmpipe"} {
		on, err := target.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		first := compile(t, on)
		for i := range 4 {
			runtime.GOMAXPROCS(1 + i%2)
			if !bytes.Equal(compile(t, on), first) {
				t.Fatalf("%s: compilation %d differs from the first", name, i+2)
			}
		}
	}
}

// layers is a dense model of n layers at stage import.
func layers(t testing.TB, n int) *ir.Program {
	t.Helper()
	var globals, ops strings.Builder
	x, id := 0, 1
	for i := range n {
		for _, w := range []string{"attn_norm f32[64]", "attn_q f16[64, 64]", "attn_k f16[32, 64]", "attn_v f16[32, 64]",
			"attn_output f16[64, 64]", "ffn_norm f32[64]", "ffn_gate f16[96, 64]", "ffn_up f16[96, 64]", "ffn_down f16[64, 96]"} {
			name, typ, _ := strings.Cut(w, " ")
			fmt.Fprintf(&globals, "weight @blk.%d.%s.weight : %s\n", i, name, typ)
		}
		fmt.Fprintf(&globals, "kv @blk.%d.k : f16[1, L, 32]\nkv @blk.%d.v : f16[1, L, 32]\n", i, i)
		v := func(k int) string { return fmt.Sprintf("%%%d", id+k) }
		w := func(name string) string { return fmt.Sprintf("@blk.%d.%s.weight", i, name) }
		norm := "{eps=1e-06, group=64}"
		rope := `@pos, @rope {kind="neox", head_dim=16, n_rot=16}`
		for _, line := range []string{
			fmt.Sprintf("%s = rmsnorm %%%d, %s %s : f32[T, 64]", v(0), x, w("attn_norm"), norm),
			fmt.Sprintf("%s = linear %s, %s : f32[T, 64]", v(1), v(0), w("attn_q")),
			fmt.Sprintf("%s = linear %s, %s : f32[T, 32]", v(2), v(0), w("attn_k")),
			fmt.Sprintf("%s = linear %s, %s : f32[T, 32]", v(3), v(0), w("attn_v")),
			fmt.Sprintf("%s = rope %s, %s : f32[T, 64]", v(4), v(1), rope),
			fmt.Sprintf("%s = rope %s, %s : f32[T, 32]", v(5), v(2), rope),
			fmt.Sprintf("kvwrite %s, @pos, @slot, @blk.%d.k", v(5), i),
			fmt.Sprintf("kvwrite %s, @pos, @slot, @blk.%d.v", v(3), i),
			fmt.Sprintf("%s = attention %s, @blk.%d.k, @blk.%d.v, @pos, @slot {head_dim=16, heads=4, kv_heads=2, scale=0.25} : f32[T, 64]", v(6), v(4), i, i),
			fmt.Sprintf("%s = linear %s, %s : f32[T, 64]", v(7), v(6), w("attn_output")),
			fmt.Sprintf("%s = add %s, %%%d : f32[T, 64]", v(8), v(7), x),
			fmt.Sprintf("%s = rmsnorm %s, %s %s : f32[T, 64]", v(9), v(8), w("ffn_norm"), norm),
			fmt.Sprintf("%s = linear %s, %s : f32[T, 96]", v(10), v(9), w("ffn_gate")),
			fmt.Sprintf("%s = linear %s, %s : f32[T, 96]", v(11), v(9), w("ffn_up")),
			fmt.Sprintf(`%s = glu %s, %s {act="silu"} : f32[T, 96]`, v(12), v(10), v(11)),
			fmt.Sprintf("%s = linear %s, %s : f32[T, 64]", v(13), v(12), w("ffn_down")),
			fmt.Sprintf("%s = add %s, %s : f32[T, 64]", v(14), v(13), v(8)),
		} {
			ops.WriteString("  " + line + "\n")
		}
		x, id = id+14, id+15
	}
	p, err := ir.Parse(fmt.Sprintf(`zir 1
stage import
model arch="toy" name="" path="" source="" target="" ctx=512 slots=1 layers=%d

step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
step @out : i32[16]
step @count : i32[1]
weight @token_embd.weight : f16[32, 64]
table @rope {kind="rope", freqs=[1.0, 0.1, 0.01, 0.001, 0.0001, 1e-05, 1e-06, 1e-07], mscale=1.0} : f32[L, 16]
%s
func "forward" rows=512 sequences=many run=512 class=prompt {
  %%0 = embed @token, @token_embd.weight {scale=1.0} : f32[T, 64]
%s  %%%d = linear %%%d, @token_embd.weight : io f32[T, 32]
  %%%d = argmax %%%d : io i32[T]
  advance %%%d, @token, @pos, @slot, @n, @out, @count
}
`, n, globals.String(), ops.String(), id, x, id+1, id, id+1))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func runAll(t testing.TB, n int) map[string]time.Duration {
	on, err := target.Lookup("llvmpipe")
	if err != nil {
		t.Fatal(err)
	}
	p := layers(t, n)
	times, err := passes.Run(p, codegen.Table(on, 512), passes.Options{StopAfter: ir.Place})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]time.Duration{}
	for _, pass := range times {
		byName[pass.Pass] = pass.Time
	}
	return byName
}

// TestDenseLayerHasSixDispatches holds the goal of fusing.
func TestDenseLayerHasSixDispatches(t *testing.T) {
	p := layers(t, 3)
	host, err := target.Lookup("host")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := passes.Run(p, codegen.Table(host, 512), passes.Options{StopAfter: ir.Place}); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Func("decode/1").Groups); n != 3*6+3 {
		t.Errorf("%d dispatches, want 6 a layer, embed, head and argmax", n)
	}
}

func BenchmarkPasses(b *testing.B) {
	for _, n := range []int{8, 32, 128} {
		b.Run(fmt.Sprintf("layers=%d", n), func(b *testing.B) {
			sum := map[string]time.Duration{}
			for b.Loop() {
				for name, d := range runAll(b, n) {
					sum[name] += d
				}
			}
			for name, d := range sum {
				b.ReportMetric(float64(d.Microseconds())/float64(b.N*n), name+"-us/layer")
			}
		})
	}
}
