package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/cpu/native"
)

// spin is how long a thread looks for more work before it sleeps: bursts follow each other
// faster than a thread wakes up.
const spin = 50 * time.Microsecond

// fewThreads are those whose calls of the driver block. With 16, which take turns to begin and to end a call, gopher
// was up to 14 % slower so.
const fewThreads = 4

// team is the threads that run tables: that of the caller, and others that wait for it.
type team struct {
	driver  *native.Driver
	control *native.Control // what generated code reads
	turns   uint64          // of Wait that take as long as spin
	shared  *native.Memory
	threads []*thread
	workers sync.WaitGroup

	mu   sync.Mutex
	idle *sync.Cond // busy has become less
	job  job
	busy int // workers that run a job
	quit bool
}

// job is a piece of work: passes [first, end) over a table.
type job struct {
	program    *program
	first, end uint64
}

// run does a thread's part.
func (j job) run(t *team, th *thread) bool {
	return t.driver.Run(th.stack, &j.program.Program, j.first, j.end, th.number, th.scratch, t.control)
}

// thread is what one thread has of its own.
type thread struct {
	number  int
	stack   *native.Stack
	scratch uintptr
	near    []int // the processors of its node; nil: it may run anywhere
	asleep  atomic.Bool
	wake    chan struct{}
}

// newTeam starts n threads, one of which is the caller's, with so many bytes of scratch memory each. Where there are
// nodes, the others stay on theirs.
func newTeam(n int, on nodes, scratch int64) (*team, error) {
	driver, err := native.TheDriver()
	if err != nil {
		return nil, err
	}
	if n > 1 && n <= fewThreads {
		driver = driver.Blocking()
	}
	t := &team{driver: driver}
	t.idle = sync.NewCond(&t.mu)
	const line = 128 // two threads' memory shares no line, nor the one that is fetched with it
	scratch = (scratch + line - 1) / line * line
	if scratch > native.HugePage/2 { // then it is to fill the second cache, in which small pages from anywhere would get into each other's way
		scratch = max(scratch, native.HugePage)
	}
	if t.shared, err = native.AllocMemory(int64(unsafe.Sizeof(native.Control{})) + line + scratch*int64(n)); err != nil {
		return nil, err
	}
	base := unsafe.Pointer(unsafe.SliceData(t.shared.Bytes))
	t.control = (*native.Control)(base)
	t.control.Init()
	at := (uintptr(base) + unsafe.Sizeof(*t.control) + line - 1) &^ (line - 1)
	where := on.of(n)
	for i := range n {
		stack, err := native.NewStack()
		if err != nil {
			t.close()
			return nil, err
		}
		th := &thread{number: i, stack: stack, scratch: at + uintptr(i)*uintptr(scratch), wake: make(chan struct{}, 1)}
		if on != nil && i > 0 {
			th.near = on[where[i]]
		}
		t.threads = append(t.threads, th)
	}
	t.calibrate()
	for _, th := range t.threads[1:] {
		t.workers.Go(func() { t.work(th) })
	}
	return t, nil
}

// calibrate finds out how many turns of waiting take as long as spin.
func (t *team) calibrate() {
	const turns = 1000
	began := time.Now()
	t.driver.Wait(t.threads[0].stack, t.control, 0, turns)
	t.turns = uint64(turns*spin/max(1, time.Since(began))) + 1
}

// run makes passes over a table on all threads. It is for one goroutine. It returns false if
// stop ended it.
func (t *team) run(j job) bool {
	t.post(j)
	return j.run(t, t.threads[0])
}

// post gives the other threads a job. One that is late with the job before sees that all is done.
func (t *team) post(j job) {
	t.mu.Lock()
	t.job = j
	atomic.AddUint64(&t.control.Posted, 1)
	t.mu.Unlock()
	for _, th := range t.threads[1:] {
		if th.asleep.CompareAndSwap(true, false) {
			th.wake <- struct{}{}
		}
	}
}

// work is what the other threads do. Each stays on a thread of the system, which keeps its caches.
func (t *team) work(th *thread) {
	runtime.LockOSThread()
	if th.near == nil {
		defer runtime.UnlockOSThread()
	} else { // the thread of the system ends with this one: nobody else shall be pinned
		pin(th.near)
	}
	seen := uint64(0)
	for {
		if t.driver.Wait(th.stack, t.control, seen, t.turns) == seen {
			th.sleep(&t.control.Posted, seen)
			continue
		}
		t.mu.Lock()
		j, quit := t.job, t.quit
		seen = atomic.LoadUint64(&t.control.Posted)
		t.busy++
		t.mu.Unlock()
		if !quit && j.program != nil {
			j.run(t, th)
		}
		t.mu.Lock()
		t.busy--
		t.idle.Broadcast()
		t.mu.Unlock()
		if quit {
			return
		}
	}
}

// sleep waits until a job is posted.
func (th *thread) sleep(posted *uint64, seen uint64) {
	th.asleep.Store(true)
	if atomic.LoadUint64(posted) != seen && th.asleep.CompareAndSwap(true, false) {
		return // it was posted meanwhile, and nobody wakes this thread
	}
	<-th.wake
}

// stop ends the job at hand between two of its steps; run returns false, unless it was done.
func (t *team) stop() { atomic.StoreUint64(&t.control.Stop, 1) }

// resume comes between a job that stop has ended and the next.
func (t *team) resume() {
	t.leave()
	atomic.StoreUint64(&t.control.Stop, 0)
}

// leave waits until no thread looks at the table of the last job any more.
func (t *team) leave() {
	t.post(job{})
	t.mu.Lock()
	for t.busy > 0 {
		t.idle.Wait()
	}
	t.mu.Unlock()
}

// close ends the threads.
func (t *team) close() {
	t.mu.Lock()
	t.quit = true
	t.mu.Unlock()
	if len(t.threads) > 0 {
		t.post(job{})
	}
	t.workers.Wait()
	for _, th := range t.threads {
		th.stack.Free()
	}
	t.threads = nil
	t.shared.Free()
}
