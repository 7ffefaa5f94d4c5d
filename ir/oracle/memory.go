package oracle

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// Everything but weights is held in words of four bytes, as []float32: float32
// values, the bits of int32 values, and float16 and, in caches, q8_0 values widened,
// which is exact.
//
// Globals and results of class io are held for good. Values with an offset are
// windows of the arena, except for those of float16, which has half the room there.
// All other values are temporaries, held from the op that produces them (or Write)
// to the end of their last group.

// maxWords bounds one allocation: 64 GiB.
const maxWords = 1 << 34

func asInts(f []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

func words(t ir.Type, rows, ctx int) (int, error) {
	if t.DType != ir.F32 && t.DType != ir.I32 && t.DType != ir.F16 {
		return 0, fmt.Errorf("%s: only weights can have this dtype", t)
	}
	n, err := t.Elements(rows, ctx)
	if err != nil {
		return 0, err
	}
	if n > maxWords {
		return 0, fmt.Errorf("%s: %d elements do not fit in memory", t, n)
	}
	return int(n), nil
}

func (m *Machine) addGlobal(ctx context.Context, g *ir.Value, src Source) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch g.Class {
	case ir.Weight:
		data, err := src.Weight(g.Name)
		if err != nil {
			return err
		}
		return mapped.Read(func() (err error) { m.weights[g], err = newMatrix(g.Type, data); return err })
	case ir.Table:
		t, err := Table(ctx, g, m.prog.Ctx)
		m.values[g] = t
		return err
	}
	n, err := globalWords(m.prog, g)
	if err != nil {
		return err
	}
	m.values[g] = make([]float32, n)
	return nil
}

// globalWords is the words of a global that is no weight.
func globalWords(p *ir.Program, g *ir.Value) (int, error) {
	held := g.Type
	if g.Class == ir.KV && held.DType.Block() > 1 {
		held.DType = ir.F32
	}
	rows := 1 // T in the types of globals, which all functions share
	for _, f := range p.Funcs {
		rows = max(rows, f.Rows)
	}
	return words(held, rows, p.Ctx)
}

// Bytes is the memory of a machine of p beside weights and temporaries: tables,
// caches, state and results. Their elements take four bytes each, whatever their type.
func Bytes(p *ir.Program) (int64, error) {
	sum := int64(0)
	for _, g := range p.Globals {
		if g.Class == ir.Weight {
			continue
		}
		n, err := globalWords(p, g)
		if err != nil {
			return 0, fmt.Errorf("global @%s: %w", g.Name, err)
		}
		sum += 4 * int64(n)
	}
	for _, f := range p.Funcs {
		for _, op := range f.Ops() {
			if v := op.Result; v != nil && v.Class == ir.IO {
				n, err := words(v.Type, f.Rows, p.Ctx)
				if err != nil {
					return 0, fmt.Errorf("func %q: %%%d: %w", f.Name, v.ID, err)
				}
				sum += 4 * int64(n)
			}
		}
	}
	return sum, nil
}

// placeArena gives every placed value its window of one arena, and io values
// memory of their own.
func (m *Machine) placeArena() error {
	size := int64(0)
	var windows []*ir.Value
	lengths := map[*ir.Value]int{}
	for _, f := range m.prog.Funcs {
		for _, op := range f.Ops() {
			v := op.Result
			if v == nil {
				continue
			}
			n, err := words(v.Type, f.Rows, m.prog.Ctx)
			if err != nil {
				return fmt.Errorf("func %q: %%%d: %w", f.Name, v.ID, err)
			}
			switch {
			case v.Class == ir.IO:
				m.values[v] = make([]float32, n)
			case !inArena(v):
			case v.Offset%4 != 0 || v.Offset > 4*maxWords:
				return fmt.Errorf("func %q: %%%d: bad offset %d", f.Name, v.ID, v.Offset)
			default:
				size = max(size, v.Offset/4+int64(n))
				windows = append(windows, v)
				lengths[v] = n
			}
		}
	}
	arena := make([]float32, size)
	for _, v := range windows {
		at, n := int(v.Offset/4), lengths[v]
		m.values[v] = arena[at : at+n : at+n]
	}
	return nil
}

// inArena reports whether v is a window of the arena.
func inArena(v *ir.Value) bool { return v.Offset >= 0 && v.Type.DType != ir.F16 }

// lifetimes says which temporaries end with which group of a function.
type lifetimes struct {
	inner [][]*ir.Value // used inside the group only
	last  [][]*ir.Value // made by an earlier group and read by this one for the last time
}

