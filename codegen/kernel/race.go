package kernel

import (
	"fmt"
	"unsafe"
)

// The race detector of Run. Two accesses of one word by different lanes, of which one
// writes, must be ordered: by a barrier that all lanes of the workgroup come to, in shared
// memory also by one of their subgroup, and between workgroups by a fence, an atomic
// operation, one that sees it, and another fence. That lanes run in lock step orders
// nothing. Atomic operations do not race with each other.

// visit is one access of a word, as the detector keeps it: without pointers, as it keeps four of each word.
type visit struct {
	node     int32 // 1 more than its number; 0: there was none
	group    int32 // index of the workgroup
	lane     int32 // below 0: of a matrix, by all lanes of subgroup -1-lane
	subgroup int32
	barriers int32 // that the workgroup has passed, of those that order this memory
	within   int32 // barriers that the subgroup has passed, where they order this memory
	time     int32 // operations that the workgroup has done
	atomic   bool
}

// cell is what the detector knows of a word, or of neighbours that are always accessed together.
type cell struct {
	write visit
	// reads since then: the last one, one of another lane of its subgroup, and one of
	// another subgroup.
	read, near, far visit
	rare            int32 // 1 more than the index of what few words have; 0: nothing
}

// rare is what the detector knows of few words.
type rare struct {
	last     visit   // an atomic operation of another lane before the cell's write
	before   []visit // reads of other workgroups since then
	constant visit   // a read through an argument that is declared Read
	releases []release
}

// release is what a lane has made visible to who sees its atomic operation.
type release struct {
	group, lane, barriers, time int32
	seen                        []acquire
}

// acquire is a release that a lane knows of.
type acquire struct {
	release
	lane, barriers int32
}

// memory is a buffer; arguments may share it.
type memory struct {
	data  []byte
	cells []cell // nil where nothing writes
	grain int    // bytes of a cell
}

// shadow is what the detector knows of an array.
type shadow struct {
	cells []cell
	grain int // words of a cell
}

// of returns the cells of words.
func (s shadow) of(at, words int) []cell { return s.cells[at/s.grain:][:words/s.grain] }

// detector keeps the order of what lanes do.
type detector struct {
	buffers  []*memory
	shared   []shadow
	rare     []rare
	free     []int32 // of rare, as cells name them: what shared cells of workgroups before had
	group    int32
	time     int32
	barriers int32   // of the workgroup
	ordering int32   // of those, what orders buffers
	within   []int32 // by subgroup
	pending  []*release
	observed [][]release // by lane, since its last fence
	known    []acquire
}

// newDetector finds which arguments share memory.
func newDetector(f *Func, args [][]byte) *detector {
	d := &detector{}
	bytes, words := f.grains()
	for _, grain := range words {
		d.shared = append(d.shared, shadow{grain: grain})
	}
	byStart := map[*byte]*memory{}
	for i, data := range args {
		start := unsafe.SliceData(data)
		m := byStart[start]
		if m == nil {
			m = &memory{data: data, grain: bytes[i]}
			byStart[start] = m
		}
		m.grain = min(m.grain, bytes[i])
		d.buffers = append(d.buffers, m)
	}
	for i, m := range d.buffers {
		if f.Args[i].Access&Write != 0 && m.cells == nil {
			m.cells = make([]cell, (len(m.data)+m.grain-1)/m.grain)
		}
	}
	return d
}

// grains returns the bytes of arguments and the words of arrays that all accesses have whole.
func (f *Func) grains() (bytes, words []int) {
	for range f.Args {
		bytes = append(bytes, 16)
	}
	for _, a := range f.arrays {
		words = append(words, a.elem.Lanes())
	}
	f.body.walk(func(n *Node) {
		if elem, ok := n.View(); ok && elem != Void && n.op != OpPrefetch {
			size := elem.Size()
			if n.ahead { // what of it is noise is told by word
				size = min(size, 4)
			}
			for i := range bytes {
				if n.through() != nil || i == int(n.imm) {
					bytes[i] = min(bytes[i], size)
				}
			}
			if n.array != nil {
				words[n.array.index] = min(words[n.array.index], size/4)
			}
		}
		switch n.op {
		case OpSharedElem, OpSharedSet, OpMatLoad, OpMatStore, OpTileLoad, OpTileStore:
			words[n.imm] = 1
		}
	})
	return bytes, words
}

// numbered returns the node of the body that has the number.
func (f *Func) numbered(number int) (found *Node) {
	f.body.walk(func(n *Node) {
		if n.number == number {
			found = n
		}
	})
	return found
}

