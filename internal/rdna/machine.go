package rdna

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// Kernel is a program and what a launch of RADV puts into registers for it. Code has the instructions and behind them
// the tables that they read.
type Kernel struct {
	Code         []uint32
	Rsrc1, Rsrc2 uint32 // COMPUTE_PGM_RSRC1 and 2
	Wave         int    // lanes of a wave
	LDS          int    // bytes of a workgroup
	Scratch      int    // bytes of a wave

	// The dwords of push constants that lie in scalar registers: Inline has a bit for each of the first 64, and they
	// follow one another from register InlineAt on. Of the others the code loads those that it needs, from an address
	// whose low half is in register PushAt and whose high half it knows. GridAt is the first of three registers with
	// the size of the grid. SetAt has the low half of the address of the first set of descriptors, which kernels of
	// others have. -1 is none.
	Inline                          uint64
	InlineAt, PushAt, GridAt, SetAt int
}

// Buffer is memory that a launch may use.
type Buffer struct {
	Name     string
	Address  uint64 // where it lies; 0 leaves that to the machine
	Data     []byte
	Writable bool
}

// Launch is a grid of workgroups.
type Launch struct {
	Gen       Gen
	Kernel    *Kernel
	Program   *Program // of Kernel's code, if it is decoded already
	Grid      [3]int
	Workgroup int // lanes, all along x
	// Args are the buffers, by the order of their addresses in the push constants unless Push has those. Buffers that
	// have addresses do not overlap.
	Args []*Buffer
	Push []uint64
	// Params are the push constants of a kernel that finds its buffers by descriptors, which Args are then.
	Params []byte
	// Ahead says that the kernel loads from buffers what others may be storing, and uses nothing of it then: such loads
	// return noise.
	Ahead bool
	// Seen, if there is one, has an entry for each word of the code, and gets those of instructions that have had an
	// effect: of waits, those that ended an access; of barriers and all others, those that were executed.
	Seen []bool
	// Limit is how many instructions the launch takes at most; 0 is a thousand million.
	Limit int64
}

// Where things lie: a buffer has a window of addresses of its own unless the launch says where it lies, and begins so
// that most cross a multiple of 4 GiB. The high half of the address of the push constants is what RADV's null device
// puts into code.
const (
	window   = 1 << 40
	inWindow = 0xfffff000
	codeBase = 0x7e_0000_0000_00
	pushBase = 0xffff_8000_0000_1000
	setBase  = pushBase + 1<<20
)

// Address is a place for buffer n of a launch.
func Address(n int) uint64 { return uint64(n+1)*window + inWindow }

// machine runs a launch.
type machine struct {
	*Launch
	program *Program
	push    []byte
	set     []byte // of descriptors
	code    []byte
	buffers []region // each once
	last    int      // the buffer of the last access
	counts  Counts
	left    int64 // instructions
	time    int64
	groups  []*groupOrder
	random  uint64

	noise   []uint32 // what registers begin with, at some place of it
	classes [classes]int64

	// What workgroups have one after the other.
	idle   []*wave
	shared []byte
	cells  []sharedCell
}

// region is a buffer where it lies.
type region struct {
	*Buffer
	base   uint64
	shadow shadow
}

// descriptor describes a buffer: where it lies and its bytes.
func descriptor(r region) []byte {
	d := binary.LittleEndian.AppendUint64(nil, r.base)
	return binary.LittleEndian.AppendUint64(d, uint64(len(r.Data)))
}

// group is a workgroup under way.
type group struct {
	m      *machine
	at     [3]int
	number int
	waves  []*wave
	shared []byte
	order  *groupOrder
	cells  []sharedCell
}

