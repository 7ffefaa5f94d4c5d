package kerneltest

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// Value returns the content of a global: random numbers that depend on the name
// and the place alone, ties and NaNs in @tied, the step block, NaN in rows of a
// cache that no row may see.
func (c Case) Value(v *ir.Value) []byte {
	if b, ok := c.Given[v.Name]; ok {
		return b
	}
	if c.First > 0 && v.Type.Shape[0] == ir.T {
		all := c
		all.First, all.N, all.Rows = 0, c.First+c.live(), c.First+c.Rows
		b := all.Value(v)
		return b[len(b)/all.Rows*c.First:]
	}
	h := fnv.New64a()
	h.Write([]byte(v.Name))
	rng := rand.New(rand.NewPCG(h.Sum64(), 7))
	n, _ := v.Type.Elements(c.Rows, c.Ctx)
	if v.Class == ir.Weight && (v.Type.DType.IsQuantized() || v.Type.DType == ir.BF16) {
		return synth.Blocks(rng, v.Type.DType, n, 0)
	}
	if q := gguf.QuantizerOf(v.Type.DType); q != nil {
		return c.quantized(v, q, rng, int(n))
	}
	next := named[v.Name]
	switch {
	case next != nil:
	case v.Type.DType == ir.I32:
		next = func(e *elements) { e.word(uint32(rng.IntN(1000))) }
	default:
		next = (*elements).number
	}
	e := &elements{Case: c, v: v, rng: rng}
	for e.i = range int(n) {
		e.x = float32(rng.NormFloat64())
		next(e)
	}
	return e.b
}

// elements are those of a global so far, i of which is next; x is a random number for it.
type elements struct {
	Case
	v   *ir.Value
	rng *rand.Rand
	i   int
	x   float32
	b   []byte
}

func (e *elements) word(w uint32) { e.b = binary.LittleEndian.AppendUint32(e.b, w) }

func (e *elements) float(x float32) { e.b = appendElement(e.b, e.v.Type.DType, x) }

// number is the random number, NaN in rows of a cache that no row may see.
func (e *elements) number() {
	if e.v.Class == ir.KV && !e.seen(e.i/int(e.v.Type.Last())) {
		e.x = float32(math.NaN())
	}
	e.float(e.x)
}

// ofRow has a word for each row, and none that may be used for rows that are none.
func ofRow(word func(e *elements) int) func(e *elements) {
	return func(e *elements) {
		if e.i >= e.live() {
			e.word(1 << 30)
			return
		}
		e.word(uint32(word(e)))
	}
}

// named are the elements of globals that have a meaning, by name.
var named = map[string]func(e *elements){
	"pos":      ofRow(func(e *elements) int { return At(e.Pos, e.i, 1) }),
	"slot":     ofRow(func(e *elements) int { return At(e.Slot, e.i, 0) }),
	"n":        func(e *elements) { e.word(uint32(e.live())) },
	"arrivals": func(e *elements) { e.word(0) },
	"edges":    (*elements).edge,
	"rate":     func(e *elements) { e.float(-e.x * e.x) }, // decays
	"chunk":    (*elements).chunk,
	"logged":   (*elements).logged,
	"tied":     (*elements).tied,
	"ids":      func(e *elements) { e.word(uint32(e.rng.IntN(12))) }, // of experts
}

// edge is one of 32 elements of one magnitude, from the smallest to the largest.
func (e *elements) edge() {
	block := e.i / ir.Q8_0.Block()
	if block%3 == 0 { // codes are halfway between two
		if e.x = float32(e.i%ir.Q8_0.Block()) - 15.5; e.x < -15 {
			e.x = 127
		}
	}
	e.float(float32(math.Ldexp(float64(e.x), block*7%41-24)))
}

// logged is of the state of a delta rule with a log, in which other numbers of updates wait in each slot and head.
func (e *elements) logged() {
	heads, rows, d := int(e.v.Type.Shape[1]), int(e.v.Type.Shape[2]), int(e.v.Type.Shape[3])
	every := ir.DeltaLog(e.v.Type)
	slot, head, row := e.i/(heads*rows*d), e.i/(rows*d)%heads, e.i/d%rows
	switch row {
	case d:
		e.x = float32((slot + 2*head) % every)
	case rows - 1:
		e.x = float32(math.Exp(-math.Abs(float64(e.x))))
	}
	e.float(e.x)
}

// chunk is as delta_chunk makes it: of matrices nothing above the diagonal, none large.
func (e *elements) chunk() {
	if j := e.i % ir.DeltaChunkWidth; j < 2*ir.DeltaChunk && j%ir.DeltaChunk > e.i/int(e.v.Type.Last())%ir.DeltaChunk {
		e.x = 0
	}
	e.float(e.x / 32)
}

func (e *elements) tied() {
	if e.i%int(e.v.Type.Last())%7 == 3 {
		e.float(float32(math.NaN()))
		return
	}
	e.float(float32(e.rng.IntN(3)))
}

// quantized returns blocks of random numbers; in rows of a cache that no row may see their scale is NaN.
func (c Case) quantized(v *ir.Value, q *gguf.Quantizer, rng *rand.Rand, n int) (b []byte) {
	var block []float32
	for i := range n {
		if block = append(block, float32(rng.NormFloat64())); len(block) < v.Type.DType.Block() {
			continue
		}
		if v.Class == ir.KV && !c.seen(i/int(v.Type.Last())) {
			b = binary.LittleEndian.AppendUint16(b, 0x7e00) // NaN
			b = append(b, make([]byte, v.Type.DType.BlockBytes()-2)...)
		} else {
			b = q.Encode(b, block)
		}
		block = block[:0]
	}
	return b
}

// seen reports whether a row attends to a row of a cache, as it is before.
func (c Case) seen(row int) (seen bool) {
	positions := c.Ctx
	if c.Ring > 0 {
		positions = c.Ring
	}
	if c.Pages != nil {
		slot, at, ok := c.holder(row)
		if !ok {
			return false
		}
		row, positions = slot*c.Ctx+at, c.Ctx
		if at >= c.Ctx {
			return false
		}
	}
	for r := range c.live() {
		slot, pos := At(c.Slot, c.First+r, 0), At(c.Pos, c.First+r, 1)
		if c.Fresh && slot == row/positions && row%positions == pos%positions {
			return false
		}
		seen = seen || slot == row/positions && row%positions <= pos
	}
	return seen
}
