package kernel

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Run interprets the kernel, for subgroup sizes that no device at hand has. It runs the workgroups of grid one after
// the other, the lanes of a workgroup in lock step, with the constants of spec, by id. args are the buffers, in the
// order of Args; slices that begin at the same byte are one buffer. It returns an error for an access outside the
// buffers, a barrier that not all lanes reach, and a race: two accesses to a word, one of them a write, without a
// barrier, fence or atomic operation that orders them, or a write to a word that is read through an argument declared
// Read. Fragments of matrices are those of Func.Fragments if the kernel relies on them, else those of no real device.
func (f *Func) Run(spec map[uint32]uint32, wave int, grid [3]int, args [][]byte) error {
	size, err := f.WorkgroupSize(spec)
	if err != nil {
		return err
	}
	if len(args) != len(f.Args) {
		return fmt.Errorf("kernel %s: %d buffers for %d arguments", f.Name, len(args), len(f.Args))
	}
	m := &machine{f: f, spec: spec, wave: wave, lanes: int(size), grid: grid, args: args, values: make([][]uint32, f.nodes), operands: make([][][]uint32, f.nodes), nears: map[int]uint32{}, races: newDetector(f, args)}
	for i := range grid[0] * grid[1] * grid[2] {
		m.group = [3]int{i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]}
		if err := m.workgroup(); err != nil {
			return fmt.Errorf("kernel %s, workgroup %d: %w", f.Name, m.group, err)
		}
	}
	return nil
}

// undefined is what memory and loads have that nobody may use: NaNs, and no small number.
const undefined = ^uint32(0)

// machine is a workgroup that runs.
type machine struct {
	f           *Func
	spec        map[uint32]uint32
	wave, lanes int
	grid, group [3]int
	args        [][]byte
	shared      [][]uint32
	values      [][]uint32     // of nodes by number, by lane and element; of a var its content
	operands    [][][]uint32   // of nodes by number, see operandsOf
	gone        []bool         // lanes that have returned
	masks       [][]bool       // see mask
	nears       map[int]uint32 // see near
	places      map[Type][]int // see placesOf
	gathered    [3][]float64   // see gather
	races       *detector
	products    products
	copies      []copies // by lane
	arrivals    arrivals
	gates       map[int][]gate // of an array
	tiles       [Tiles]tile
	err         error
}

func (m *machine) workgroup() error {
	m.gone, m.shared = make([]bool, m.lanes), nil
	var arrays []int
	for _, a := range m.f.arrays {
		n, err := m.f.eval(a.length, m.spec)
		if err != nil {
			return err
		}
		words := make([]uint32, int(n)*a.elem.Lanes())
		for i := range words {
			words[i] = undefined
		}
		m.shared = append(m.shared, words)
		arrays = append(arrays, len(words))
	}
	for i := range m.tiles {
		for r := range m.tiles[i] {
			for c := range m.tiles[i][r] {
				m.tiles[i][r][c] = undefined
			}
		}
	}
	m.races.begin(m.lanes, m.wave, arrays)
	m.products, m.copies, m.arrivals, m.gates = products{}, make([]copies, m.lanes), arrivals{}, map[int][]gate{}
	active := make([]bool, m.lanes)
	for i := range active {
		active[i] = true
	}
	m.region(m.f.body, active)
	m.allAwaited()
	return m.err
}

func (m *machine) fail(n *Node, format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("%s at %s: %s", ops[n.op].name, n.place(), fmt.Sprintf(format, args...))
	}
}

// region runs in the active lanes and takes those out that return or leave a loop.
func (m *machine) region(r *Region, active []bool) {
	for _, n := range r.nodes {
		if m.err != nil {
			return
		}
		m.node(n, active)
	}
}

// stay takes lanes out that have returned or left the innermost loop.
func (m *machine) stay(active []bool) {
	for l := range active {
		if m.gone[l] {
			active[l] = false
		}
	}
}

// runs has what runs an operation; nil for those that compute values of their operands alone.
var runs [numOps]func(m *machine, n *Node, active []bool)

