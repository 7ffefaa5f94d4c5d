package engine_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/cache"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/keep"
)

// openKept opens a folder with a key of the test's own.
func openKept(t *testing.T, dir string, most int64, lines *[]string) *keep.Store {
	t.Helper()
	var mu sync.Mutex // pieces are read side by side
	s, err := keep.Open(dir, most, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		*lines = append(*lines, line)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKeptOverRestarts: behind a restart a prompt goes on from what the engine before it kept, and has the answer that
// it has without; not one of another owner, of a plan with other cuts, or of what is damaged. Models with recurrent
// state or windows go on where a tail is kept.
func TestKeptOverRestarts(t *testing.T) {
	for i, k := range kinds {
		if testing.Short() && !k.pages && k.name != "both" { // a folder waits for the disk
			continue
		}
		t.Run(k.name, func(t *testing.T) { testKeptOverRestarts(t, i) })
	}
}

func testKeptOverRestarts(t *testing.T, kind int) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "kept")
	var lines []string
	store := keep.Of(nil, openKept(t, dir, 1<<20, &lines), "plan")
	first := engine.Request{Prompt: prompt(1, 900), Max: 8, TopLogprobs: -1, IgnoreEOG: true}
	fork, next := first, first
	fork.Prompt = slices.Concat(first.Prompt[:500], prompt(2, 100))
	next.Prompt = slices.Concat(first.Prompt, prompt(3, 50))
	k := kinds[kind]
	tails := k.recurrent || k.rings
	run := func(itl int, r engine.Request) (cached int) {
		bubble(t, func(t *testing.T) {
			p := kindPlan(2, k.recurrent, k.rings, k.pages)
			o := engine.Options{Keeper: store}
			if itl > 0 {
				o.ITL = engine.Unhurried
			}
			e, err := engine.New(p, newFake(p), fakeTokenizer(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			o.Keeper = nil
			got, none := ask(context.Background(), e, r), alone(p, o, false, r)
			if got.err != nil || got.text != none.text {
				t.Errorf("%q, want %q, %v", got.text, none.text, got.err)
			}
			cached = got.done.Usage.Cached
			if n := e.Stats().RestoredTokens; n != int64(cached) {
				t.Errorf("%d tokens are found, %d restored", cached, n)
			}
		})
		return cached
	}
	owned := first
	owned.Owner = "a"
	forked := 448
	if tails {
		forked = 0 // none ends there
	}
	for i, c := range []struct {
		itl  int
		r    engine.Request
		want int
	}{{0, first, 0}, {0, first, 896}, {0, fork, forked}, {0, fork, 576}, {0, owned, 0}, {1, first, 0}, {1, first, 896}, {0, owned, 896}, {0, next, 896}} {
		if have := run(c.itl, c.r); have != c.want {
			t.Errorf("run %d: %d tokens are found, want %d", i, have, c.want)
		}
	}
	if len(lines) > 0 {
		t.Error(lines)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 14 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		name := filepath.Join(dir, f.Name())
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have := run(0, first); have != 0 || len(lines) == 0 || !tails && len(lines) != 14 { // its pieces of 64 tokens
		t.Errorf("%d tokens are found of damaged files; %q", have, lines)
	}
	dropped := len(lines)
	if have := run(0, first); have != 896 || len(lines) != dropped {
		t.Errorf("%d tokens are found of what was written anew; %q", have, lines[dropped:])
	}
}

// TestWhatIsNotKept: of a model nothing is kept if a tail is too large for a file.
func TestWhatIsNotKept(t *testing.T) {
	for _, k := range kinds {
		p := kindPlan(2, k.recurrent, k.rings, k.pages)
		if err := engine.Keeps(p); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
		for _, r := range slices.Concat(p.Memory.KV, p.Memory.State) {
			if r.Name != "rows" {
				r.Kept.RowBytes = 1 << 30
			}
		}
		if err := engine.Keeps(p); (err == nil) != (!k.recurrent && !k.rings) {
			t.Errorf("%s with large tails: %v", k.name, err)
		}
	}
}

// A slowKeeper takes a second for each piece, and does not answer for one of them before it is told to.
type slowKeeper struct {
	engine.Keeper
	stuck    string
	over     chan struct{}
	mu       sync.Mutex
	now, max int
}

func (k *slowKeeper) Read(name string, bytes int64) []byte {
	k.mu.Lock()
	k.now++
	k.max = max(k.max, k.now)
	k.mu.Unlock()
	if time.Sleep(time.Second); name == k.stuck {
		<-k.over
	}
	k.mu.Lock()
	k.now--
	k.mu.Unlock()
	return k.Keeper.Read(name, bytes)
}

// memoryKeeper keeps all in memory, and in which order it came.
type memoryKeeper struct {
	mu    sync.Mutex
	data  map[string][]byte
	names []string
	used  map[time.Duration][]string
}

// newMemoryKeeper has what another has; it may be nil.
func newMemoryKeeper(of *memoryKeeper) *memoryKeeper {
	k := &memoryKeeper{data: map[string][]byte{}, used: map[time.Duration][]string{}}
	if of != nil {
		of.mu.Lock()
		defer of.mu.Unlock()
		maps.Copy(k.data, of.data)
		k.names = slices.Clone(of.names)
	}
	return k
}

func (k *memoryKeeper) Has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.data[name] != nil
}

func (k *memoryKeeper) Read(name string, bytes int64) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if data := k.data[name]; int64(len(data)) == bytes {
		return slices.Clone(data)
	}
	return nil
}

func (k *memoryKeeper) Write(name string, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data[name], k.names = slices.Clone(data), append(k.names, name)
}

func (k *memoryKeeper) Use(names []string, ago time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used[ago] = slices.Clone(names)
}

// TestSlowKeeper: pieces are read side by side, and one that does not come is computed; until it comes nobody waits for
// another one.
func TestSlowKeeper(t *testing.T) {
	bubble(t, func(t *testing.T) {
		kept := newMemoryKeeper(nil)
		p := fakePlan(1, 4096, false)
		start := func(k engine.Keeper) *engine.Engine {
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: k})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		requests := make([]engine.Request, 2)
		for i := range requests {
			requests[i] = engine.Request{Prompt: prompt(i, 2600), Max: 8, TopLogprobs: -1, IgnoreEOG: true}
		}
		e := start(kept)
		for _, r := range requests {
			ask(t.Context(), e, r)
			time.Sleep(time.Second)
		}
		e.Close()
		slow := &slowKeeper{Keeper: kept, stuck: kept.names[3], over: make(chan struct{})}
		e = start(slow)
		defer e.Close()
		// Of 40 pieces one is waited for two seconds. Those that were begun beside it come; five more are not read.
		for i, c := range []struct {
			request, cached int
			least, most     time.Duration
		}{{0, 64 * 34, 3 * time.Second, 4 * time.Second}, {1, 0, 0, time.Second}, {0, 64 * 40, 2 * time.Second, 3 * time.Second}} {
			if i == 2 {
				close(slow.over)
				time.Sleep(time.Second)
			}
			r := requests[c.request]
			want, began := alone(p, engine.Options{}, false, r), time.Now()
			got := ask(t.Context(), e, r)
			took := time.Since(began)
			if got.err != nil || got.text != want.text || got.done.Usage.Cached != c.cached {
				t.Errorf("request %d: %q, %v, %d cached; want %q, %d", i, got.text, got.err, got.done.Usage.Cached, want.text, c.cached)
			}
			if took < c.least || took > c.most {
				t.Errorf("request %d takes %v", i, took)
			}
		}
		if slow.max != 32 {
			t.Errorf("%d pieces are read at once", slow.max)
		}
	})
}

