package verify

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
)

const (
	mostCode = 2047
	// Devices divide mostCode by the largest magnitude of a block with an error of two units in the last place. So a
	// code may be off by this share of a step, and a scale by this share of itself.
	codeSlack, scaleSlack = 1.0 / (1 << 10), 1.0 / (1 << 21)
	// zeroBlock is the largest magnitude of a block that becomes zeros.
	zeroBlock float32 = 1e-30
	// normal is the smallest float32 that no device takes for 0.
	normal = 0x1p-126
)

// packing is what op pack12 rounds: rows of x times gain.
type packing struct {
	x   []float32
	off []float32 // what elements may be off; nil if they are the device's own
}

// notePacked keeps what the group packs: the device's own numbers if it leaves them, else the oracle's.
func (d *dispatch) notePacked(ctx context.Context, op *ir.Op) error {
	if op.Kind.Name != "pack12" {
		return nil
	}
	v := op.Args[0]
	n, w := d.elements(v), int(v.Type.Last())
	p := packing{x: slices.Clone(d.held(v)[:n])}
	switch {
	case slices.Contains(d.outputs, v):
		raw, err := d.read(ctx, v, 0, n)
		if err != nil {
			return err
		}
		if err := oracle.Decode(p.x, v.Type.DType, raw); err != nil {
			return err
		}
	case slices.Contains(d.group.Ops, v.Def):
		p.off = make([]float32, n)
		for i := range p.off {
			if i%w == 0 {
				p.off[i] = float32(largest(p.x[i : i+w]))
			} else {
				p.off[i] = p.off[i-1]
			}
		}
		for i, size := range d.products[v] {
			p.off[i] = max(p.off[i], size)
		}
		for i := range p.off {
			p.off[i] *= float32(d.tolerance())
		}
	}
	if len(op.Args) > 1 {
		raw, err := d.machine.Read(d.fn, op.Args[1])
		if err != nil {
			return err
		}
		gain := make([]float32, w)
		if err := oracle.Decode(gain, ir.F32, raw); err != nil {
			return err
		}
		for i := range p.x {
			p.x[i] *= gain[i%w]
		}
		for i := range p.off {
			p.off[i] *= abs(gain[i%w])
		}
	}
	if d.packs == nil {
		d.packs = map[*ir.Value]packing{}
	}
	d.packs[op.Result] = p
	return nil
}

// comparePacked compares a result of op pack12: the scales and the codes of the first layout with what was packed, and
// all words with those that follow from these.
func (d *dispatch) comparePacked(v *ir.Value, raw []byte) error {
	p, err := ir.PackedOf(v.Def)
	if err != nil {
		return err
	}
	words := make([]int32, len(raw)/4)
	for i := range words {
		words[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	rows := d.elements(v.Def.Args[0]) / (p.Blocks * ir.PackBlock)
	for row := range rows {
		if !p.Whole && !d.step.live(row) {
			continue
		}
		for block := range p.Blocks {
			d.comparePackedBlock(v, p, words, row, block)
		}
	}
	if d.result.Difference == nil { // else much follows from it
		d.compareInts(v, oracle.Repack12(p, words, rows), raw)
	}
	return nil
}

// comparePackedBlock compares the scale and the codes of a block.
func (d *dispatch) comparePackedBlock(v *ir.Value, p ir.Packed, words []int32, row, block int) {
	n, scale := oracle.Block12(p, words, row, block)
	wantN, wantScale := oracle.Block12(p, d.machine.Ints(v), row, block)
	first := (row*p.Blocks + block) * ir.PackBlock
	x, off := d.packs[v].x[first:][:ir.PackBlock], make([]float32, ir.PackBlock)
	if all := d.packs[v].off; all != nil {
		off = all[first:]
	}
	most, mostOff, s := largest(x), largest(off[:ir.PackBlock]), float64(scale)
	note := func(e int, got, want, off, limit float64) {
		of := most // errors are relative to it
		if of == 0 {
			of = 1
		}
		d.note(v, row, block*ir.PackBlock+e, got, want, off/of, limit/of)
	}
	beside, limit := math.Abs(s*mostCode-most), most*scaleSlack+mostOff
	if most > 0 {
		limit += mostCode * normal
	}
	if note(0, s, float64(wantScale), beside, limit); !(beside <= limit) {
		return // codes mean nothing
	}
	for e, n := range n {
		got, want := float64(n), float64(wantN[e])
		beside, limit := max(0, math.Abs(got*s-float64(x[e]))-s/2), s*codeSlack+float64(off[e])
		if float32(most+mostOff) <= zeroBlock {
			beside, limit = math.Abs(got), 0
		}
		note(e, got, want, beside, limit)
	}
}
