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

// FuzzRun: a program that passes the verifier, on any step block, never panics.
func FuzzRun(f *testing.F) {
	head := ir.Print(&ir.Program{Ctx: 16, Slots: 2})
	for _, seed := range []string{
		fmt.Sprintf("%s%s\nfunc \"f\" rows=3 {\n%s\n}\n", head, tinyGlobals, tinyBody),
		fmt.Sprintf("%s%sstep @x : f32[T, 64]\nfunc \"f\" rows=3 {\n%s\n}\n", head, tinyGlobals, `
%0 = attention_split @x, @kc, @vc, @pos, @slot {head_dim=16, heads=4, kv_heads=2, scale=0.25, splits=3, block=2} : f32[T, 216]
%1 = attention_merge %0 {head_dim=16, heads=4, splits=3} : io f32[T, 64]`),
		ir.Print(&ir.Program{Stage: ir.Place, Ctx: 8, Slots: 1}) + placed,
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
		m, err := New(p, ones{p}, Options{Threads: 2})
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
