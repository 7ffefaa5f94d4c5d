package codegen_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/passes"
)

// gatedRule is a layer of a gated delta rule in a step of one row, as kernels are chosen for it.
const gatedRule = `zir 1
stage fuse
model arch="" name="" path="" source="" target="%s" ctx=64 slots=1 layers=1

step @h : f32[T, 512]
step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
weight @blk.0.attn_norm.weight : f32[512]
weight @blk.0.attn_qkv.weight : q8_0[1024, 512]
weight @blk.0.attn_gate.weight : q8_0[512, 512]
weight @blk.0.ssm_alpha.weight : f32[4, 512]
weight @blk.0.ssm_conv1d.weight : f32[1024, 4]
weight @blk.0.ssm_norm.weight : f32[128]
weight @blk.0.ssm_out.weight : q8_0[512, 512]
state @ring : f32[1, 16, 1024]
state @s : f32[1, 4, 128, 128]
func "decode/1" rows=1 sequences=one run=1 class=exact {
  group "blk.0.attn_qkv+attn_gate+ssm_alpha" stage=0 waits=0 {
    %%0 = rmsnorm @h, @blk.0.attn_norm.weight {eps=1e-06, group=512} : f32[T, 512]
    %%1 = fixed12 %%0 : f32[T, 512]
    %%2 = linear %%1, @blk.0.attn_qkv.weight : f32[T, 1024]
    %%3 = linear %%1, @blk.0.attn_gate.weight : f32[T, 512]
    %%4 = linear %%0, @blk.0.ssm_alpha.weight : f32[T, 4]
  }
  group "blk.0.conv1d+deltanet" stage=0 waits=0 {
    %%5 = conv1d %%2, @blk.0.ssm_conv1d.weight, @ring, @pos, @slot : f32[T, 1024]
    %%6 = slice %%5 {first=0, width=256} : f32[T, 256]
    %%7 = slice %%5 {first=256, width=256} : f32[T, 256]
    %%8 = slice %%5 {first=512, width=512} : f32[T, 512]
    %%9 = sigmoid %%4 : f32[T, 4]
    %%10 = deltanet %%6, %%7, %%8, %%4, %%9, @s, @pos, @slot {head_dim=128, k_heads=2, v_heads=4, map="mod", scale=0.125} : f32[T, 512]
    %%11 = gated_rmsnorm %%10, @blk.0.ssm_norm.weight, %%3 {eps=1e-06, group=128} : f32[T, 512]
    conv_write %%2, @ring, @pos, @slot
  }
  group "blk.0.ssm_out" stage=0 waits=0 {
    %%12 = fixed12 %%11 : f32[T, 512]
    %%13 = linear %%12, @blk.0.ssm_out.weight : f32[T, 512]
    %%14 = add %%13, @h : io f32[T, 512]
  }
}
`

