package cuda

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// fake is a driver without a device: it does what it is asked for in memory of this process, at once or, where it is
// slow, one thing behind the other on a goroutine. Its machine code is the text of the module: "inc" adds one to the
// first argument, "copy" copies the first to the second, in i32.
type fake struct {
	mu     sync.Mutex
	slow   chan func()  // what streams do, in order; nil if it is done at once
	queued atomic.Int32 // of it that is not done
	infos  []fakeInfo
	memory map[uint64][]byte  // what is allocated, by address
	links  map[uintptr][]byte // their results, which stay
	dead   [][]byte           // memory that was freed
	live   map[string]int     // objects that were made and not freed, by kind
	graphs []*fakeGraph
	texts  []string        // of modules and functions, by handle
	asked  map[uintptr]int // bytes of shared memory beyond what they declare, by function
	events map[uintptr]*fakeEvent

	capturing map[uintptr]*fakeGraph   // by stream
	frontier  map[uintptr]map[int]bool // of a capture: what the end of a stream is behind
	handles   uintptr

	calls  int
	failAt int   // the call that fails, from 1; 0: none
	fails  Error // with what; sticky errors stay
	failIn int   // the function of which each call fails; 0: none
	failed int   // the function that did
	busy   bool  // nothing ends
}

type fakeInfo struct {
	name        string
	arch        int
	memory      uint64
	free        uint64
	integrated  bool
	unsupported []uintptr // attributes that the driver does not know
}

// fakeEvent is behind nodes of a capture, or has a time.
type fakeEvent struct {
	graph   *fakeGraph
	behind  map[int]bool
	waiting atomic.Int32 // of what it was recorded behind
	at      atomic.Int64 // ns
}

// fakeGraph is what was captured.
type fakeGraph struct{ nodes []fakeNode }

type fakeNode struct {
	kernel  string
	args    []uint64
	overlap bool
	stream  uintptr
	after   map[int]bool // nodes that end before it begins
	do      func()
}

// withFake has the package use a fake driver for the test.
func withFake(t *testing.T, infos ...fakeInfo) *fake {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", os.DevNull) // nothing can be kept
	if infos == nil {
		infos = []fakeInfo{{name: "Z1", arch: 90, memory: 8 << 30, free: 7 << 30}}
	}
	f := &fake{infos: infos, memory: map[uint64][]byte{}, links: map[uintptr][]byte{}, live: map[string]int{}, asked: map[uintptr]int{},
		events: map[uintptr]*fakeEvent{}, capturing: map[uintptr]*fakeGraph{}, frontier: map[uintptr]map[int]bool{}}
	before := load
	load = func() (*library, error) { return &library{f.invoke}, nil }
	t.Cleanup(func() { load = before })
	return f
}

// slowly has streams do one thing behind the other, beside the caller.
func (f *fake) slowly(t *testing.T) {
	f.slow = make(chan func(), 1<<16)
	t.Cleanup(func() { close(f.slow) })
	go func() {
		for do := range f.slow {
			do()
			f.queued.Add(-1)
		}
	}()
}

// put has a stream do something, or the graph that it captures.
func (f *fake) put(stream uintptr, n fakeNode) {
	if g := f.capturing[stream]; g != nil {
		n.stream, n.after = stream, maps.Clone(f.frontier[stream])
		g.nodes = append(g.nodes, n)
		f.frontier[stream] = map[int]bool{len(g.nodes) - 1: true}
	} else if f.slow != nil {
		f.queued.Add(1)
		f.slow <- n.do
	} else {
		n.do()
	}
}

// stamp has an event take the time.
func (f *fake) stamp(event, stream uintptr) {
	e := f.events[event]
	begun := f.capturing[stream] != nil // a graph may run later
	if !begun {
		e.waiting.Add(1)
	}
	f.put(stream, fakeNode{kernel: "stamp", do: func() {
		e.at.Store(time.Now().UnixNano())
		if !begun {
			e.waiting.Add(-1)
		}
	}})
}

// at is what lies at an address.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

func (f *fake) invoke(function int, a []uintptr) uintptr {
	f.mu.Lock()
	defer f.mu.Unlock()
	if function == cuGetErrorName {
		return 0 // the package knows those that are tested
	}
	f.calls++
	if f.failIn != 0 && function == f.failIn {
		return uintptr(f.fails)
	}
	if f.calls == f.failAt || f.failAt > 0 && f.calls > f.failAt && slices.Contains(sticky, f.fails) {
		if f.calls == f.failAt {
			f.failed = function
		}
		return uintptr(f.fails)
	}
	return uintptr(f.do(function, a))
}

