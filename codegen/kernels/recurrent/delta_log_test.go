package recurrent_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

const logSlots, logDim = 5, 64

// logEntry is a step that TestDeltaLogs takes: up to so many rows, of so many of a sequence.
type logEntry struct {
	does      string // of DeltaTest or, with "chunked", of deltaChunkTest
	rows, run int
	many      bool // its rows may be of several sequences
}

// logKernels are those of an entry, with a log and without.
type logKernels struct {
	cases [2]kerneltest.Case
	list  [2]kernels.Candidate
}

func (e logEntry) kernels(t *testing.T, on *target.Target) (k logKernels) {
	for i, more := range []string{" log", ""} {
		c := kerneltest.Case{Ctx: 4096, Slots: logSlots, Rows: e.rows, Slot: []int{0}, Alone: true}
		if e.many {
			c.Slot = []int{0, 1}
		}
		if e.run < e.rows {
			c.RunRows = e.run
			if i == 0 {
				more += " defer"
			}
		}
		if e.does == "chunked" {
			c = deltaChunkTest("chunked"+more, "mod", logDim, 1, 1, c)
		} else {
			c = kerneltest.DeltaTest(e.does+more, "mod", logDim, 1, 1, c)
		}
		k.cases[i], k.list[i] = c, c.Candidates(t, c.Site(t, on))[0]
	}
	return k
}

// run runs rows from a state, and returns their results and the state behind them.
func (k logKernels) run(t *testing.T, i, from int, pos, slot []int, state []byte) (y, behind []byte) {
	c := k.cases[i]
	c.N, c.Pos, c.Slot, c.First = len(pos), pos, slot, from
	data, names := map[*ir.Value][]byte{}, map[*ir.Value]string{}
	for _, o := range k.list[i].Operands {
		data[o.Value], names[o.Value] = c.Value(o.Value), o.Name
		switch o.Name {
		case "state":
			data[o.Value] = state
		case "pos", "slot", "n":
			c := c
			c.First = 0
			data[o.Value] = c.Value(o.Value)
		}
	}
	for v, b := range kerneltest.InterpretOnly(t, k.list[i], func(v *ir.Value) int { return len(data[v]) }, data) {
		switch names[v] {
		case "y":
			y = b[:4*logDim*len(pos)]
		case "state":
			behind = b
		}
	}
	return y, behind
}

// TestDeltaLogs: in steps of all kinds, in any order, states with a log give the bits of those without.
func TestDeltaLogs(t *testing.T) {
	cuda := *kerneltest.Lookup(t, "sm_90-cuda")
	cuda.Units = 2 // so that there are turns
	const around = "norm decay sigmoid"
	wide, few, one := logEntry{around + " gated", 16, 8, true}, logEntry{around + " gated", 8, 8, true}, logEntry{around, 1, 1, false}
	for name, c := range map[string]struct {
		on      *target.Target
		entries []logEntry
	}{
		"CUDA":   {&cuda, []logEntry{wide, wide, wide, wide, few, one, {"chunked", 256, 256, false}}},
		"Vulkan": {kerneltest.Llvmpipe(t), []logEntry{wide, wide, wide, few, one, {around, 17, 17, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(3, 9))
			var next [logSlots]int
			states := [2][]byte{make([]byte, 4*logSlots*(logDim+2*kerneltest.DeltaLog)*logDim), make([]byte, 4*logSlots*logDim*logDim)}
			made := map[logEntry]logKernels{}
			step := func(e logEntry, lengths [logSlots]int) {
				k, ok := made[e]
				if !ok {
					k = e.kernels(t, c.on)
					made[e] = k
				}
				var pos, slot []int
				for _, s := range rng.Perm(logSlots) {
					if rng.IntN(12) == 0 {
						next[s] = 0
					}
					for range min(lengths[s], e.run, e.rows-len(pos)) {
						pos, slot = append(pos, next[s]), append(slot, s)
						next[s]++
					}
					if len(pos) > 0 && !e.many {
						break
					}
				}
				var y [2][]byte
				from := rng.IntN(40)
				for i := range states {
					y[i], states[i] = k.run(t, i, from, pos, slot, states[i])
				}
				if !bytes.Equal(y[0], y[1]) {
					t.Fatalf("%s: positions %d of slots %d: other bits with a log", k.list[0].Kernel, pos, slot)
				}
			}
			for range 40 {
				var lengths [logSlots]int
				for s := range lengths {
					if lengths[s] = 1; rng.IntN(5) == 0 {
						lengths[s] = rng.IntN(12)
					}
				}
				lengths[rng.IntN(logSlots)] = 1
				step(c.entries[rng.IntN(len(c.entries))], lengths)
			}
			step(few, [logSlots]int{1, 1, 1, 1, 1}) // which leaves no update
			const head = 4 * logDim * logDim
			for s := range logSlots {
				if logged := states[0][s*(head+4*2*kerneltest.DeltaLog*logDim):][:head]; !bytes.Equal(logged, states[1][s*head:][:head]) {
					t.Errorf("slot %d: another state with a log", s)
				}
			}
		})
	}
}
