package kernel

import (
	"fmt"
	"slices"
	"unsafe"
)

// The race detector of Run. Two accesses of one word by different lanes, of which one
// writes, must be ordered: by a barrier that all lanes of the workgroup come to, in shared
// memory also by one of their subgroup, and between workgroups by a fence, an atomic
// operation, one that sees it, and another fence. That lanes run in lock step orders
// nothing. Atomic operations do not race with each other.

// visit is one access of a word, as the detector keeps it: short, as it keeps four of each word. What the lanes of one
// operation have in common follows from the time.
type visit struct {
	time   int32 // of the operation: an index of detector.nodes; 0: there was no access
	lane   int16 // below 0: of a matrix, by all lanes of subgroup -1-lane
	atomic bool
}

// access is a visit of now, and what was before it.
type access struct {
	visit
	start    int32 // when the workgroup began; 0 in shared memory, where nothing is left of others
	since    int32 // the last barrier of the workgroup that orders this memory, or start
	within   int32 // the last barrier of the subgroup, where it orders this memory
	subgroup int32
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
	start, since, time int32 // as of an access: of the workgroup, of its last barrier, of the fence
	lane               int16
	seen               []acquire
}

// acquire is a release that a lane knows of.
type acquire struct {
	release
	lane int16
	at   int32 // the time since when it does
}

// memory is a buffer; arguments may share it.
type memory struct {
	data  []byte
	cells []cell // nil where nothing writes
	grain int    // bytes of a cell
}

// shadow is what the detector knows of an array.
type shadow struct {
	cells   []cell
	grain   int       // words of a cell
	brought []brought // by cell; nil if no copies of slots have begun
}

// of returns the cells of words.
func (s shadow) of(at, words int) []cell {
	if s.grain == 1 {
		return s.cells[at:][:words]
	}
	return s.cells[at/s.grain:][:words/s.grain]
}

// detector keeps the order of what lanes do.
type detector struct {
	buffers   []*memory
	shared    []shadow
	rare      []rare
	free      []int32 // of rare, as cells name them: what shared cells of workgroups before had
	nodes     []int32 // numbers of the operations that order or access memory, by time
	next      bool    // the next access is of another operation than the last one
	starts    []int32 // of workgroups, by index
	start     int32   // of the workgroup
	since     int32   // the time of its last barrier
	ordering  int32   // the time of its last barrier that orders buffers
	within    []int32 // the times of the last barriers of its subgroups
	subgroups []int32 // by lane, and 0 for the workgroup as a whole
	few       bool    // shared cells may have something rare
	pending   []*release
	observed  [][]release // by lane, since its last fence
	known     []acquire
}

// newDetector finds which arguments share memory.
func newDetector(f *Func, args [][]byte) *detector {
	d := &detector{nodes: []int32{0}}
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

// begin starts a workgroup. What it sees of shared cells is older than start, but for what is rare.
func (d *detector) begin(lanes, wave int, arrays []int) {
	d.start = d.tick(0)
	d.since, d.ordering, d.starts = d.start, d.start, append(d.starts, d.start)
	if d.subgroups == nil {
		d.subgroups = make([]int32, lanes+1)
		for l := range lanes {
			d.subgroups[l] = int32(l / wave)
		}
		d.within = make([]int32, (lanes+wave-1)/wave)
		d.pending, d.observed = make([]*release, lanes), make([][]release, lanes)
	}
	clear(d.pending)
	clear(d.observed)
	d.known = nil
	for i := range d.shared {
		s := &d.shared[i]
		s.brought = nil
		if s.cells == nil {
			s.cells = make([]cell, arrays[i]/s.grain)
		} else if d.few {
			for i := range s.cells {
				if n := s.cells[i].rare; n != 0 {
					d.rare[n-1], d.free = rare{}, append(d.free, n)
				}
			}
			clear(s.cells)
		}
	}
	d.few = false
}

// tick notes that an operation begins that orders or accesses memory, and returns its time.
func (d *detector) tick(number int) int32 {
	d.nodes, d.next = append(d.nodes, int32(number)), false
	return d.now()
}

func (d *detector) now() int32 { return int32(len(d.nodes) - 1) }

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
	d.few = true
	return &d.rare[c.rare-1]
}