// A lostKeeper says that it has all, and has nothing.
type lostKeeper struct{}

func (lostKeeper) Has(string) bool             { return true }
func (lostKeeper) Read(string, int64) []byte   { return nil }
func (lostKeeper) Write(string, []byte)        {}
func (lostKeeper) Use([]string, time.Duration) {}

// TestReadAhead: few large pieces are read at once, and many small ones: up to 256 MiB ahead of the one wanted next.
func TestReadAhead(t *testing.T) {
	for _, c := range []struct{ rowBytes, want int }{{4 << 10, 32}, {128 << 10, 32}, {256 << 10, 17}, {1 << 20, 5}, {4 << 20, 2}, {16 << 20, 2}} {
		bubble(t, func(t *testing.T) {
			p := fakePlan(1, 4096, false)
			p.Program.Globals[0].Type = ir.MakeType(ir.F32, 1, 4096, ir.Dim(c.rowBytes/4))
			slow := &slowKeeper{Keeper: lostKeeper{}}
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: slow})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			r := engine.Request{Prompt: prompt(1, 2600), Max: 3, TopLogprobs: -1, IgnoreEOG: true}
			if got, want := ask(t.Context(), e, r), alone(p, engine.Options{}, false, r); got.err != nil || got.text != want.text {
				t.Errorf("%q, want %q, %v", got.text, want.text, got.err)
			}
			if slow.max != c.want {
				t.Errorf("of pieces of %d KiB %d are read at once, want %d", 64*c.rowBytes>>10, slow.max, c.want)
			}
		})
	}
}