func findLifetimes(f *ir.Func) *lifetimes {
	lt := &lifetimes{make([][]*ir.Value, len(f.Groups)), make([][]*ir.Value, len(f.Groups))}
	made, last := map[*ir.Value]int{}, map[*ir.Value]int{}
	for i, g := range f.Groups {
		for _, op := range g.Ops {
			if r := op.Result; r != nil && r.Class != ir.IO && !inArena(r) {
				made[r], last[r] = i, i
			}
			for _, a := range op.Args {
				if _, ok := made[a]; ok {
					last[a] = i
				}
			}
		}
	}
	for v, i := range last {
		if made[v] == i {
			lt.inner[i] = append(lt.inner[i], v)
		} else {
			lt.last[i] = append(lt.last[i], v)
		}
	}
	return lt
}

// Hold makes sure that v, a value of f, has storage. Some values have storage only from the
// group that makes them to the last group that reads them.
func (m *Machine) Hold(f *ir.Func, v *ir.Value) error {
	if m.values[v] != nil {
		return nil
	}
	n, err := words(v.Type, f.Rows, m.prog.Ctx)
	if err != nil {
		return err
	}
	if free := m.free[n]; len(free) > 0 {
		m.values[v] = free[len(free)-1]
		m.free[n] = free[:len(free)-1]
		return nil
	}
	m.values[v] = make([]float32, n)
	return nil
}

func (m *Machine) release(vs []*ir.Value) {
	for _, v := range vs {
		if s := m.values[v]; s != nil {
			m.free[len(s)] = append(m.free[len(s)], s)
			delete(m.values, v)
		}
	}
}

// Floats returns the float32 elements of v in place, or nil when v is not held. A
// float16 or q8_0 cache shows its values widened; values written there must be exact in its dtype.
func (m *Machine) Floats(v *ir.Value) []float32 {
	if v.Type.DType == ir.I32 {
		return nil
	}
	return m.values[v]
}

// Ints is Floats for int32.
func (m *Machine) Ints(v *ir.Value) []int32 {
	if v.Type.DType != ir.I32 {
		return nil
	}
	return asInts(m.values[v])
}

// Read returns the elements of a global or of a value of f as little-endian bytes
// in v's dtype and full shape, with T = f.Rows. Rows that no step has written keep
// their old contents.
func (m *Machine) Read(f *ir.Func, v *ir.Value) ([]byte, error) {
	if w := m.weights[v]; w != nil {
		return w.raw, nil
	}
	n, err := m.extent(f, v)
	if err != nil {
		return nil, err
	}
	src := m.values[v]
	if src == nil {
		return nil, fmt.Errorf("read %s: no value is held", label(v))
	}
	out := make([]byte, 0, v.Type.DType.Bytes(int64(n)))
	return Encode(out, v.Type.DType, src[:n]), nil
}

// Encode appends x, elements of dtype t, to b in the form of Read: words of four
// bytes unchanged, float16, or the blocks of a cache, as kvwrite wrote them.
func Encode(b []byte, t ir.DType, x []float32) []byte {
	switch t {
	case ir.F16:
		for _, v := range x {
			b = binary.LittleEndian.AppendUint16(b, gguf.F32ToF16(v))
		}
	default:
		if q := gguf.QuantizerOf(t); q != nil {
			return q.Encode(b, x)
		}
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// Decode is the inverse of Encode: it sets x to the elements of b.
func Decode(x []float32, t ir.DType, b []byte) error {
	if t == ir.I32 {
		t = ir.F32 // the bits
	}
	return gguf.Dequantize(x, b, t)
}

// Write sets the elements of v, in the form that Read returns.
func (m *Machine) Write(f *ir.Func, v *ir.Value, data []byte) error {
	if v.Class == ir.Weight || v.Class == ir.Table {
		return fmt.Errorf("write %s: class %s is read only", label(v), v.Class)
	}
	n, err := m.extent(f, v)
	if err != nil {
		return err
	}
	if want := v.Type.DType.Bytes(int64(n)); int64(len(data)) != want {
		return fmt.Errorf("write %s: %s takes %d bytes, not %d", label(v), v.Type, want, len(data))
	}
	if err := m.Hold(f, v); err != nil {
		return err
	}
	return Decode(m.values[v][:n], v.Type.DType, data)
}

// extent is the number of elements of v when T is f.Rows.
func (m *Machine) extent(f *ir.Func, v *ir.Value) (int, error) {
	if m.funcs[f] == nil {
		return 0, fmt.Errorf("func %q is not of this program", f.Name)
	}
	if v.IsGlobal() && m.values[v] == nil {
		return 0, fmt.Errorf("%s is not of this program", label(v))
	}
	if v.Class == ir.KV {
		return len(m.values[v]), nil
	}
	return words(v.Type, f.Rows, m.prog.Ctx)
}

func label(v *ir.Value) string {
	if v.IsGlobal() {
		return "@" + v.Name
	}
	return fmt.Sprintf("%%%d", v.ID)
}
