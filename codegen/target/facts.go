package target

import "github.com/zincc-dev/zincc/gpu"

// What families of kernels may count on by the device's maker and architecture. They ask by these names, so that a family names no
// device, and another device of which the same holds is one line here.

// Copies: copies from memory to shared memory go on beside other work and need no registers (cp.async).
func (t *Target) Copies() bool { return t.CUDA >= 80 }

// TF32: matrices of TF32 are multiplied, f32 cut to 11 bits.
func (t *Target) TF32() bool { return t.CUDA >= 80 && t.Fragments }

// Overlaps: a dispatch may begin while the one before runs (programmatic dependent launch).
func (t *Target) Overlaps() bool { return t.CUDA >= 90 }

// Early: what a workgroup will need is loaded, or asked for, ahead of other work that it waits for, and in several parts: there latency
// binds more than instructions. It was measured on an H200 through CUDA; on others it was not.
func (t *Target) Early() bool { return t.CUDA > 0 }

// Few: a compiler ranks all candidates of a site, at 50 ms for each, so families leave out shapes that only times would tell apart.
func (t *Target) Few() bool { return t.AMD != nil }

// Fences: the driver's compiler loads the matrices of all products of a step before the first, unless there is a fence between
// products: that takes registers, and products wait for loads.
func (t *Target) Fences() bool { return t.Vendor == gpu.NVIDIA }