// made counts an object and returns its handle.
func (f *fake) made(kind string) uintptr {
	f.live[kind]++
	f.handles++
	return f.handles
}

func (f *fake) freed(kind string) Error {
	if f.live[kind]--; f.live[kind] < 0 {
		panic(kind + " is freed twice")
	}
	return 0
}

// stagingTest is a size that only memory of probes has; what is larger is cut to it.
const stagingTest = uintptr(8 << 20)

// staging keeps the large buffers that were freed.
var staging struct {
	sync.Mutex
	spare [][]byte
}

func (f *fake) allocate(kind string, to, bytes uintptr) Error {
	if uint64(bytes) > f.infos[0].memory {
		return outOfMemory
	}
	var b []byte
	if bytes >= stagingTest { // many tests take them
		staging.Lock()
		if n := len(staging.spare); n > 0 {
			b, staging.spare = staging.spare[n-1], staging.spare[:n-1]
		}
		staging.Unlock()
	}
	if b == nil {
		b = make([]byte, min(bytes, stagingTest)+255) // nobody writes to more
	}
	address := (uint64(uintptr(unsafe.Pointer(&b[0]))) + 255) &^ 255
	f.memory[address] = b
	f.live[kind]++
	*at[uint64](to) = address
	return 0
}

func (f *fake) release(kind string, address uintptr) Error {
	if f.memory[uint64(address)] == nil {
		panic(fmt.Sprintf("%s at %x is not allocated", kind, address))
	}
	if b := f.memory[uint64(address)]; len(b) == int(stagingTest)+255 {
		staging.Lock()
		staging.spare = append(staging.spare, b)
		staging.Unlock()
	}
	if f.slow != nil { // whoever still uses it shall see
		b := unsafe.Slice(at[byte](address), len(f.memory[uint64(address)])-255)
		for i := range b {
			b[i] = 0xa5
		}
		f.dead = append(f.dead, f.memory[uint64(address)])
	}
	delete(f.memory, uint64(address))
	return f.freed(kind)
}

// attribute is a CUdevice_attribute of a device.
func (f *fake) attribute(to, number, device uintptr) Error {
	i := &f.infos[device]
	if slices.Contains(i.unsupported, number) {
		return 1 // CUDA_ERROR_INVALID_VALUE
	}
	integrated := 0
	if i.integrated {
		integrated = 1
	}
	v := map[uintptr]int{8: 48 << 10, 13: 1980000, 16: 132, 18: integrated, 33: 0x1b, 34: 0, 38: 50 << 20, 75: i.arch / 10, 76: i.arch % 10, 97: 227 << 10, 139: 0x2335<<16 | 0x10de}
	*at[int32](to) = int32(v[number])
	return 0
}