// wave is a wave under way.
type wave struct {
	g     *group
	m     *machine
	id    int // in the workgroup
	lanes int
	all   uint64
	prog  *Program
	pc    int

	v    []uint32 // of register r and lane l at r*lanes+l
	s    [scalars]uint32
	exec uint64
	scc  bool

	mode              uint32 // as in the mode register: rounding in bits 0 to 3, denormals in 4 to 7
	flush32, rtz16    bool
	buf               [4]lanes
	words             [5][64]uint32 // operands and results of quick instructions
	out               lanes
	scratch           []byte
	queues            [counters][]pending
	spans             [][]span // of accesses that have ended, for others
	waiting           regset
	open              int      // accesses in the queues
	where             [2]lanes // addresses
	signals, barriers int      // that the wave has signalled, and has waited for
	issued, done      int      // stores to buffers, and those that a wait has seen to the end
	doneAt            []int    // done at each signal
	invalidated       int64    // when the wave's caches forgot what they held
	passed            int64    // when it passed its last barrier
	ended             bool
	fault             *Fault
}

// lanes are values of all lanes.
type lanes [64]uint64

// Run executes a launch. The error is a *Fault if the program is at fault.
func Run(l *Launch) (Counts, error) {
	m := &machine{Launch: l, program: l.Program, last: -1, left: l.Limit, random: 0x9e3779b97f4a7c15}
	if m.program == nil {
		p, err := Decode(l.Gen, l.Kernel.Wave, l.Kernel.Code)
		if err != nil {
			return Counts{}, err
		}
		m.program = p
	}
	if m.left == 0 {
		m.left = 1e9
	}
	if l.Workgroup < 1 || l.Workgroup > 1024 {
		return Counts{}, fmt.Errorf("a workgroup of %d lanes", l.Workgroup)
	}
	m.code = make([]byte, 0, 4*len(l.Kernel.Code))
	for _, w := range l.Kernel.Code {
		m.code = binary.LittleEndian.AppendUint32(m.code, w)
	}
	m.noise = make([]uint32, m.program.vectors*l.Kernel.Wave+64)
	for i := range m.noise {
		m.noise[i] = m.garbage()
	}
	for _, b := range l.Args {
		at := m.buffer(b)
		m.set = append(m.set, descriptor(m.buffers[at])...)
		if l.Push == nil && l.Params == nil {
			m.push = binary.LittleEndian.AppendUint64(m.push, m.buffers[at].base)
		}
	}
	m.push = append(m.push, l.Params...)
	for _, at := range l.Push {
		m.push = binary.LittleEndian.AppendUint64(m.push, at)
	}
	for z := range l.Grid[2] {
		for y := range l.Grid[1] {
			for x := range l.Grid[0] {
				if err := m.group([3]int{x, y, z}); err != nil {
					return m.total(), err
				}
			}
		}
	}
	return m.total(), nil
}

// buffer returns the number of a buffer.
func (m *machine) buffer(b *Buffer) int {
	for i, other := range m.buffers {
		if other.Buffer == b {
			return i
		}
	}
	base := b.Address
	if base == 0 {
		base = Address(len(m.buffers))
	}
	m.buffers = append(m.buffers, region{Buffer: b, base: base})
	return len(m.buffers) - 1
}

// garbage is what memory and registers hold that nobody has written.
func (m *machine) garbage() uint32 {
	m.random ^= m.random << 13
	m.random ^= m.random >> 7
	m.random ^= m.random << 17
	// NaNs in both formats, so that sums show them; the rest differs.
	return uint32(m.random) | 0x7fc07e00
}