// begin starts a workgroup.
func (d *detector) begin(group, lanes, wave int, arrays []int) {
	d.group, d.time, d.barriers, d.ordering = int32(group), 0, 0, 0
	d.within = make([]int32, (lanes+wave-1)/wave)
	d.pending, d.observed, d.known = make([]*release, lanes), make([][]release, lanes), nil
	for i := range d.shared {
		s := &d.shared[i]
		if s.cells == nil {
			s.cells = make([]cell, arrays[i]/s.grain)
			continue
		}
		for i := range s.cells {
			if n := s.cells[i].rare; n != 0 {
				d.rare[n-1], d.free = rare{}, append(d.free, n)
			}
		}
		clear(s.cells)
	}
}

// rareOf returns what few words have, of this one.
func (d *detector) rareOf(c *cell) *rare {
	switch last := len(d.free) - 1; {
	case c.rare != 0:
	case last >= 0:
		c.rare, d.free = d.free[last], d.free[:last]
	default:
		d.rare = append(d.rare, rare{})
		c.rare = int32(len(d.rare))
	}
	return &d.rare[c.rare-1]
}

// barrier is passed by all lanes; buffers says that it orders them, too.
func (d *detector) barrier(buffers bool) {
	d.barriers++
	if buffers {
		d.ordering++
	}
}

// fence releases what the lane knows and takes what its atomic operations have seen.
func (d *detector) fence(lane int) {
	for _, r := range d.observed[lane] {
		if r.group != d.group {
			d.known = append(d.known, acquire{r, int32(lane), d.ordering})
		}
	}
	d.observed[lane] = nil
	r := &release{group: d.group, lane: int32(lane), barriers: d.ordering, time: d.time}
	for _, k := range d.known {
		if k.lane == int32(lane) || k.barriers < d.ordering {
			r.seen = append(r.seen, k)
		}
	}
	d.pending[lane] = r
}

// covers reports whether the release makes what v has done visible.
func (r *release) covers(v *visit) bool {
	if v.group == r.group && (v.barriers < r.barriers || v.lane == r.lane && v.time < r.time) {
		return true
	}
	for i := range r.seen {
		if r.seen[i].covers(v) {
			return true
		}
	}
	return false
}

// ordered reports whether v, if it is one, is before w.
func (d *detector) ordered(v, w *visit) bool { return v.plainly(w) || d.passed(v, w) }

// plainly answers ordered for most accesses: there was none, or it was this lane's, or before a barrier.
func (v *visit) plainly(w *visit) bool {
	return v.node == 0 || v.group == w.group && (v.barriers < w.barriers || v.lane == w.lane && v.lane >= 0)
}

func (d *detector) passed(v, w *visit) bool {
	if v.group == w.group {
		return v.subgroup == w.subgroup && v.within < w.within || v.lane == w.lane && v.time == w.time // of one operation
	}
	for i := range d.known {
		k := &d.known[i]
		if (k.lane == w.lane || k.barriers < w.barriers) && k.covers(v) {
			return true
		}
	}
	return false
}

// load notes that w reads the cell and returns the access that it races with, or nil.
func (d *detector) load(c *cell, w *visit) *visit {
	if !(w.atomic && c.write.atomic) {
		if !d.ordered(&c.write, w) {
			return &c.write
		}
		if c.rare != 0 && !d.ordered(&d.rareOf(c).last, w) {
			return &d.rareOf(c).last
		}
	}
	switch r := &c.read; {
	case r.node == 0 || r.group == w.group && r.barriers < w.barriers:
		c.near.node, c.far.node = 0, 0
	case r.group != w.group:
		few := d.rareOf(c)
		few.before = append(few.before, *r)
		c.near.node, c.far.node = 0, 0
	case r.subgroup != w.subgroup:
		c.far, c.near.node = *r, 0
	case r.within < w.within:
		c.near.node = 0
	case r.lane != w.lane || w.lane < 0:
		c.near = *r
	}
	c.read = *w
	return nil
}

// store notes that w writes the cell and returns the access that it races with, or nil.
func (d *detector) store(c *cell, w *visit) *visit {
	for _, v := range [...]*visit{&c.write, &c.read, &c.near, &c.far} {
		if !v.plainly(w) && !(w.atomic && v.atomic) && !d.passed(v, w) {
			return v
		}
	}
	if c.rare != 0 {
		few := d.rareOf(c)
		if !(w.atomic && few.last.atomic) && !d.ordered(&few.last, w) {
			return &few.last
		}
		for i := range few.before {
			if !(w.atomic && few.before[i].atomic) && !d.ordered(&few.before[i], w) {
				return &few.before[i]
			}
		}
		few.last, few.before = visit{}, nil
	}
	if c.write.atomic && c.write.lane != w.lane {
		d.rareOf(c).last = c.write
	}
	c.write = *w
	c.read.node, c.near.node, c.far.node = 0, 0, 0
	return nil
}

// atomic orders the lane's fences by its operation on the cell.
func (d *detector) atomic(c *cell, lane int, writes bool) {
	few := d.rareOf(c)
	d.observed[lane] = append(d.observed[lane], few.releases...)
	if r := d.pending[lane]; r != nil && writes {
		few.releases = append(few.releases, *r)
	}
}

