package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/layout"
)

// poison is NaN as float32 and as two float16, and no index of anything.
const poison = 0x7fed7fed

// guard is how many bytes of the arena around an output must stay as they are.
const guard = 4 << 10

// dispatch is the comparison of one dispatch.
type dispatch struct {
	*verifier
	step    trial
	fn      *ir.Func
	group   *ir.Group
	index   int
	outputs []*ir.Value
	scratch []*ir.Value
	result  Result

	caches []cache
	guards []guarded
	worst  float64 // error over tolerance

	products map[*ir.Value][]float32 // of a product of what the group makes: see noteProduct and noteScores
	nudged   map[*ir.Value][]float32 // see noteScores
	packs    map[*ir.Value]packing   // of results of op pack12
}

// cache is a written cache as it was before the dispatch, with the rows that it
// must write poisoned.
type cache struct {
	value  *ir.Value
	source *ir.Value // what is written
	rows   []int     // of the cache, for each live row of the step
	before []byte
}

// guarded is memory that the dispatch must leave alone.
type guarded struct {
	at     plans.Arg
	before []byte
}

func (d *dispatch) check(ctx context.Context) error {
	kernel := ""
	if c := d.group.Call; c != nil {
		kernel = c.Kernel
	}
	d.result = d.step.result(d.group.Name)
	d.result.Kernel = kernel
	for _, f := range []func(context.Context) error{
		d.load, d.loadCaches, d.poison, d.snapshot, d.runBoth,
		d.compareOutputs, d.compareState, d.compareStep, d.compareGuards,
	} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	if d.result.Difference != nil {
		return d.repair(ctx)
	}
	return nil
}

func (d *dispatch) runBoth(ctx context.Context) error {
	if err := d.dev.Dispatch(ctx, d.step.entry, d.index); err != nil {
		return err
	}
	return d.machine.RunGroupWith(d.fn, d.group, func(op *ir.Op) error {
		d.noteProduct(op)
		if err := d.noteScores(op); err != nil {
			return err
		}
		if err := d.notePacked(ctx, op); err != nil {
			return err
		}
		for i := range d.caches {
			if op.Kind.Name == "kvwrite" && op.Args[3] == d.caches[i].value {
				return d.compareCache(ctx, &d.caches[i])
			}
		}
		return nil
	})
}

