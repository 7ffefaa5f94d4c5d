package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/synth"
)

// standIn is the variable that makes this test binary stand for zincc: what it does.
const standIn = "HEADERS_STAND_IN"

func TestMain(m *testing.M) {
	if what := os.Getenv(standIn); what != "" {
		os.Exit(zincc(what))
	}
	os.Exit(m.Run())
}

// zincc keeps two answers of AMD's compiler where the real one does, or fails.
func zincc(what string) int {
	if _, err := os.Stat(os.Args[2]); err != nil || os.Args[1] != "compile" || !slices.Contains(os.Args, "--force") {
		fmt.Println("wrong arguments", os.Args)
		return 1
	}
	if what == "fail" {
		fmt.Println("a line before")
		fmt.Println("no kernel for x")
		return 1
	}
	dir := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "zincc", "radv", "driver", "GFX1201")
	if old, _ := filepath.Glob(filepath.Join(dir, "*")); len(old) > 0 {
		fmt.Println("answers of before:", old)
		return 1
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		fmt.Println(err)
		return 1
	}
	for _, name := range []string{"a.json", "b.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	time.Sleep(20 * time.Millisecond)
	return 0
}

func compiler(t *testing.T, what string) options {
	t.Helper()
	t.Setenv(standIn, what)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return options{zincc: self, types: []string{"off"}, shapes: []string{"qwen3-0.6b"}, targets: []string{"gfx1201"}, seconds: 60, mb: 5000}
}

// of is the compilation of a shape for a target.
func of(t *testing.T, shape, target string) row {
	s, err := synth.Parse(shape)
	if err != nil {
		t.Fatal(err)
	}
	return row{s, target}
}

func TestRows(t *testing.T) {
	o := options{types: []string{"Q8_0", "Q4_0"}}
	list, err := o.rows()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []row{of(t, "glm47-flash:Q4_K_M", "gfx1201"), of(t, "gpt-oss-20b:MXFP4", "sm_90-cuda"), of(t, typed+":Q4_0", "sm_90"), of(t, typed+":Q8_0", "gfx1201")} {
		if !slices.Contains(list, r) {
			t.Errorf("%v is not compiled", r)
		}
	}
	for _, r := range list {
		if r.target == "host" || strings.Contains(r.target, "arm64") || r.shape.Name == typed && !slices.Contains(typedTargets, r.target) {
			t.Errorf("%v is compiled", r)
		}
	}
	o = options{shapes: []string{"glm47-flash"}, targets: []string{"gfx1201"}, types: []string{"off"}}
	if list, err = o.rows(); err != nil || !slices.Equal(list, []row{of(t, "glm47-flash:Q4_K_M", "gfx1201")}) {
		t.Errorf("%v, %v", list, err)
	}
	o.shapes = []string{"nobody"}
	if _, err := o.rows(); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("a shape that is not published: %v", err)
	}
}

// TestCompile: each compilation has a cache of its own, and its questions, time and memory are counted.
func TestCompile(t *testing.T) {
	o, dir := compiler(t, "answer"), t.TempDir()
	for range 2 {
		u, err := o.compile(context.Background(), dir, of(t, "qwen3-0.6b:Q8_0", "gfx1201"))
		if err != nil || u.asked != 2 || u.seconds < 0.02 || u.mb <= 0 {
			t.Errorf("%+v, %v", u, err)
		}
	}
	if _, err := o.compile(context.Background(), dir, of(t, "glm45-air:F32", "gfx1201")); !errors.Is(err, errLarge) {
		t.Errorf("a model that does not fit: %v", err)
	}
	t.Setenv(standIn, "fail")
	if _, err := o.compile(context.Background(), dir, of(t, "qwen3-0.6b:Q8_0", "gfx1201")); err == nil || err.Error() != "no kernel for x" {
		t.Errorf("a compilation that fails: %v", err)
	}
}

// TestTooMuch: what fails, and what takes more time or memory than it may, is an error.
func TestTooMuch(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(o *options)
		fails  bool
	}{
		{"answer", func(o *options) {}, false},
		{"answer", func(o *options) { o.seconds = 0.01 }, true},
		{"answer", func(o *options) { o.mb = 0.001 }, true},
		{"fail", func(o *options) {}, true},
	} {
		o := compiler(t, c.what)
		c.change(&o)
		if err := o.run(context.Background()); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	o := compiler(t, "answer")
	if err := o.run(ctx); err == nil || err.Error() != "interrupted" {
		t.Errorf("interrupted: %v", err)
	}
}
