package oracle

import (
	"context"
	"fmt"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// ones supplies weights of any type, whose bytes are all 1.
type ones struct{ p *ir.Program }

func (s ones) Weight(name string) ([]byte, error) {
	n, err := s.p.Global(name).Type.Bytes(1, 1)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = 1
	}
	return b, nil
}

// hybridSeed has the ops of experts and of DeltaNet layers.
const hybridSeed = `
weight @conv : f32[8, 4]
weight @up : q8_0[3, 6, 32]
weight @dt : f32[2]
state @ring : f32[2, 5, 8]
state @s : f32[2, 2, 12, 4]
step @x : f32[T, 32]
step @m : f32[T, 8]
step @a : f32[T, 2]
step @pos : i32[T]
step @slot : i32[T]

func "f" rows=3 sequences=many run=3 class=exact {
  %0 = slice @x {first=4, width=3} : f32[T, 3]
  %1 = topk %0 {k=2} : i32[T, 2]
  %2 = expert_linear @x, @up, %1 {first=2, rows=4} : f32[T, 8]
  %3 = route %0, %1 {gating="softmax", norm=1, scale=1.0} : f32[T, 2]
  %4 = expert_sum %2, %3 : io f32[T, 4]
  %5 = conv1d @m, @conv, @ring, @pos, @slot : f32[T, 8]
  conv_write @m, @ring, @pos, @slot
  %6 = head_slice %5 {head_dim=2, parts=2, part=1} : f32[T, 4]
  %7 = l2norm %6 {eps=1e-06, group=4} : f32[T, 4]
  %8 = decay @a, @dt, @dt : f32[T, 2]
  %9 = deltanet %7, %6, %5, %8, @a, @s, @pos, @slot {head_dim=4, k_heads=1, v_heads=2, map="mod", scale=0.5, defer=4} : f32[T, 8]
  %10 = gate %9, %5 : io f32[T, 8]
}
`

// packSeed packs rows, unpacks them and multiplies parts of them.
const packSeed = `
weight @gain : f32[512]
weight @part : q8_0[6, 512]
weight @bias : f32[6]
step @x : f32[T, 512]

func "f" rows=3 sequences=many run=3 class=exact {
  %0 = squares @x : f32[T, 4]
  %1 = pack12 @x, @gain {rows=16, columns=16, lanes="aoh n--"} : i32[4, 2368]
  %2 = unpack12 %1 {rows=16, columns=16, lanes="aoh n--"} : io f32[T, 512]
  %3 = linear_parts %2, @part {each=256} : f32[T, 12]
  %4 = add_parts %3, %0, @bias {count=2, eps=1e-06} : io f32[T, 6]
}
`

// FuzzRun: a program that passes the verifier, on any step block, never panics.
func FuzzRun(f *testing.F) {
	head := ir.Print(&ir.Program{Ctx: 16, Slots: 2})
	for _, seed := range []string{
		fmt.Sprintf("%s%s\nfunc \"f\" rows=3 sequences=many run=3 class=exact {\n%s\n}\n", head, tinyGlobals, tinyBody),
		fmt.Sprintf("%s%sstep @x : f32[T, 64]\nfunc \"f\" rows=3 sequences=many run=3 class=exact {\n%s\n}\n", head, tinyGlobals, `
%0 = attention_split @x, @kc, @vc, @pos, @slot {head_dim=16, heads=4, kv_heads=2, scale=0.25, splits=3, block=2, rows=1} : f32[T, 216]
%1 = attention_merge %0 {head_dim=16, heads=4, splits=3} : io f32[T, 64]`),
		ir.Print(&ir.Program{Stage: ir.Place, Ctx: 8, Slots: 1}) + placed,
		head + hybridSeed,
		head + packSeed,
	} {
		if _, err := ir.Parse(seed); err != nil {
			f.Fatal(err)
		}
		f.Add(seed, int32(1))
	}
	f.Fuzz(func(t *testing.T, text string, step int32) {
		p, err := ir.Parse(text)
		if err != nil || !small(p) {
			return
		}
		m, err := New(t.Context(), p, ones{p}, Options{Threads: 2})
		if err != nil {
			return
		}
		for _, g := range p.Globals {
			if g.Class == ir.Step {
				for i := range m.Ints(g) {
					m.Ints(g)[i] = step
				}
			}
		}
		for _, fn := range p.Funcs {
			if err := m.Run(context.Background(), fn); err != nil {
				return
			}
		}
	})
}

// small reports whether p fits in little memory, wherever its values are placed.
func small(p *ir.Program) bool {
	total := int64(0)
	for _, f := range p.Funcs {
		vs := append([]*ir.Value{}, p.Globals...)
		for _, op := range f.Ops() {
			if op.Result != nil {
				vs = append(vs, op.Result)
			}
		}
		for _, v := range vs {
			n, err := v.Type.Bytes(f.Rows, p.Ctx)
			if total += n + max(v.Offset, 0); err != nil || n > 1<<20 || total > 1<<20 {
				return false
			}
		}
	}
	return true
}