// TestKeptInMemory: what a slot holds no more is found in memory, with the bits that reading it again would give, by
// its owner alone; the stats tell how much there is.
func TestKeptInMemory(t *testing.T) {
	for _, k := range kinds {
		bubble(t, func(t *testing.T) {
			p := kindPlan(1, k.recurrent, k.rings, k.pages)
			parts := 18
			if k.recurrent || k.rings {
				parts += 3 // a tail of each
			}
			m := keep.NewMemory(1 << 20)
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: keep.Of(m, nil, "plan")})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			first := engine.Request{Prompt: prompt(1, 400), Max: 8, TopLogprobs: -1, IgnoreEOG: true}
			other, owned := first, first
			other.Prompt, owned.Owner = prompt(2, 400), "a"
			restored := int64(0)
			for i, c := range []struct {
				r        engine.Request
				restored int64
			}{{first, 0}, {other, 0}, {first, 384}, {owned, 0}, {other, 384}, {owned, 384}} {
				got, want := ask(t.Context(), e, c.r), alone(p, engine.Options{}, false, c.r)
				if got.err != nil || got.text != want.text || int64(got.done.Usage.Cached) != c.restored {
					t.Errorf("%s, request %d: %q, %d cached, %v; want %q", k.name, i, got.text, got.done.Usage.Cached, got.err, want.text)
				}
				restored += c.restored
				time.Sleep(time.Second) // pieces are kept while nobody asks
			}
			if st := e.Stats(); st.RestoredTokens != restored || st.KeptPieces != parts || st.KeptBytes < 18*64 {
				t.Errorf("%s: %d tokens are restored, want %d; %d pieces of %d bytes are kept", k.name, st.RestoredTokens, restored, st.KeptPieces, st.KeptBytes)
			}
		})
	}
}