func init() {
	set := func(run func(m *machine, n *Node, active []bool), list ...Op) {
		for _, op := range list {
			runs[op] = run
		}
	}
	for op := OpMatFill; op < numOps; op++ {
		set((*machine).matrix, op)
	}
	for op, row := range ops {
		if row.subgroup != "" {
			runs[op] = (*machine).subgroup
		}
	}
	set((*machine).branch, OpIf)
	set((*machine).loop, OpFor)
	set((*machine).exit, OpReturnIf)
	set((*machine).barrier, OpBarrier)
	set((*machine).subgroupBarrier, OpSubgroupBarrier)
	set((*machine).fence, OpFence)
	set((*machine).variable, OpVar, OpVarSet, OpVarGet)
	set((*machine).nothing, OpPrefetch, OpAwait, OpPrefetchNext)
	set((*machine).copy, OpCopy)
	set((*machine).copyGroup, OpCopyGroup)
	set((*machine).copyWait, OpCopyWait)
	set((*machine).bulk, OpBulk)
	set((*machine).arrange, OpArrivals)
	set((*machine).arrive, OpArrived)
	set((*machine).done, OpDone)
	set((*machine).free, OpFree)
	set((*machine).open, OpGates)
	set((*machine).reach, OpReach)
	set((*machine).reached, OpReached)
	set((*machine).address, OpAddress)
	set((*machine).buffer, OpLoad, OpStore, OpLoad16, OpStore16, OpAtomicAdd)
	set((*machine).array, OpSharedLoad, OpSharedStore, OpSharedElem, OpSharedSet, OpSharedAdd)
	set((*machine).constant, OpTable)
	set((*machine).tileOp, OpTileZero, OpTileLoad, OpTileStore, OpTileMulAdd)
}

func (m *machine) node(n *Node, active []bool) {
	m.races.next = true
	if len(m.products) > 0 {
		m.products.touch(m, n, active)
	}
	if run := runs[n.op]; run != nil {
		run(m, n, active)
	} else {
		m.compute(n, active)
	}
}

// nothing is what an operation does that changes no value.
func (m *machine) nothing(*Node, []bool) {}

func (m *machine) branch(n *Node, active []bool) {
	cond := m.value(n.args[0])
	for i, r := range n.regions {
		some := m.mask()
		if m.where(some, active, cond, i == 0) {
			m.region(r, some) // else no barrier in it waits for anyone
		}
		m.masks = append(m.masks, some)
	}
	m.stay(active)
}

// exit marks lanes that return.
func (m *machine) exit(n *Node, active []bool) {
	for l, cond := 0, m.value(n.args[0]); l < m.lanes; l++ {
		m.gone[l] = m.gone[l] || active[l] && cond[l] != 0
	}
	m.stay(active)
}

func (m *machine) barrier(n *Node, active []bool) {
	if m.together(n, active, m.lanes); !m.isLeft(n) {
		m.races.barrier(n, n.imm != 0)
	}
}

func (m *machine) subgroupBarrier(n *Node, active []bool) {
	if parts := m.together(n, active, m.wave); !m.isLeft(n) {
		for now := m.races.tick(n.number); len(parts) > 0; parts = parts[1:] {
			m.races.within[parts[0]] = now
		}
	}
}

func (m *machine) fence(n *Node, active []bool) {
	if m.isLeft(n) {
		return
	}
	m.races.tick(n.number)
	for l := range active {
		if active[l] {
			m.races.fence(l)
		}
	}
}

// variable makes a variable, sets it or reads it.
func (m *machine) variable(n *Node, active []bool) {
	to, from := n, []uint32(nil)
	switch n.op {
	case OpVar:
		from = m.value(n.args[0])
	case OpVarSet:
		to, from = n.args[0], m.value(n.args[1])
	case OpVarGet:
		from = m.storage(n.args[0], m.words(n.typ))
	}
	copyLanes(m.storage(to, m.words(to.typ)), from, active)
}

// address has the argument's number, which stands for it.
func (m *machine) address(n *Node, _ []bool) {
	to := m.storage(n, 2)
	for l := range m.lanes {
		to[2*l] = n.imm
	}
}

func (m *machine) isLeft(n *Node) bool { return slices.Contains(m.f.left, n) }

// together reports lanes that do not come to what all lanes of a part of the workgroup must
// come to, or none, and returns the parts that do.
func (m *machine) together(n *Node, active []bool, size int) (parts []int) {
	for first := 0; first < m.lanes; first += size {
		lanes := active[first:min(first+size, m.lanes)]
		if !anyLane(lanes) {
			continue
		}
		parts = append(parts, first/size)
		for l := range lanes {
			if !lanes[l] {
				m.fail(n, "lane %d does not come to it", first+l)
			}
		}
	}
	return parts
}

// mask returns flags of lanes, which go back to masks behind their use.
func (m *machine) mask() []bool {
	last := len(m.masks) - 1
	if last < 0 {
		return make([]bool, m.lanes)
	}
	mask := m.masks[last]
	m.masks = m.masks[:last]
	return mask
}

// where sets some to the active lanes for which cond is as wanted, and reports whether there are any.
func (m *machine) where(some, active []bool, cond []uint32, want bool) (are bool) {
	for l, a := range active {
		some[l] = a && (cond[l] != 0) == want
		are = are || some[l]
	}
	return are
}

