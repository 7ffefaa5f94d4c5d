package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/trust"
)

// TestPoolOfServer: the only model takes as many pages as --memory has room for, at least those that its plan states,
// and at most those that its sequences can have. Of several models, and without --memory on a device that has none of
// its own, each has the pool that its plan states.
func TestPoolOfServer(t *testing.T) {
	f, err := gguf.Open("../../testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	on, err := target.Lookup("host")
	if err != nil {
		t.Fatal(err)
	}
	made, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: on, Import: frontend.Options{Ctx: 128, Slots: 8, KV: ir.F16, Page: 64, Pool: 256}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.bin")
	digest, err := plans.WriteFile(path, made.Plan)
	if err != nil {
		t.Fatal(err)
	}
	trust.Accept(digest)
	least, page := made.Plan.MemoryBytes(), made.Plan.PageBytes()
	for _, c := range []struct {
		memory  int64
		several bool
		pages   int
	}{{0, false, 5}, {1, false, 5}, {least + 3*page + page/2, false, 8}, {1 << 33, false, 17}, {1 << 33, true, 5}} {
		var log bytes.Buffer
		s := &serveFlags{log: slog.New(slog.NewTextHandler(&log, nil)), memory: float64(c.memory) / (1 << 30), several: c.several, plan: planFlags{device: "host"}}
		s.answers.declare(pflag.NewFlagSet("", pflag.PanicOnError))
		m, err := s.open(t.Context(), path, "m")
		if err != nil {
			t.Fatal(err)
		}
		pages := int64(5) + (m.Memory.KV-plans.SumBytes(made.Plan.Memory.KV))/page
		if said := fmt.Sprintf("a pool of %d pages of 64 positions", c.pages); pages != int64(c.pages) || !strings.Contains(log.String(), said) {
			t.Errorf("%d bytes, several %t: %d pages, want %d; the log says %s", c.memory, c.several, pages, c.pages, log.String())
		}
		m.Engine.Close()
		m.Close()
	}
}