// TestPassedTails: of a conversation with three turns the pieces are wanted, and behind them the last tail; those of
// the turns before it count less. A part that was not what it should be is written anew, with all others of its prompt.
func TestPassedTails(t *testing.T) {
	for _, k := range kinds[2:] {
		bubble(t, func(t *testing.T) {
			p := kindPlan(2, k.recurrent, k.rings, k.pages)
			kept := newMemoryKeeper(nil)
			var e *engine.Engine
			start := func() {
				kept = newMemoryKeeper(kept)
				var err error
				if e, err = engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: kept}); err != nil {
					t.Fatal(err)
				}
			}
			start()
			ask := func(n, cached int) {
				t.Helper()
				r := engine.Request{Prompt: prompt(1, n), Max: 3, TopLogprobs: -1, IgnoreEOG: true}
				got, want := ask(t.Context(), e, r), alone(p, engine.Options{}, false, r)
				if got.err != nil || got.done.Usage.Cached != cached || got.text != want.text {
					t.Errorf("%s: behind %d tokens %d are found, want %d; %q, want %q, %v", k.name, n, got.done.Usage.Cached, cached, got.text, want.text, got.err)
				}
				time.Sleep(time.Second)
			}
			isTail := func(name string) bool { return strings.HasSuffix(name, ".tail") }
			wanted := func(pieces, tails int) {
				t.Helper()
				e.Close()
				now, passed := kept.used[0], kept.used[cache.Passed]
				if len(now) != pieces+1 || !isTail(now[pieces]) || slices.ContainsFunc(now[:pieces], isTail) || len(passed) != tails-1 || len(kept.data) != pieces+tails {
					t.Fatalf("%s: of %d parts %q are wanted, before %q", k.name, len(kept.data), now, passed)
				}
				for i, tail := range append(now[pieces:pieces+1:pieces+1], passed...) {
					if at := pieces - 2*i; tail != now[at-1]+".tail" {
						t.Errorf("%s: tail %d is %q, want that of piece %d", k.name, i, tail, at)
					}
				}
				start()
			}
			defer func() { e.Close() }()
			for i, cached := range []int{0, 192, 320} {
				ask(200+128*i, cached)
				wanted(3+2*i, 1+i)
			}
			ask(456, 448)
			wanted(7, 3)
			for _, bad := range []struct{ from, to, cached int }{{0, 2, 0}, {2, 3, 0}, {5, 6, 320}, {6, 8, 320}} {
				e.Close()
				pieces := slices.DeleteFunc(slices.Clone(kept.names), isTail)[:7]
				for _, name := range append(pieces, pieces[6]+".tail")[bad.from:bad.to] {
					kept.data[name] = []byte("too short")
				}
				start()
				ask(456, bad.cached)
				wanted(7, 3)
				for _, name := range pieces {
					if have := len(kept.data[name]); have != 64*fakeRow {
						t.Errorf("%s: %s has %d bytes", k.name, name, have)
					}
				}
			}
		})
	}
}

// TestSharedTailIsWanted: the tail of a system prompt that several conversations share counts in full when one of them
// ends, as new ones begin with it.
func TestSharedTailIsWanted(t *testing.T) {
	for _, k := range kinds[2:] {
		bubble(t, func(t *testing.T) {
			p := kindPlan(3, k.recurrent, k.rings, k.pages)
			kept := newMemoryKeeper(nil)
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: kept})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for i := range 3 {
				r := engine.Request{Prompt: slices.Concat(prompt(1, 200), prompt(2+i, 130)), Max: 3, TopLogprobs: -1, IgnoreEOG: true}
				if got := ask(t.Context(), e, r); got.err != nil {
					t.Fatal(got.err)
				}
				time.Sleep(time.Second) // parts are kept while nobody asks
			}
			kept.mu.Lock()
			defer kept.mu.Unlock()
			wanted := kept.used[0] // of the last one: five pieces of 64, the tail behind them and that of the system prompt
			if len(wanted) != 7 || wanted[5] != wanted[4]+".tail" || wanted[6] != wanted[2]+".tail" {
				t.Errorf("%s: %q are wanted", k.name, wanted)
			}
			if passed := kept.used[cache.Passed]; len(passed) > 0 {
				t.Errorf("%s: %q count less", k.name, passed)
			}
		})
	}
}

