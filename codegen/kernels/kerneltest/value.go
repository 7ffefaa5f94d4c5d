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
	h := fnv.New64a()
	h.Write([]byte(v.Name))
	rng := rand.New(rand.NewPCG(h.Sum64(), 7))
	n, _ := v.Type.Elements(c.Rows, c.Ctx)
	if v.Class == ir.Weight && (v.Type.DType.IsQuantized() || v.Type.DType == ir.BF16) {
		return synth.Blocks(rng, v.Type.DType, n, 0)
	}
	var b []byte
	var block []float32 // of a cache that has scales
	q := gguf.QuantizerOf(v.Type.DType)
	for i := range int(n) {
		x := float32(rng.NormFloat64())
		if q != nil {
			if block = append(block, x); len(block) == v.Type.DType.Block() {
				if v.Class == ir.KV && !c.seen(i/int(v.Type.Last())) {
					b = binary.LittleEndian.AppendUint16(b, 0x7e00) // NaN
					b = append(b, make([]byte, v.Type.DType.BlockBytes()-2)...)
				} else {
					b = q.Encode(b, block)
				}
				block = block[:0]
			}
			continue
		}
		switch {
		case v.Name == "pos" && i >= c.live(), v.Name == "slot" && i >= c.live():
			b = binary.LittleEndian.AppendUint32(b, 1<<30)
		case v.Name == "pos":
			b = binary.LittleEndian.AppendUint32(b, uint32(At(c.Pos, i, 1)))
		case v.Name == "slot":
			b = binary.LittleEndian.AppendUint32(b, uint32(At(c.Slot, i, 0)))
		case v.Name == "n":
			b = binary.LittleEndian.AppendUint32(b, uint32(c.live()))
		case v.Name == "arrivals":
			b = binary.LittleEndian.AppendUint32(b, 0)
		case v.Name == "edges": // 32 elements of one magnitude, from the smallest to the largest
			e := i/ir.Q8_0.Block()*7%41 - 24
			if i/ir.Q8_0.Block()%3 == 0 { // codes are halfway between two
				if x = float32(i%ir.Q8_0.Block()) - 15.5; x < -15 {
					x = 127
				}
			}
			b = appendElement(b, v.Type.DType, float32(math.Ldexp(float64(x), e)))
		case v.Name == "rate": // decays
			b = appendElement(b, v.Type.DType, -x*x)
		case v.Name == "chunk": // as delta_chunk makes them: of matrices nothing above the diagonal, none large
			if j := i % ir.DeltaChunkWidth; j < 2*ir.DeltaChunk && j%ir.DeltaChunk > i/int(v.Type.Last())%ir.DeltaChunk {
				x = 0
			}
			b = appendElement(b, v.Type.DType, x/32)
		case v.Name == "tied" && i%int(v.Type.Last())%7 == 3:
			b = appendElement(b, v.Type.DType, float32(math.NaN()))
		case v.Name == "tied":
			b = appendElement(b, v.Type.DType, float32(rng.IntN(3)))
		case v.Name == "ids": // of experts
			b = binary.LittleEndian.AppendUint32(b, uint32(rng.IntN(12)))
		case v.Type.DType == ir.I32:
			b = binary.LittleEndian.AppendUint32(b, uint32(rng.IntN(1000)))
		case v.Class == ir.KV && !c.seen(i/int(v.Type.Last())):
			x = float32(math.NaN())
			fallthrough
		default:
			b = appendElement(b, v.Type.DType, x)
		}
	}
	return b
}

// seen reports whether a row attends to a row of a cache, as it is before.
func (c Case) seen(row int) (seen bool) {
	positions := c.Ctx
	if c.Ring > 0 {
		positions = c.Ring
	}
	for r := range c.live() {
		if c.Fresh && At(c.Slot, r, 0) == row/positions && row%positions == At(c.Pos, r, 1)%positions {
			return false
		}
		seen = seen || At(c.Slot, r, 0) == row/positions && row%positions <= At(c.Pos, r, 1)
	}
	return seen
}