// load copies what the group reads from the device to the oracle.
func (d *dispatch) load(ctx context.Context) error {
	for _, g := range d.plan.Program.Globals {
		if g.Class == ir.Step {
			if err := d.copyIn(ctx, g, 0, len(d.machine.Ints(g))); err != nil {
				return err
			}
		}
	}
	for _, v := range d.group.Inputs() {
		var err error
		switch {
		case v.Class == ir.Weight || v.Class == ir.Table || v.Class == ir.Step:
		case v.Class == ir.State:
			err = d.copyIn(ctx, v, 0, len(d.held(v)))
		case v.Class == ir.KV:
			err = d.loadCache(ctx, v)
		default:
			err = d.copyIn(ctx, v, 0, d.elements(v))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// loadCache copies of a cache what the step's sequences hold.
func (d *dispatch) loadCache(ctx context.Context, v *ir.Value) error {
	if v.Paged() {
		return d.copyIn(ctx, v, 0, len(d.held(v)))
	}
	w := int(v.Type.Last())
	for _, slot := range d.step.sequences() {
		positions := d.positions(v)
		if err := d.copyIn(ctx, v, int(slot)*positions*w, min(d.step.end(slot), positions)*w); err != nil {
			return err
		}
	}
	return nil
}

// table is the block table of a cache, of which the oracle has a copy.
func (d *dispatch) table(cache *ir.Value) ir.PageTable {
	g := d.plan.Program.TableFor(cache)
	if g == nil {
		return ir.PageTable{}
	}
	return d.plan.Program.TableOf(d.machine.Ints(g))
}

// positions is how many positions of a sequence a cache has.
func (d *dispatch) positions(cache *ir.Value) int { return cache.Type.Positions(d.plan.Header.Ctx) }

// elements is how many elements of a function's value this step has.
func (d *dispatch) elements(v *ir.Value) int {
	n, _ := v.Type.Elements(len(d.step.rows), d.plan.Header.Ctx) // the oracle has sized it
	return int(n)
}

// held returns the oracle's words of v.
func (d *dispatch) held(v *ir.Value) []float32 {
	if v.Type.DType == ir.I32 {
		x := d.machine.Ints(v)
		return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
	}
	return d.machine.Floats(v)
}

// copyIn copies n elements of v, from element `from` on.
func (d *dispatch) copyIn(ctx context.Context, v *ir.Value, from, n int) error {
	if !v.IsGlobal() { // the group that makes it may not have been compared
		if err := d.machine.Hold(d.fn, v); err != nil {
			return err
		}
	}
	dst := d.held(v)
	if from+n > len(dst) {
		return fmt.Errorf("%s: the oracle holds %d elements, not %d", v, len(dst), from+n)
	}
	raw, err := d.read(ctx, v, from, n)
	if err != nil {
		return err
	}
	return oracle.Decode(dst[from:from+n], v.Type.DType, raw)
}

// read returns n elements of v on the device as bytes, in v's dtype.
func (d *dispatch) read(ctx context.Context, v *ir.Value, from, n int) ([]byte, error) {
	lo, hi := v.Type.DType.Bytes(int64(from)), v.Type.DType.Bytes(int64(from+n))
	if v.Class == ir.KV {
		rows, err := d.readCache(ctx, v)
		if err != nil {
			return nil, err
		}
		return rows[lo:hi], nil
	}
	at := place(d.step.entry.Name, v)
	at.Offset += lo
	raw := make([]byte, hi-lo)
	return raw, d.dev.Read(ctx, at, raw)
}

// put sets the elements of v on the device from `from` on.
func (d *dispatch) put(ctx context.Context, v *ir.Value, from int, raw []byte) error {
	lo := v.Type.DType.Bytes(int64(from))
	if v.Class == ir.KV {
		rows, err := d.readCache(ctx, v)
		if err != nil {
			return err
		}
		copy(rows[lo:], raw)
		return d.overwriteCache(ctx, v, rows)
	}
	at := place(d.step.entry.Name, v)
	at.Offset += lo
	return d.dev.Overwrite(ctx, at, raw)
}

// readCache returns all rows of a cache, overwriteCache sets them.
func (d *dispatch) readCache(ctx context.Context, v *ir.Value) ([]byte, error) {
	raw := make([]byte, v.Type.DType.Bytes(int64(len(d.machine.Floats(v)))))
	if err := d.dev.Read(ctx, place(d.step.entry.Name, v), raw); err != nil {
		return nil, err
	}
	return layout.CacheFromDevice(v, d.plan.Header.Ctx, raw)
}

func (d *dispatch) overwriteCache(ctx context.Context, v *ir.Value, rows []byte) error {
	raw, err := layout.CacheToDevice(v, d.plan.Header.Ctx, rows)
	if err != nil {
		return err
	}
	return d.dev.Overwrite(ctx, place(d.step.entry.Name, v), raw)
}

// loadCaches keeps the written caches as they are.
func (d *dispatch) loadCaches(ctx context.Context) error {
	for _, op := range d.group.Ops {
		if op.Kind.Name != "kvwrite" {
			continue
		}
		v := op.Args[3]
		c, table := cache{value: v, source: op.Args[0]}, d.table(v)
		for i, r := range d.step.rows {
			if !d.step.live(i) {
				continue
			}
			c.rows = append(c.rows, table.Row(v, d.plan.Header.Ctx, int(r.Slot), int(r.Pos)))
		}
		var err error
		if c.before, err = d.read(ctx, v, 0, len(d.machine.Floats(v))); err != nil {
			return err
		}
		d.caches = append(d.caches, c)
	}
	return nil
}

func (c *cache) rowBytes() int { return int(c.value.Type.DType.Bytes(int64(c.value.Type.Last()))) }

// poison spoils what the dispatch must write. Outputs that share bytes with an
// input stay.
func (d *dispatch) poison(ctx context.Context) error {
	fill := func(n int64) []byte {
		return bytes.Repeat(binary.LittleEndian.AppendUint32(nil, poison), int(n+3)/4)[:n]
	}
	for _, v := range d.outputs {
		at := place(d.step.entry.Name, v)
		at.Bytes = v.Type.DType.Bytes(int64(d.elements(v)))
		if d.sharesInput(at) {
			continue
		}
		if err := d.dev.Overwrite(ctx, at, fill(at.Bytes)); err != nil {
			return err
		}
	}
	for i := range d.caches {
		c := &d.caches[i]
		for _, row := range c.rows {
			copy(c.before[row*c.rowBytes():(row+1)*c.rowBytes()], fill(int64(c.rowBytes())))
		}
		if err := d.overwriteCache(ctx, c.value, c.before); err != nil {
			return err
		}
	}
	return nil
}

func (d *dispatch) sharesInput(at plans.Arg) bool {
	for _, v := range d.group.Inputs() {
		if v.IsGlobal() || v.Class != ir.Arena || at.Space != "arena" {
			continue
		}
		if v.Offset < at.Offset+at.Bytes && at.Offset < v.Offset+v.Type.DType.Bytes(int64(d.elements(v))) {
			return true
		}
	}
	return false
}

// snapshot keeps the arena around the outputs.
func (d *dispatch) snapshot(ctx context.Context) error {
	type span struct{ lo, hi int64 }
	var own []span
	for _, v := range append(slices.Clone(d.outputs), d.scratch...) {
		if v.Class == ir.Arena {
			n, err := v.Type.Bytes(d.fn.Rows, d.plan.Header.Ctx)
			if err != nil {
				return err
			}
			own = append(own, span{v.Offset, v.Offset + n})
		}
	}
	for _, o := range own {
		for _, s := range []span{{max(0, o.lo-guard), o.lo}, {o.hi, min(d.plan.Memory.Arena, o.hi+guard)}} {
			for _, p := range own { // a neighbour that is written, too
				if p.lo < s.hi && s.lo < p.hi {
					if p.lo <= s.lo {
						s.lo = p.hi
					} else {
						s.hi = p.lo
					}
				}
			}
			if s.lo >= s.hi {
				continue
			}
			g := guarded{plans.Arg{Space: "arena", Offset: s.lo}, make([]byte, s.hi-s.lo)}
			if err := d.dev.Read(ctx, g.at, g.before); err != nil {
				return err
			}
			d.guards = append(d.guards, g)
		}
	}
	return nil
}

// repair puts the oracle's values in place of wrong ones, so that what follows is
// judged on good input.
func (d *dispatch) repair(ctx context.Context) error {
	put := func(v *ir.Value, from, n int) error {
		return d.put(ctx, v, from, oracle.Encode(nil, v.Type.DType, d.held(v)[from:from+n]))
	}
	for _, v := range d.outputs {
		if err := put(v, 0, d.elements(v)); err != nil {
			return err
		}
	}
	for _, v := range d.group.Writes() {
		if v.Class == ir.State {
			if err := put(v, 0, len(d.held(v))); err != nil {
				return err
			}
		}
	}
	for _, c := range d.caches {
		w := int(c.value.Type.Last())
		for _, row := range c.rows {
			if err := put(c.value, row*w, w); err != nil {
				return err
			}
		}
	}
	return nil
}