// barrier is passed by all lanes; buffers says that it orders them, too.
func (d *detector) barrier(n *Node, buffers bool) {
	d.since = d.tick(n.number)
	if buffers {
		d.ordering = d.since
	}
}

// fence releases, at this time, what the lane knows and takes what its atomic operations have seen.
func (d *detector) fence(lane int) {
	for _, r := range d.observed[lane] {
		if r.start != d.start {
			d.known = append(d.known, acquire{r, int16(lane), d.now()})
		}
	}
	d.observed[lane] = nil
	r := &release{start: d.start, since: d.ordering, time: d.now(), lane: int16(lane)}
	for _, k := range d.known {
		if k.lane == int16(lane) || k.at < d.ordering {
			r.seen = append(r.seen, k)
		}
	}
	d.pending[lane] = r
}

// covers reports whether the release makes what v has done visible.
func (r *release) covers(v visit) bool {
	if v.time >= r.start && (v.time < r.since || v.lane == r.lane && v.time < r.time) {
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
func (d *detector) ordered(v visit, w *access) bool { return v.plainly(w) || d.passed(v, w) }

// plainly answers ordered for most accesses: there was none, or it was this lane's, or before a barrier.
func (v visit) plainly(w *access) bool {
	if v.time < w.start {
		return v.time == 0
	}
	return v.time < w.since || v.lane == w.lane && v.lane >= 0
}

func (d *detector) passed(v visit, w *access) bool {
	if v.time >= w.start {
		return v.time < w.within && d.subgroup(v.lane) == w.subgroup || v.lane == w.lane && v.time == w.time // of one operation
	}
	for i := range d.known {
		k := &d.known[i]
		if (k.lane == w.lane || k.at < w.since) && k.covers(v) {
			return true
		}
	}
	return false
}

// subgroup returns the subgroup of who visits.
func (d *detector) subgroup(lane int16) int32 {
	if lane < 0 {
		return int32(-1 - lane)
	}
	return d.subgroups[lane]
}

// load notes that w reads the cell and returns the access that it races with, or nil.
func (d *detector) load(c *cell, w *access) *visit {
	if !(w.atomic && c.write.atomic) {
		if !d.ordered(c.write, w) {
			return &c.write
		}
		if c.rare != 0 && !d.ordered(d.rareOf(c).last, w) {
			return &d.rareOf(c).last
		}
	}
	switch r := c.read; {
	case r.time == 0 || r.time >= w.start && r.time < w.since:
		c.near.time, c.far.time = 0, 0
	case r.time < w.start:
		few := d.rareOf(c)
		few.before = append(few.before, r)
		c.near.time, c.far.time = 0, 0
	case r.lane == w.lane && w.lane >= 0 && r.time >= w.within: // as before
	case d.subgroup(r.lane) != w.subgroup:
		c.far, c.near.time = r, 0
	case r.time < w.within:
		c.near.time = 0
	case r.lane != w.lane || w.lane < 0:
		c.near = r
	}
	c.read = w.visit
	return nil
}

// store notes that w writes the cell and returns the access that it races with, or nil.
func (d *detector) store(c *cell, w *access) *visit {
	for _, v := range [...]*visit{&c.write, &c.read, &c.near, &c.far} {
		if !v.plainly(w) && !(w.atomic && v.atomic) && !d.passed(*v, w) {
			return v
		}
	}
	if c.rare != 0 {
		few := d.rareOf(c)
		if !(w.atomic && few.last.atomic) && !d.ordered(few.last, w) {
			return &few.last
		}
		for i, v := range few.before {
			if !(w.atomic && v.atomic) && !d.ordered(v, w) {
				return &few.before[i]
			}
		}
		few.last, few.before = visit{}, nil
	}
	if c.write.atomic && c.write.lane != w.lane {
		d.rareOf(c).last = c.write
	}
	c.write = w.visit
	c.read.time, c.near.time, c.far.time = 0, 0, 0
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

// access describes the accesses of memory by a node now, but for the lane.
func (d *detector) access(n *Node) (w access) {
	if d.next || d.nodes[d.now()] != int32(n.number) {
		d.tick(n.number)
	}
	w.time = d.now()
	return w
}

// by says who accesses: a lane, subgroup s as a whole if it is -1-s, or the workgroup, whose own accesses are ordered,
// if it is the lane behind the last.
func (w *access) by(d *detector, lane int) { w.lane, w.subgroup = int16(lane), d.subgroup(int16(lane)) }

// inShared checks the access of words of a shared array by who access.by says.
func (m *machine) inShared(n *Node, array, at, words, lane int) {
	w, stores := m.shares(n)
	m.touch(&w, stores, array, at, words, lane)
}

// shares describes the accesses of shared memory by a node, but for the lane, and says whether they store.
func (m *machine) shares(n *Node) (w access, stores bool) {
	w = m.races.access(n)
	w.since = m.races.since
	w.atomic = n.op == OpSharedAdd
	switch n.op {
	case OpSharedStore, OpSharedSet, OpSharedAdd, OpMatStore, OpTileStore, OpCopy, OpCopyWait, OpBulk:
		stores = true
	}
	return w, stores
}

// touch checks an access that shares describes, by a lane.
func (m *machine) touch(w *access, stores bool, array, at, words, lane int) {
	w.by(m.races, lane)
	w.within = m.races.within[w.subgroup]
	cells := m.races.shared[array].of(at, words)
	for i := range cells {
		var other *visit
		if stores {
			other = m.races.store(&cells[i], w)
		} else {
			other = m.races.load(&cells[i], w)
		}
		if other != nil {
			m.race(fmt.Sprintf("word %d of shared array %d", at+i*m.races.shared[array].grain, array), *other, w.visit)
			return
		}
	}
	m.awaited(array, at, words, w)
}

// accessOf describes the accesses of buffers by a node, but for the lane.
func (m *machine) accessOf(n *Node) access {
	w := m.races.access(n)
	w.start, w.since = m.races.start, m.races.ordering
	w.atomic = n.op == OpAtomicAdd
	return w
}

// inBuffer checks the access of size bytes at byte at of an argument.
func (m *machine) inBuffer(n *Node, arg, at, size, lane int) {
	if m.races.buffers[arg].cells != nil {
		w := m.accessOf(n)
		m.checkRace(n, &w, arg, at, size, lane)
	}
}

// checkRace is inBuffer of an access that accessOf describes.
func (m *machine) checkRace(n *Node, w *access, arg, at, size, lane int) {
	b := m.races.buffers[arg]
	w.by(m.races, lane)
	writes := false
	switch n.op {
	case OpAtomicAdd:
		writes = true
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
		case writes && c.rare != 0 && m.races.rareOf(c).constant.time != 0:
			other = &m.races.rareOf(c).constant
		case writes:
			other = m.races.store(c, w)
		case constant && c.write.time != 0:
			other = &c.write
		case constant:
			m.races.rareOf(c).constant = w.visit
		default:
			other = m.races.load(c, w)
		}
		if other != nil {
			m.race(fmt.Sprintf("word %d of argument %q", i*b.grain/4, m.f.Args[arg].Name), *other, w.visit)
			return
		}
	}
}

// early takes from words, which a lane has loaded ahead, what another lane may be writing.
func (m *machine) early(w *access, arg, at, size, lane int, words []uint32) {
	b := m.races.buffers[arg]
	if b.cells == nil {
		return
	}
	w.by(m.races, lane)
	for i := 0; i < size; i += b.grain {
		if c := &b.cells[(at+i)/b.grain]; !m.races.ordered(c.write, w) || c.rare != 0 && !m.races.ordered(m.races.rareOf(c).last, w) {
			words[i/4] |= undefined >> (32 - 8*b.grain) << (i % 4 * 8)
		}
	}
}

// race reports two accesses that nothing orders.
func (m *machine) race(where string, v, w visit) {
	if m.err == nil {
		m.err = fmt.Errorf("race on %s: %s and %s, and nothing orders them", where, m.describe(v), m.describe(w))
	}
}

func (m *machine) describe(v visit) string {
	who := fmt.Sprintf("lane %d", v.lane)
	switch {
	case int(v.lane) == m.lanes:
		who = "workgroup"
	case v.lane < 0:
		who = fmt.Sprintf("subgroup %d", m.races.subgroup(v.lane))
	}
	if v.time < m.races.start {
		next, _ := slices.BinarySearch(m.races.starts, v.time)
		who = fmt.Sprintf("workgroup %d, %s", next-1, who)
	}
	n := m.f.numbered(int(m.races.nodes[v.time]))
	return fmt.Sprintf("%s (%s at %s)", who, ops[n.op].name, n.place())
}