// TestRowsInSlots: where the device has no state of a prompt any more but its rows, the state alone is restored.
func TestRowsInSlots(t *testing.T) {
	for _, pages := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := kindPlan(2, true, false, pages)
			kept := newMemoryKeeper(nil)
			e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: kept})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			check := func(r engine.Request, cached int) {
				t.Helper()
				got, want := ask(t.Context(), e, r), alone(p, engine.Options{}, false, r)
				if got.err != nil || got.text != want.text || got.done.Usage.Cached != cached {
					t.Errorf("%d tokens are found, want %d; %q, want %q, %v", got.done.Usage.Cached, cached, got.text, want.text, got.err)
				}
				time.Sleep(time.Hour)
			}
			r := engine.Request{Prompt: prompt(1, 400), Max: 3, TopLogprobs: -1, IgnoreEOG: true}
			check(r, 0)
			for i, cached := range []int{0, 192, 320, 448, 576} { // another conversation's states come
				check(engine.Request{Prompt: prompt(2, 200+128*i), Max: 3, TopLogprobs: -1, IgnoreEOG: true}, cached)
			}
			if st := e.Stats(); st.Slots[0].Kept != 384 || st.Slots[0].Checkpoint != 0 {
				t.Fatalf("the first slot has %d tokens, %d bytes of states", st.Slots[0].Kept, st.Slots[0].Checkpoint)
			}
			kept.mu.Lock()
			for _, name := range kept.names[:6] { // its pieces
				delete(kept.data, name)
			}
			kept.mu.Unlock()
			r.Prompt = append(r.Prompt, prompt(3, 40)...)
			check(r, 384)
			if st := e.Stats(); st.Slots[0].Checkpoint == 0 || st.RestoredTokens != 0 {
				t.Errorf("%d bytes of states are there, %d tokens are restored", st.Slots[0].Checkpoint, st.RestoredTokens)
			}
		})
	}
}

// TestKeptOfReusedAnswers: where answers are reused, a prompt of a model with recurrent state goes on behind a restart
// where two parted before, as it does in slots.
func TestKeptOfReusedAnswers(t *testing.T) {
	for _, k := range kinds[2:] {
		bubble(t, func(t *testing.T) {
			p := kindPlan(2, k.recurrent, k.rings, k.pages)
			o := engine.Options{Keeper: newMemoryKeeper(nil), ReuseAnswers: true}
			for _, who := range [][]int{{2, 3}, {4}} {
				e, err := engine.New(p, newFake(p), fakeTokenizer(), o)
				if err != nil {
					t.Fatal(err)
				}
				for _, i := range who {
					r := engine.Request{Prompt: slices.Concat(prompt(1, 200), prompt(i, 130)), Max: 9, TopLogprobs: -1, IgnoreEOG: true, Turn: 326}
					got, want := ask(t.Context(), e, r), alone(p, engine.Options{ReuseAnswers: true}, false, r)
					if got.err != nil || got.text != want.text || i == 4 && got.done.Usage.Cached != 192 {
						t.Errorf("%s: %d tokens are found; %q, want %q, %v", k.name, got.done.Usage.Cached, got.text, want.text, got.err)
					}
				}
				e.Close()
			}
		})
	}
}