// visit describes an access of now.
func (d *detector) visit(n *Node, lane, wave int) visit {
	return visit{node: int32(n.number) + 1, group: d.group, lane: int32(lane), subgroup: int32(lane / wave), time: d.time}
}

// inShared checks the access of words of a shared array; lane -1-s is subgroup s as a whole, and the lane behind the last the workgroup, whose own
// accesses are ordered.
func (m *machine) inShared(n *Node, array, at, words, lane int) {
	v, stores := m.shares(n)
	m.touch(&v, stores, array, at, words, lane)
}

// shares describes the accesses of shared memory by a node, but for the lane, and says whether they store.
func (m *machine) shares(n *Node) (v visit, stores bool) {
	v = m.races.visit(n, 0, m.wave)
	v.barriers = m.races.barriers
	v.atomic = n.op == OpSharedAdd || n.op == OpSharedMax
	switch n.op {
	case OpSharedStore, OpSharedSet, OpSharedAdd, OpSharedMax, OpMatStore, OpTileStore, OpCopy, OpCopyWait, OpBulk:
		stores = true
	}
	return v, stores
}

// touch checks an access that shares describes, by a lane.
func (m *machine) touch(v *visit, stores bool, array, at, words, lane int) {
	v.lane, v.subgroup = int32(lane), int32(lane/m.wave)
	switch {
	case lane < 0:
		v.subgroup = int32(-1 - lane)
	case lane == m.lanes: // tiles are the workgroup's
		v.subgroup = 0
	}
	v.within = m.races.within[v.subgroup]
	cells := m.races.shared[array].of(at, words)
	for i := range cells {
		var other *visit
		if stores {
			other = m.races.store(&cells[i], v)
		} else {
			other = m.races.load(&cells[i], v)
		}
		if other != nil {
			m.race(fmt.Sprintf("word %d of shared array %d", at+i*m.races.shared[array].grain, array), other, v)
			return
		}
	}
}

// inBuffer checks the access of size bytes at byte at of an argument.
func (m *machine) inBuffer(n *Node, arg, at, size, lane int) {
	b := m.races.buffers[arg]
	if b.cells == nil {
		return
	}
	v := m.races.visit(n, lane, m.wave)
	v.barriers = m.races.ordering
	writes := false
	switch n.op {
	case OpAtomicAdd, OpAtomicMax, OpAtomicLoad:
		v.atomic, writes = true, n.op != OpAtomicLoad
		m.races.atomic(&b.cells[at/b.grain], lane, writes)
	case OpStore, OpStore16:
		writes = true
	}
	constant := m.f.Args[arg].Access == Read
	for i := at / b.grain; i*b.grain < at+size; i++ {
		c := &b.cells[i]
		var other *visit
		switch {
		case n.ahead:
		case writes && c.rare != 0 && m.races.rareOf(c).constant.node != 0:
			other = &m.races.rareOf(c).constant
		case writes:
			other = m.races.store(c, &v)
		case constant && c.write.node != 0:
			other = &c.write
		case constant:
			m.races.rareOf(c).constant = v
		default:
			other = m.races.load(c, &v)
		}
		if other != nil {
			m.race(fmt.Sprintf("word %d of argument %q", i*b.grain/4, m.f.Args[arg].Name), other, &v)
			return
		}
	}
}

// early takes from words, which a lane has loaded ahead, what another lane may be writing.
func (m *machine) early(n *Node, arg, at, size, lane int, words []uint32) {
	b := m.races.buffers[arg]
	if b.cells == nil {
		return
	}
	v := m.races.visit(n, lane, m.wave)
	v.barriers = m.races.ordering
	for i := 0; i < size; i += b.grain {
		if c := &b.cells[(at+i)/b.grain]; !m.races.ordered(&c.write, &v) || c.rare != 0 && !m.races.ordered(&m.races.rareOf(c).last, &v) {
			words[i/4] |= undefined >> (32 - 8*b.grain) << (i % 4 * 8)
		}
	}
}

// race reports two accesses that nothing orders.
func (m *machine) race(where string, v, w *visit) {
	if m.err == nil {
		m.err = fmt.Errorf("race on %s: %s and %s, and nothing orders them", where, m.describe(v), m.describe(w))
	}
}

func (m *machine) describe(v *visit) string {
	who := fmt.Sprintf("lane %d", v.lane)
	switch {
	case int(v.lane) == m.lanes:
		who = "workgroup"
	case v.lane < 0:
		who = fmt.Sprintf("subgroup %d", v.subgroup)
	}
	if v.group != m.races.group {
		who = fmt.Sprintf("workgroup %d, %s", v.group, who)
	}
	n := m.f.numbered(int(v.node) - 1)
	return fmt.Sprintf("%s (%s at %s)", who, ops[n.op].name, n.place())
}
