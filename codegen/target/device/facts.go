package device

import (
	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/plans"
)

// What families of kernels may count on by the device's maker and architecture. They ask by these names, so that a
// family names no device, and another device of which the same holds is one line here.

// Processor: kernels are machine code of a processor, whose lanes are those of its vectors.
func (t *Target) Processor() bool { return t.Backend == plans.CPU }

// Assembled: an assembler makes machine code of kernels, which package sass reads.
func (t *Target) Assembled() bool { return t.CUDA > 0 }

// Queues: dispatches of a stage run side by side, on a queue each.
func (t *Target) Queues() bool { return plans.Queues(t.Backend) > 1 }

// Copies: copies from memory to shared memory run beside other work and need no registers (cp.async).
func (t *Target) Copies() bool { return t.CUDA >= 80 }

// CopiesRows: one lane begins copies of many bytes to shared memory (cp.async.bulk).
func (t *Target) CopiesRows() bool { return t.CUDA >= 90 }

// BoundsRegisters: the driver's compiler can be told for how many lanes of a unit registers must suffice.
func (t *Target) BoundsRegisters() bool { return t.CUDA > 0 }

// TF32: matrices of TF32 are multiplied, f32 cut to 11 bits.
func (t *Target) TF32() bool { return t.CUDA >= 80 && t.Fragments }

// Overlaps: a dispatch may begin while the one before it runs (programmatic dependent launch).
func (t *Target) Overlaps() bool { return t.CUDA >= 90 }

// FewShapes: a compiler ranks all candidates of a site, at 50 ms each, so families leave out shapes that only measured
// times could tell apart.
func (t *Target) FewShapes() bool { return t.AMD != nil }

// Fences: kernels put fences between the products of a step. Without them the driver's compiler loads the matrices of
// all products before the first, which takes registers and makes products wait for loads.
func (t *Target) Fences() bool { return t.Vendor == gpu.NVIDIA }