func anyLane(active []bool) bool {
	for _, a := range active {
		if a {
			return true
		}
	}
	return false
}

func (m *machine) loop(n *Node, active []bool) {
	body := n.regions[0]
	i, hi, step := m.storage(body.param, 1), m.value(n.args[1]), m.value(n.args[2])
	copyLanes(i, m.value(n.args[0]), active)
	inside, running := m.mask(), m.mask()
	copy(inside, active)
	for m.err == nil {
		some := false
		for l, in := range inside {
			inside[l] = in && i[l] < hi[l]
			some = some || inside[l]
		}
		if !some {
			break
		}
		m.region(body, running[:copy(running, inside)])
		m.stay(inside)
		for l, in := range inside {
			if in {
				i[l] += step[l]
			}
		}
	}
	m.masks = append(m.masks, inside, running)
	m.stay(active)
}

// storage is where the values of n are kept: width elements for each lane.
func (m *machine) storage(n *Node, width int) []uint32 {
	v := m.values[n.number]
	if v == nil {
		v = make([]uint32, m.lanes*width)
		m.values[n.number] = v
	}
	return v
}

// value returns the values of n, which an earlier node or the constants have given.
func (m *machine) value(n *Node) []uint32 {
	if v := m.values[n.number]; v != nil || !n.static() {
		return v
	}
	width := n.typ.Lanes()
	v := m.storage(n, width)
	parts := []*Node{n}
	if n.op == OpVec {
		parts = n.args
	}
	for e, part := range parts {
		x, err := m.f.eval(part, m.spec)
		if err != nil {
			m.fail(n, "%v", err)
		}
		for l := range m.lanes {
			v[l*width+e] = x
		}
	}
	return v
}

func copyLanes(dst, src []uint32, active []bool) {
	width := len(dst) / len(active)
	for l := 0; l < len(active); {
		first := l
		for l < len(active) && active[l] == active[first] {
			l++
		}
		if active[first] {
			copy(dst[first*width:l*width], src[first*width:])
		}
	}
}

// buffer accesses an argument.
func (m *machine) buffer(n *Node, active []bool) {
	index := m.value(n.args[0])
	typ := n.typ
	var from, to, address []uint32
	if through := n.through(); through != nil {
		address = m.value(through)
	}
	if n.op == OpStore {
		typ = n.args[1].typ
	}
	if bufferOperands[n.op] > 1 {
		from = m.value(n.args[1])
	}
	if n.typ != Void {
		to = m.storage(n, typ.Lanes())
	}
	size, width := typ.Size(), typ.Lanes()
	if n.op == OpLoad16 || n.op == OpStore16 {
		size, width = 2, 1
	}
	near := m.near(n)
	var w access
	for l := range m.lanes {
		if !active[l] {
			continue
		}
		if m.wraps(n, l, index[l], near) {
			return
		}
		arg := n.imm
		if address != nil {
			arg = address[2*l]
		}
		data, at := m.args[arg], int(index[l])*size
		if at+size > len(data) {
			m.fail(n, "lane %d: byte %d of argument %q, which has %d", l, at, m.f.Args[arg].Name, len(data))
			return
		}
		if m.races.buffers[arg].cells != nil {
			if w.time == 0 {
				w = m.accessOf(n)
			}
			m.checkRace(n, &w, int(arg), at, size, l)
		}
		word := data[at:]
		switch n.op {
		case OpLoad:
			for e := range to[l*width:][:width] {
				to[l*width+e] = binary.LittleEndian.Uint32(word[4*e:])
			}
		case OpStore:
			for e, x := range from[l*width:][:width] {
				binary.LittleEndian.PutUint32(word[4*e:], x)
			}
		case OpLoad16:
			to[l] = uint32(binary.LittleEndian.Uint16(word))
		case OpStore16:
			binary.LittleEndian.PutUint16(word, uint16(from[l]))
		default:
			to[l] = binary.LittleEndian.Uint32(word)
			if n.op == OpAtomicAdd {
				binary.LittleEndian.PutUint32(word, to[l]+from[l])
			}
		}
		if n.ahead {
			m.early(&w, int(arg), at, size, l, to[l*width:])
		}
	}
}

// wraps reports, and fails, if an index without its numbers is none.
func (m *machine) wraps(n *Node, lane int, index, near uint32) bool {
	if index-near < 1<<31 {
		return false
	}
	m.fail(n, "lane %d: index %d, whose terms but for numbers are %d", lane, index, int32(index-near))
	return true
}