// group runs a workgroup to its end.
func (m *machine) group(at [3]int) error {
	if m.shared == nil {
		m.shared, m.cells = make([]byte, m.Kernel.LDS), make([]sharedCell, m.Kernel.LDS)
	}
	g := &group{m: m, at: at, number: len(m.groups), shared: m.shared, cells: m.cells, order: &groupOrder{seen: -1}}
	m.groups = append(m.groups, g.order)
	for i := 0; i+4 <= len(g.shared); i += 4 {
		x := m.garbage()
		g.shared[i], g.shared[i+1], g.shared[i+2], g.shared[i+3] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
	}
	size := m.Kernel.Wave
	for first := 0; first < m.Workgroup; first += size {
		g.waves = append(g.waves, g.wave(len(g.waves), min(size, m.Workgroup-first)))
	}
	g.order.published = make([]int, len(g.waves))
	for {
		running, signalled := 0, 0
		for _, w := range g.waves {
			if w.ended {
				continue
			}
			w.run()
			if w.fault != nil {
				return w.fault
			}
			if !w.ended {
				running++
			}
		}
		if running == 0 {
			m.idle = append(m.idle, g.waves...)
			return nil
		}
		// All that run wait now, for as many signals as the barrier wants.
		least := -1
		for _, w := range g.waves {
			if !w.ended && (least < 0 || w.signals < least) {
				least = w.signals
			}
		}
		for _, w := range g.waves {
			if !w.ended && w.barriers < least {
				signalled++
			}
		}
		if signalled != running {
			for _, w := range g.waves {
				if !w.ended {
					w.failAt(w.prog.insts[w.pc], BadBarrier, "waits for a barrier that not all waves reach")
					return w.fault
				}
			}
		}
		for _, w := range g.waves {
			if !w.ended {
				w.barriers, w.passed = w.barriers+1, m.time
				w.pc += len(w.prog.insts[w.pc].words)
			}
		}
	}
}

// wave starts a wave of which so many lanes are on.
func (g *group) wave(id, on int) *wave {
	m, k := g.m, g.m.Kernel
	w := &wave{v: make([]uint32, m.program.vectors*k.Wave)}
	if last := len(m.idle) - 1; last >= 0 {
		w, m.idle = m.idle[last], m.idle[:last]
	}
	*w = wave{g: g, m: m, id: id, lanes: k.Wave, prog: m.program, all: ^uint64(0) >> (64 - k.Wave), exec: ^uint64(0) >> (64 - on), invalidated: -1,
		v: w.v, spans: w.spans, scratch: w.scratch}
	copy(w.v, m.noise[m.garbage()%64:])
	for i := range w.s {
		w.s[i] = m.garbage()
	}
	w.setMode(k.Rsrc1 >> 12 & 255)
	for l := range on {
		w.v[l] = uint32(id*k.Wave + l)
	}
	if k.InlineAt >= 0 {
		at := k.InlineAt
		for i := range 64 {
			if k.Inline>>i&1 == 1 {
				if 4*i+4 <= len(m.push) && at < scalars {
					w.s[at] = little(m.push[4*i:], 4)
				}
				at++
			}
		}
	}
	if k.PushAt >= 0 {
		w.s[k.PushAt] = uint32(pushBase & 0xffffffff)
	}
	if k.SetAt >= 0 {
		w.s[k.SetAt] = uint32(setBase & 0xffffffff)
	}
	if k.GridAt >= 0 {
		for i, n := range m.Grid {
			w.s[k.GridAt+i] = uint32(n)
		}
	}
	w.whereabouts()
	w.scratch = slices.Grow(w.scratch[:0], k.Scratch)[:k.Scratch]
	for i := range w.scratch {
		w.scratch[i] = byte(m.garbage())
	}
	m.counts.Wave++
	return w
}

// whereabouts puts the numbers of workgroup and wave where the generation has them.
func (w *wave) whereabouts() {
	const ttmp7, ttmp8, ttmp9 = 115, 116, 117
	rsrc2, at := w.m.Kernel.Rsrc2, w.g.at
	next := int(rsrc2 >> 1 & 31) // behind the registers of the user
	if w.m.Gen == GFX12 {
		w.s[ttmp9], w.s[ttmp7], w.s[ttmp8] = uint32(at[0]), uint32(at[1]|at[2]<<16), uint32(w.id)<<25
	} else {
		for i := range 3 {
			if rsrc2>>(7+i)&1 == 1 {
				w.s[next] = uint32(at[i])
				next++
			}
		}
	}
	if rsrc2>>10&1 == 1 {
		waves := (w.m.Workgroup + w.lanes - 1) / w.lanes
		w.s[next] = uint32(waves)
		if w.m.Gen == GFX11 {
			w.s[next] |= uint32(w.id) << 20
		}
	}
}

