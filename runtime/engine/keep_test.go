package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/keep"
)

// openKept opens a folder with a key of the test's own.
func openKept(t *testing.T, dir string, most int64, lines *[]string) *keep.Store {
	t.Helper()
	s, err := keep.Open(dir, most, func(line string) { *lines = append(*lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKeptOverRestarts: behind a restart a prompt goes on from what the engine before it kept, and has the answer that
// it has without; not one of another owner, of a plan with other cuts, or of what is damaged.
func TestKeptOverRestarts(t *testing.T) {
	for _, k := range kinds[:2] { // dense, in slots and in pages
		t.Run(k.name, func(t *testing.T) { testKeptOverRestarts(t, k.pages) })
	}
}

func testKeptOverRestarts(t *testing.T, pages bool) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "kept")
	var lines []string
	store := openKept(t, dir, 1<<20, &lines).Of("plan")
	first := engine.Request{Prompt: prompt(1, 900), Max: 8, TopLogprobs: -1, IgnoreEOG: true}
	fork := first
	fork.Prompt = slices.Concat(first.Prompt[:500], prompt(2, 100))
	run := func(itl int, r engine.Request) (cached int) {
		bubble(t, func(t *testing.T) {
			p := kindPlan(2, false, false, pages)
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
	for i, c := range []struct {
		itl  int
		r    engine.Request
		want int
	}{{0, first, 0}, {0, first, 896}, {0, fork, 448}, {0, owned, 0}, {1, first, 0}, {1, first, 768}, {0, owned, 896}} {
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
	if have := run(0, first); have != 0 || len(lines) != 14 { // its pieces of 64 tokens
		t.Errorf("%d tokens are found of damaged files; %q", have, lines)
	}
	if have := run(0, first); have != 896 || len(lines) != 14 {
		t.Errorf("%d tokens are found of what was written anew; %q", have, lines)
	}
}

// TestWhatIsNotKept: nothing is kept of models whose caches are more than rows.
func TestWhatIsNotKept(t *testing.T) {
	for _, k := range kinds {
		if err := engine.Keeps(kindPlan(2, k.recurrent, k.rings, k.pages)); (err == nil) != (k.name == "dense" || k.name == "pages") {
			t.Errorf("%s: %v", k.name, err)
		}
	}
}