// TestKeptBehindCut: a prompt whose next piece is kept goes on from that, not between cuts in its slot.
func TestKeptBehindCut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, o := fakePlan(1, 1024, false), engine.Options{ITL: engine.Unhurried}
		o.Keeper = newMemoryKeeper(nil)
		e, err := engine.New(p, newFake(p), fakeTokenizer(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		o.Keeper = nil
		for i, c := range []struct{ tokens, found int }{{900, 0}, {450, 448}, {950, 896}, {980, 928}} {
			r := engine.Request{Prompt: prompt(1, c.tokens), Max: 3, TopLogprobs: -1, IgnoreEOG: true}
			got, want := ask(t.Context(), e, r), alone(p, o, false, r)
			if got.err != nil || got.text != want.text || got.done.Usage.Cached != c.found {
				t.Errorf("prompt %d: %d tokens are found, want %d; %q, want %q, %v", i, got.done.Usage.Cached, c.found, got.text, want.text, got.err)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestRingsOfTails: of rings that come from a tail, and are copied to another slot, nobody goes on before it.
func TestRingsOfTails(t *testing.T) {
	for _, k := range kinds[2:] {
		bubble(t, func(t *testing.T) {
			p := kindPlan(2, k.recurrent, k.rings, k.pages)
			kept := newMemoryKeeper(nil)
			first := engine.Request{Prompt: prompt(1, 900), Max: 40, TopLogprobs: -1, IgnoreEOG: true}
			beside, fork := first, first
			beside.Prompt = slices.Concat(first.Prompt, prompt(2, 20))
			fork.Prompt = slices.Concat(first.Prompt[:800], prompt(3, 90))
			for i := range 2 {
				e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: kept})
				if err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				check := func(r engine.Request, least int) {
					all.Go(func() {
						got, want := ask(t.Context(), e, r), alone(p, engine.Options{}, false, r)
						if got.err != nil || got.text != want.text || got.done.Usage.Cached < least {
							t.Errorf("%s: %d tokens are found, want %d; %q, want %q, %v", k.name, got.done.Usage.Cached, least, got.text, want.text, got.err)
						}
					})
				}
				check(first, 896*i)
				if i > 0 {
					time.Sleep(10 * time.Millisecond)
					check(beside, 896)
					all.Wait()
					check(fork, 0) // in a slot each
					check(fork, 0)
				}
				all.Wait()
				e.Close()
			}
		})
	}
}

// TestKilledWhileWriting: behind an engine that ends as it has written a number of parts, whichever it is, answers are
// those without anything kept; of all parts the prompt goes on from them.
func TestKilledWhileWriting(t *testing.T) {
	for _, k := range kinds {
		bubble(t, func(t *testing.T) {
			p := kindPlan(1, k.recurrent, k.rings, k.pages)
			r := engine.Request{Prompt: prompt(1, 400), Max: 8, TopLogprobs: -1, IgnoreEOG: true}
			want := alone(p, engine.Options{}, false, r)
			answer := func(kept *memoryKeeper) (cached int) {
				e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{Keeper: kept})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				got := ask(t.Context(), e, r)
				if got.err != nil || got.text != want.text {
					t.Errorf("%s: %q, want %q, %v", k.name, got.text, want.text, got.err)
				}
				return got.done.Usage.Cached
			}
			kept := newMemoryKeeper(nil)
			answer(kept)
			for n := range len(kept.names) + 1 {
				part := newMemoryKeeper(nil)
				for _, name := range kept.names[:n] {
					part.data[name] = kept.data[name]
				}
				cached := 64 * n
				if k.recurrent || k.rings { // the tail is the last one
					cached = n / len(kept.names) * 384
				}
				if have := answer(part); have != cached {
					t.Errorf("%s: of %d parts of %d %d tokens are found, want %d", k.name, n, len(kept.names), have, cached)
				}
			}
		})
	}
}

// An uncertainKeeper has a little memory, loses some of what it says it has, and takes long for some.
type uncertainKeeper struct {
	engine.Keeper
	mu          sync.Mutex
	reads, lost int
}

func (k *uncertainKeeper) Read(name string, bytes int64) []byte {
	k.mu.Lock()
	k.reads++
	n := k.reads
	lose := n%25 == 10
	if lose {
		k.lost++
	}
	k.mu.Unlock()
	switch {
	case lose:
		return nil
	case n%50 == 30:
		time.Sleep(3 * time.Second)
	}
	return k.Keeper.Read(name, bytes)
}

// TestKeptConversations has users hold conversations, behind system prompts that they share, forked and ended early at
// times, on engines that follow each other and keep what they read in a memory that is too small, and that loses some
// of it. Each answer is the one that its request gets alone.
func TestKeptConversations(t *testing.T) {
	lost := 0
	for seed := range 2 * len(kinds) {
		k, parts := kinds[seed/2], seed%2 > 0
		bubble(t, func(t *testing.T) {
			rounds, talks := 4, 12
			if testing.Short() {
				rounds = 3
			}
			p := kindPlan(3, k.recurrent, k.rings, false)
			if k.pages {
				toPagesOf(p, 64, 1+2*1024/64)
			}
			if parts {
				toParts(p)
			}
			r := rand.New(rand.NewPCG(uint64(seed), 42))
			kept := &uncertainKeeper{Keeper: keep.Of(keep.NewMemory(40_000), nil, "plan")}
			var mu sync.Mutex
			var all [][]int32
			restored, given := int64(0), 0
			one := func(e *engine.Engine, x *fake) {
				mu.Lock()
				q := engine.Request{Prompt: slices.Concat(prompt(r.IntN(2), 130+r.IntN(300)), prompt(3+r.IntN(8), 1+r.IntN(150))), Max: 1 + r.IntN(40),
					TopLogprobs: -1, IgnoreEOG: true, Owner: fmt.Sprint(r.IntN(2))}
				if len(all) > 0 && r.IntN(3) > 0 { // a further turn, or a fork
					q.Prompt = slices.Clone(all[r.IntN(len(all))])
					if r.IntN(3) == 0 {
						q.Prompt = q.Prompt[:1+r.IntN(len(q.Prompt))]
					}
					q.Prompt = append(q.Prompt, prompt(r.IntN(12), 1+r.IntN(200))...)
				}
				q.Prompt = q.Prompt[:min(len(q.Prompt), 960)]
				q.Turn = max(1, len(q.Prompt)-r.IntN(90))
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(6) == 0 {
					time.AfterFunc(time.Duration(r.IntN(200))*time.Millisecond, cancel)
					given++
				}
				wait := time.Duration(r.IntN(400)) * time.Millisecond
				mu.Unlock()
				defer cancel()
				time.Sleep(wait)
				got, none := ask(ctx, e, q), alone(p, engine.Options{}, false, q)
				if got.err != nil || got.text != none.text && (ctx.Err() == nil || !strings.HasPrefix(none.text, got.text)) {
					t.Errorf("%s: %q, want %q, %v; %d of %d tokens found", k.name, got.text, none.text, got.err, got.done.Usage.Cached, len(q.Prompt))
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, append(slices.Clone(q.Prompt[:q.Turn]), got.tokens...))
			}
			for range rounds {
				x := newFake(p)
				e, err := engine.New(p, x, fakeTokenizer(), engine.Options{Keeper: kept})
				if err != nil {
					t.Fatal(err)
				}
				var users sync.WaitGroup
				for range 4 {
					users.Go(func() {
						for range talks {
							one(e, x)
						}
					})
				}
				users.Wait()
				time.Sleep(time.Second)
				restored += e.Stats().RestoredTokens
				e.Close()
				if x.saved != 0 {
					t.Errorf("%s: %d states are left", k.name, x.saved)
				}
			}
			if restored == 0 {
				t.Errorf("%s: nothing is restored, %d requests are given up", k.name, given)
			}
			lost += kept.lost
		})
	}
	if lost == 0 {
		t.Error("nothing is lost that was kept")
	}
}

// TestShortTurnIsKept: a turn whose last step is narrow has fewer parts to keep than its slot has of the turn before.
func TestShortTurnIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := kindPlan(1, false, false, false)
		for i := range p.Entries {
			if e := &p.Entries[i]; e.Rows == 64 { // a narrow step that goes over a cut
				e.Rows, e.Run, e.Reach = 192, 192, 192
			}
		}
		kept := newMemoryKeeper(nil)
		o := engine.Options{ITL: engine.Unhurried, Keeper: kept, ReuseAnswers: true}
		e, err := engine.New(p, newFake(p), fakeTokenizer(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		wide := engine.Request{Prompt: prompt(1, 506), Turn: 300, Max: 1, TopLogprobs: -1, IgnoreEOG: true}
		narrow := wide
		narrow.Prompt, narrow.Turn = slices.Concat(wide.Prompt[:440], []int32{11, 11, 11, 11, 11, 11}), 445
		for i, c := range []struct {
			r    engine.Request
			kept int
		}{{wide, 3}, {narrow, 3}} {
			if got := ask(t.Context(), e, c.r); got.err != nil {
				t.Fatal(got.err)
			}
			time.Sleep(time.Second) // pieces are kept while nobody asks
			if n := len(newMemoryKeeper(kept).data); n != c.kept {
				t.Errorf("behind request %d %d parts are kept, want %d", i, n, c.kept)
			}
		}
	})
}