// setMode sets rounding and denormals.
func (w *wave) setMode(mode uint32) {
	w.mode = mode
	w.flush32, w.rtz16 = mode>>4&3 != 3, mode>>2&3 == 3
}

// run executes the wave until it waits for a barrier, ends, or is at fault.
func (w *wave) run() {
	for !w.ended && w.fault == nil {
		in := w.prog.insts[w.pc]
		if in == nil {
			w.fault = &Fault{Kind: Unsupported, PC: 4 * w.pc, Group: w.g.at, Wave: w.id, What: "a jump to where no instruction was decoded"}
			return
		}
		if w.m.left--; w.m.left < 0 {
			w.fail(in, Endless, "too many instructions")
			return
		}
		w.m.time++
		w.m.classes[in.row.class]++
		if w.open > 0 {
			w.checkWaited(in)
		}
		if w.m.Seen != nil && in.row.class != waits {
			w.m.Seen[in.PC] = true
		}
		if _, is := in.row.fn.(barrierWait); is {
			return
		}
		if _, is := in.row.fn.(barrierBoth); is {
			w.signal()
			return
		}
		w.pc += len(in.words)
		in.run(w, in)
	}
}

// total adds up what was counted by class.
func (m *machine) total() Counts {
	c := &m.counts
	c.Slow, c.Matrix = m.classes[slowOp], m.classes[matrixOp]
	c.Waits, c.Vector, c.Scalar = m.classes[waits], m.classes[vectorOp]+c.Slow, m.classes[scalarOp]
	c.Instructions = m.classes[other] + c.Vector + c.Scalar + c.Matrix
	return *c
}

// fail ends the run with a fault of an instruction.
func (w *wave) fail(in *Inst, kind Hazard, format string, args ...any) {
	if w.fault == nil {
		w.failAt(in, kind, format, args...)
	}
}

func (w *wave) failAt(in *Inst, kind Hazard, format string, args ...any) {
	w.fault = &Fault{Kind: kind, PC: 4 * in.PC, Text: in.String(), Group: w.g.at, Wave: w.id, What: fmt.Sprintf(format, args...)}
}

func (w *wave) vcc() uint64 { return w.scalar(vccLo, w.lanes/32) }

// scalar reads one scalar register or two.
func (w *wave) scalar(code, n int) uint64 {
	x := uint64(w.scalar32(code))
	if n == 2 && code != nullReg && code != sccCode {
		x |= uint64(w.scalar32(code+1)) << 32
	}
	return x
}

func (w *wave) scalar32(code int) uint32 {
	switch code {
	case nullReg:
		return 0
	case execLo:
		return uint32(w.exec)
	case execLo + 1:
		return uint32(w.exec >> 32)
	case sccCode:
		return uint32(bit(w.scc))
	}
	return w.s[code]
}

// setScalar writes one scalar register or two.
func (w *wave) setScalar(code, n int, x uint64) {
	if code == nullReg {
		return
	}
	w.setScalar32(code, uint32(x))
	if n == 2 {
		w.setScalar32(code+1, uint32(x>>32))
	}
}

func (w *wave) setScalar32(code int, x uint32) {
	switch code {
	case execLo:
		w.exec = (w.exec&^0xffffffff | uint64(x)) & w.all
	case execLo + 1:
		w.exec = (w.exec&0xffffffff | uint64(x)<<32) & w.all
	default:
		w.s[code] = x
	}
}

// register is a register of lanes.
func (w *wave) register(code int) []uint32 {
	r := code - firstVector
	return w.v[r*w.lanes : (r+1)*w.lanes]
}

func firstLane(x uint64) int { return bits.TrailingZeros64(x) }

// little reads n bytes as a number.
func little(b []byte, n int) (x uint32) {
	for i := range n {
		x |= uint32(b[i]) << (8 * i)
	}
	return x
}