// near is the sum of the numbers of the index of an access, if that is less than NearNumbers: else 0.
func (m *machine) near(access *Node) uint32 {
	if sum, known := m.nears[access.number]; known {
		return sum
	}
	var sum uint32
	_, numbers := access.args[0].Sum()
	for _, n := range numbers {
		sum += m.value(n)[0]
	}
	if sum >= NearNumbers {
		sum = 0
	}
	m.nears[access.number] = sum
	return sum
}

// array accesses shared memory.
func (m *machine) array(n *Node, active []bool) {
	words, index := m.shared[n.imm], m.value(n.args[0])
	width := m.f.arrays[n.imm].elem.Lanes()
	last := m.value(n.args[len(n.args)-1]) // what is stored, of stores
	var to, elem []uint32
	if n.typ != Void {
		to = m.storage(n, n.typ.Lanes())
	}
	touched := width
	if n.op == OpSharedElem || n.op == OpSharedSet {
		elem, touched = m.value(n.args[1]), 1
	}
	w, stores := m.shares(n)
	near := m.near(n)
	backwards := n.op == OpSharedAdd && (m.group[0]+m.group[1]+m.group[2])%2 > 0 // the order of lanes is not defined
	for l := range m.lanes {
		if backwards {
			l = m.lanes - 1 - l
		}
		if !active[l] {
			continue
		}
		if m.wraps(n, l, index[l], near) {
			return
		}
		at := int(index[l]) * width
		if elem != nil {
			at += int(elem[l])
		}
		if at >= len(words) {
			m.fail(n, "lane %d: element %d of an array of %d", l, at, len(words))
			return
		}
		m.touch(&w, stores, int(n.imm), at, touched, l)
		switch n.op {
		case OpSharedLoad:
			copy(to[l*width:][:width], words[at:])
		case OpSharedStore:
			copy(words[at:][:width], last[l*width:])
		case OpSharedElem:
			to[l] = words[at]
		case OpSharedSet:
			words[at] = last[l]
		case OpSharedAdd:
			to[l] = words[at]
			words[at] += last[l]
		}
	}
}

// subgroup computes an operation between the active lanes of each subgroup.
func (m *machine) subgroup(n *Node, active []bool) {
	width := n.typ.Lanes()
	to := m.storage(n, width)
	lanes := make([]int, 0, m.wave)
	for first := 0; first < m.lanes; first += m.wave {
		lanes = lanes[:0]
		for l := first; l < min(first+m.wave, m.lanes); l++ {
			if active[l] {
				lanes = append(lanes, l)
			}
		}
		for e := range width {
			same := uint32(0)
			for at, l := range lanes {
				if at == 0 || !n.op.uniform() {
					same = m.across(n, lanes, at, e)
				}
				to[l*width+e] = same
			}
		}
	}
}

// uniform reports whether an operation between lanes gives all of them the same.
func (o Op) uniform() bool {
	return o == OpSubgroupAdd || o == OpSubgroupMax || o == OpSubgroupMin || o == OpSubgroupAny
}

// across returns element e of the result in the at-th of the active lanes of a subgroup.
func (m *machine) across(n *Node, lanes []int, at, e int) uint32 {
	l := lanes[at]
	var x, y []uint32
	if len(n.args) > 0 {
		x = m.value(n.args[0])
	}
	if len(n.args) > 1 {
		y = m.value(n.args[1])
	}
	base := l - l%m.wave
	fold := func(o Op, among []int) uint32 {
		sum := uint32(0)
		for i, other := range among {
			term := x[other*n.typ.Lanes()+e]
			if i == 0 {
				sum = term
			} else {
				sum = scalar(o, n.typ.Elem(), []uint32{sum, term})
			}
		}
		return sum
	}
	from := func(lane uint32) uint32 {
		if other := base + int(lane); int(lane) < m.wave && other < m.lanes {
			return x[other*n.typ.Lanes()+e]
		}
		return ^uint32(0)
	}
	truth := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	switch n.op {
	case OpSubgroupAdd:
		return fold(OpAdd, lanes)
	case OpSubgroupMax:
		return fold(OpMax, lanes)
	case OpSubgroupMin:
		return fold(OpMin, lanes)
	case OpSubgroupExclusiveAdd:
		return fold(OpAdd, lanes[:at])
	case OpSubgroupShuffle:
		return from(y[l])
	case OpSubgroupShuffleXor:
		return from(uint32(l-base) ^ y[l])
	case OpSubgroupElect:
		return truth(at == 0)
	case OpSubgroupAny:
		return fold(OpOr, lanes)
	}
	m.fail(n, "not here")
	return 0
}
