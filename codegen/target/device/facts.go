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

// BoundsRegisters: the driver's compiler can be told for how many lanes of a unit registers must suffice.
func (t *Target) BoundsRegisters() bool { return t.CUDA > 0 }

// TF32: matrices of TF32 are multiplied, f32 cut to 11 bits.
func (t *Target) TF32() bool { return t.CUDA >= 80 && t.Fragments }

// Overlaps: a dispatch may begin while the one before it runs (programmatic dependent launch).
func (t *Target) Overlaps() bool { return t.CUDA >= 90 }

// LoadsEarly: workgroups load or prefetch data ahead of other work, in several parts, because latency is the bound
// rather than instructions. That was measured on an H200 through CUDA only.
func (t *Target) LoadsEarly() bool { return t.CUDA > 0 }

// FewShapes: a compiler ranks all candidates of a site, at 50 ms each, so families leave out shapes that only measured
// times could tell apart.
func (t *Target) FewShapes() bool { return t.AMD != nil }

// Fences: kernels put fences between the products of a step. Without them the driver's compiler loads the matrices of
// all products before the first, which takes registers and makes products wait for loads.
func (t *Target) Fences() bool { return t.Vendor == gpu.NVIDIA }

// BarrierPays reports whether a projection of so many subgroups a row is faster with a barrier that keeps the driver's
// compiler from loading the first weights behind x. Of output heads on an H200, that of 2 subgroups gains 8 %, that of
// 4 loses 5 %. Other devices were not measured.
func (t *Target) BarrierPays(subgroups int) bool { return subgroups <= 2 }

// SharingPays reports whether teams with so many weight rows each should share x in shared memory, behind a barrier,
// rather than have each lane round its own elements. On an H200 gate and up of qwen3-8b (23 rows) gain 1.5 %, its
// output head (288 rows) loses 8 % (docs/lab/decoding.md). Other devices were not measured.
func (t *Target) SharingPays(rows int) bool { return rows <= 32 }

// FourRowsPay reports whether teams with so many weight rows each should take four at a time rather than two. On an
// H200 gate and up of qwen3-8b (23 rows) gain 9 % (docs/lab/decoding.md). Other devices were not measured.
func (t *Target) FourRowsPay(rows int) bool { return rows >= 16 }