func (f *fake) do(function int, a []uintptr) Error {
	switch function {
	case cuDeviceGetCount:
		*at[int32](a[0]) = int32(len(f.infos))
	case cuDriverGetVersion:
		*at[int32](a[0]) = 13000
	case cuDeviceGet:
		*at[int32](a[0]) = int32(a[1])
	case cuDeviceGetName:
		copy(unsafe.Slice(at[byte](a[0]), a[1]), f.infos[a[2]].name)
	case cuDeviceGetUuid:
		*at[byte](a[0]) = byte(a[1]) + 1
	case cuDeviceTotalMem:
		*at[uint64](a[0]) = f.infos[a[1]].memory
	case cuDeviceGetAttribute:
		return f.attribute(a[0], a[1], a[2])
	case cuDevicePrimaryCtxRetain:
		*at[uintptr](a[0]) = f.made("context")
	case cuDevicePrimaryCtxRelease:
		return f.freed("context")
	case cuMemGetInfo:
		*at[uint64](a[0]), *at[uint64](a[1]) = f.infos[0].free, f.infos[0].memory
	case cuMemAlloc:
		return f.allocate("memory", a[0], a[1])
	case cuMemFree:
		return f.release("memory", a[0])
	case cuMemHostAlloc:
		return f.allocate("host memory", a[0], a[1])
	case cuMemFreeHost:
		return f.release("host memory", a[0])
	case cuMemcpyAsync:
		to, from, bytes := a[0], a[1], a[2] // a is the caller's
		f.put(a[3], fakeNode{kernel: "memcpy", do: func() { copy(unsafe.Slice(at[byte](to), bytes), unsafe.Slice(at[byte](from), bytes)) }})
	case cuLinkCreate:
		*at[uintptr](a[3]) = f.made("link")
	case cuLinkAddData:
		f.links[a[0]] = slices.Clone(unsafe.Slice(at[byte](a[2]), a[3])) // with the zero at its end
	case cuLinkComplete:
		code := f.links[a[0]]
		*at[uintptr](a[1]), *at[uintptr](a[2]) = uintptr(unsafe.Pointer(&code[0])), uintptr(len(code))
	case cuLinkDestroy:
		return f.freed("link")
	case cuModuleLoadData:
		f.texts = append(f.texts, goString(at[byte](a[1])))
		*at[uintptr](a[0]) = uintptr(len(f.texts))
	case cuModuleGetFunction:
		*at[uintptr](a[0]) = a[1]
	case cuFuncSetAttribute:
		const maxDynamicShared = 8 // CUfunction_attribute
		if a[1] != maxDynamicShared {
			return 1 // CUDA_ERROR_INVALID_VALUE
		}
		f.asked[a[0]] = int(a[2])
	case cuStreamCreate:
		*at[uintptr](a[0]) = f.made("stream")
	case cuStreamDestroy:
		return f.freed("stream")
	case cuStreamBeginCapture:
		f.capturing[a[0]] = &fakeGraph{}
		delete(f.frontier, a[0])
	case cuStreamEndCapture:
		g := f.capturing[a[0]]
		f.graphs = append(f.graphs, g)
		maps.DeleteFunc(f.capturing, func(_ uintptr, of *fakeGraph) bool { return of == g })
		f.live["graph"]++
		*at[uintptr](a[1]) = uintptr(len(f.graphs))
	case cuGraphDestroy:
		return f.freed("graph")
	case cuGraphInstantiate:
		f.live["executable graph"]++
		*at[uintptr](a[0]) = a[1]
	case cuGraphExecDestroy:
		return f.freed("executable graph")
	case cuGraphLaunch:
		for _, n := range f.graphs[a[0]-1].nodes {
			f.put(a[1], n)
		}
	case cuLaunchKernelEx:
		f.launch(at[launchConfig](a[0]), f.texts[a[1]-1], a[2])
	case cuEventCreate:
		*at[uintptr](a[0]) = f.made("event")
		f.events[f.handles] = &fakeEvent{}
	case cuEventDestroy:
		delete(f.events, a[0])
		return f.freed("event")
	case cuEventRecord:
		if e := f.events[a[0]]; f.capturing[a[1]] != nil {
			e.graph, e.behind = f.capturing[a[1]], maps.Clone(f.frontier[a[1]])
		} else {
			f.stamp(a[0], a[1])
		}
	case cuEventRecordWithFlags:
		const external = 1 // in graphs, and only there
		if (a[2] == external) != (f.capturing[a[1]] != nil) {
			return 1 // CUDA_ERROR_INVALID_VALUE
		}
		f.stamp(a[0], a[1])
	case cuStreamWaitEvent:
		e := f.events[a[1]]
		if f.capturing[a[0]] == nil { // the stream joins the capture
			delete(f.frontier, a[0])
		}
		f.capturing[a[0]] = e.graph
		if f.frontier[a[0]] == nil {
			f.frontier[a[0]] = map[int]bool{}
		}
		maps.Copy(f.frontier[a[0]], e.behind)
	case cuStreamQuery:
		if f.busy || f.queued.Load() != 0 {
			return notReady
		}
	case cuEventQuery:
		if f.busy || f.events[a[0]].waiting.Load() != 0 {
			return notReady
		}
	case cuEventElapsedTime:
		*at[float32](a[0]) = float32(f.events[a[2]].at.Load()-f.events[a[1]].at.Load()) / 1e6
	}
	return 0
}

// launch runs a kernel, or keeps it for a graph.
func (f *fake) launch(c *launchConfig, text string, params uintptr) {
	name, _, _ := strings.Cut(text, "\n")
	count := map[string]int{"inc": 1, "copy": 2}[name]
	var args []uint64
	for i := range count {
		args = append(args, **at[*uint64](params + uintptr(i)*unsafe.Sizeof(params)))
	}
	do := func() {
		switch name {
		case "inc":
			*at[int32](uintptr(args[0]))++
		case "copy":
			*at[int32](uintptr(args[1])) = *at[int32](uintptr(args[0]))
		}
	}
	f.put(c.stream, fakeNode{kernel: name, args: args, overlap: c.count > 0, do: do})
}

// before reports whether node i has ended when j begins.
func (g *fakeGraph) before(i, j int) bool {
	for k := range g.nodes[j].after {
		if k == i || g.before(i, k) {
			return true
		}
	}
	return false
}

// leaked lists what is still there.
func (f *fake) leaked() []string {
	var all []string
	for kind, n := range f.live {
		if n != 0 {
			all = append(all, fmt.Sprintf("%d %s", n, kind))
		}
	}
	slices.Sort(all)
	return all
}
