// Package rdna executes machine code of AMD's RDNA3 and RDNA4 (gfx11 and gfx12) without a card: it decodes the words,
// runs a grid of workgroups, and reports what a card would not: a register that is read before a wait for what fills
// it, shared memory that two waves use with no barrier between them, data of another workgroup that nothing orders, and
// accesses out of the buffers of a launch.
//
// An instruction is a row of a table: its name, its encoding, its opcodes, the types of its operands, and a function.
// Encodings and opcodes are those of AMD's machine-readable descriptions of the instruction sets, the meaning of
// instructions is that of AMD's documents "RDNA3 Instruction Set Architecture" and "RDNA4 Instruction Set
// Architecture".
package rdna

import "fmt"

// Gen is a generation of the instruction set.
type Gen int

const (
	GFX11 Gen = iota // RDNA3 and 3.5
	GFX12            // RDNA4
	generations
)

func (g Gen) String() string { return [...]string{"gfx11", "gfx12"}[g] }

// A Fault is what ends a run: an instruction that the program must not execute so.
type Fault struct {
	Kind  Hazard
	PC    int    // in bytes
	Text  string // the instruction
	Group [3]int // the workgroup
	Wave  int    // of the workgroup
	What  string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s at %#x, %s, workgroup %v, wave %d: %s", f.Kind, f.PC, f.Text, f.Group, f.Wave, f.What)
}

// Hazard is a kind of fault.
type Hazard int

const (
	Unwaited    Hazard = iota // a register is used before a wait for what fills it
	SharedRace                // two waves use shared memory in no order
	GlobalRace                // two waves use a buffer in no order
	Stale                     // a cache may hold what was there before
	OutOfRegion               // an access to what no buffer of the launch holds, or may not be written
	BadBarrier                // waves disagree about a barrier
	Unsupported               // an instruction, or a use of one, that is not modelled
	Endless                   // more instructions than a launch may take
)

var hazards = [...]string{"register used before its wait", "race in shared memory", "race in a buffer", "stale line", "access out of region",
	"bad barrier", "unsupported", "endless"}

func (h Hazard) String() string { return hazards[h] }

// Counts are of wave instructions that a run has executed, and of bytes that they moved.
type Counts struct {
	Instructions                              int64 // all but those that only wait or hint
	Waits                                     int64
	Vector, Slow, Scalar, Matrix              int64 // slow: those of Vector that take four times as long; Vector has no products of matrices
	GlobalLoads, GlobalStores, ScalarLoads    int64
	SharedLoads, SharedStores, Atomics        int64
	LoadedBytes, StoredBytes, SharedBytes     int64
	ScalarBytes, ScratchBytes, Barriers, Wave int64
	SharedConflicts                           int64 // cycles in which lanes wait for others at a bank of shared memory
}

// Add adds the counts of another run.
func (c *Counts) Add(o *Counts) {
	to, from := c.fields(), o.fields()
	for i := range to {
		*to[i] += *from[i]
	}
}

func (c *Counts) fields() []*int64 {
	return []*int64{&c.Instructions, &c.Waits, &c.Vector, &c.Slow, &c.Scalar, &c.Matrix, &c.GlobalLoads, &c.GlobalStores, &c.ScalarLoads, &c.SharedLoads,
		&c.SharedStores, &c.Atomics, &c.LoadedBytes, &c.StoredBytes, &c.SharedBytes, &c.ScalarBytes, &c.ScratchBytes, &c.Barriers, &c.Wave,
		&c.SharedConflicts}
}