// TestFuseHorizontally holds that the gate's projection moves beside the rule, and the gated norm behind it, where
// there are kernels for that; and that the oracle gets the same from the program as it was.
func TestFuseHorizontally(t *testing.T) {
	two := strings.NewReplacer("rows=1", "rows=2", "run=1", "run=2", "decode/1", "decode/2")
	reader := strings.NewReplacer("%%14 = add %%13, @h", "%%14 = add %%13, %%3")
	float := strings.NewReplacer("linear %%1, @blk.0.attn_gate.weight", "linear %%0, @blk.0.attn_gate.weight")
	lone := strings.NewReplacer("linear %%1, @blk.0.attn_qkv.weight", "linear %%0, @blk.0.attn_qkv.weight")
	wide := strings.NewReplacer("group=128", "group=64", "ssm_norm.weight : f32[128]", "ssm_norm.weight : f32[64]")
	as := func(c *target.Target) {}
	for _, c := range []struct {
		on, text string
		change   func(c *target.Target)
		moves    bool
	}{
		{"sm_90-cuda", gatedRule, as, true},
		{"sm_120-cuda", gatedRule, as, true},
		{"sm_90", gatedRule, as, false},
		{"sm_90-cuda", gatedRule, func(c *target.Target) { c.Units = 7 }, false},        // four heads leave fewer than half
		{"sm_90-cuda", gatedRule, func(c *target.Target) { c.Shared = 4 << 10 }, false}, // teams have no room for x: all goes back
		{"sm_90-cuda", two.Replace(gatedRule), as, false},
		{"sm_90-cuda", reader.Replace(gatedRule), as, false}, // the gate has another reader
		{"sm_90-cuda", float.Replace(gatedRule), as, false},  // reads x as it is
		{"sm_90-cuda", lone.Replace(gatedRule), as, false},   // nothing else reads x in fixed point
		{"sm_90-cuda", wide.Replace(gatedRule), as, true},    // a norm of parts of a head is the projection's own matter
	} {
		published, err := target.Lookup(c.on)
		if err != nil {
			t.Fatal(err)
		}
		device := *published
		on := &device
		c.change(on)
		parse := func() *ir.Program {
			p, err := ir.Parse(fmt.Sprintf(c.text, c.on))
			if err == nil {
				err = weight.Lay(on, p)
			}
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := parse()
		table := codegen.Table(on, 1)
		i := slices.IndexFunc(table, func(pass passes.Pass) bool { return pass.Name == "FuseHorizontally" })
		if err := table[i].Run(p); err != nil {
			t.Fatal(err)
		}
		if err := ir.VerifyStructure(p); err != nil {
			t.Errorf("%s: %v", c.on, err)
		}
		var names []string
		for _, g := range p.Funcs[0].Groups {
			names = append(names, g.Name)
		}
		want := []string{"blk.0.attn_qkv+attn_gate+ssm_alpha", "blk.0.conv1d+deltanet", "blk.0.ssm_out"}
		if c.moves {
			want = []string{"blk.0.attn_qkv+ssm_alpha", "blk.0.attn_gate+deltanet", "blk.0.ssm_out"}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: groups are %v, want %v", c.on, names, want)
		}
		if !c.moves && ir.Print(p) != ir.Print(parse()) {
			t.Errorf("%s: the program is not as it was", c.on)
		}
		if got, want := evaluated(t, p), evaluated(t, parse()); !bytes.Equal(got, want) {
			t.Errorf("%s: the program gives other results", c.on)
		}
	}
}

// noise has random weights, which depend on the name.
type noise struct{ p *ir.Program }

func (n noise) Weight(name string) ([]byte, error) {
	v := n.p.Global(name)
	size, err := v.Type.Bytes(0, 0)
	h := fnv.New64()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	if v.Type.DType == ir.F32 {
		var list []float32
		for range size / 4 {
			list = append(list, r.Float32()-0.5)
		}
		return oracle.Encode(nil, ir.F32, list), err
	}
	data := make([]byte, size) // blocks of q8_0: a scale and 32 numbers
	for i := range data {
		switch data[i] = byte(r.Uint32()); i % 34 {
		case 0:
			data[i] = 0
		case 1:
			data[i] = 0x20
		}
	}
	return data, err
}

// evaluated returns what the oracle makes of the only result and the state.
func evaluated(t *testing.T, p *ir.Program) []byte {
	t.Helper()
	m, err := oracle.New(t.Context(), p, noise{p}, oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := p.Funcs[0]
	write := func(name string, data []byte) {
		if err := m.Write(f, p.Global(name), data); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	var h []float32
	for range 512 * f.Rows {
		h = append(h, r.Float32()-0.5)
	}
	write("h", oracle.Encode(nil, ir.F32, h))
	write("n", binary.LittleEndian.AppendUint32(nil, uint32(f.Rows)))
	var pos, slot []byte
	for i := range f.Rows {
		pos, slot = binary.LittleEndian.AppendUint32(pos, uint32(3+i)), binary.LittleEndian.AppendUint32(slot, 0)
	}
	write("pos", pos)
	write("slot", slot)
	if err := m.Run(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	var all []byte
	last := f.Groups[len(f.Groups)-1].Ops
	for _, v := range []*ir.Value{last[len(last)-1].Result, p.Global("s"), p.Global("ring")} {
		b, err := m.Read(f, v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	if bytes.Count(all, []byte{0}) > len(all)*9/10 {
		t.Error("nearly all results are 0")
	}
	return all
}
