package device

import (
	"io/fs"
	"strings"

	"github.com/zincc-dev/zincc/plans"
)

// Target is what the compiler knows about a device. Every figure has its source in
// the file of the target.
type Target struct {
	Name string
	Doc  string // one line for people

	Vendor      uint32 // PCI vendor; 0: none
	Arch        string // name of the published target whose tuning serves a device that was probed; "": its own
	Machine     string // of backend cpu: that of package codegen/kernel/llvm
	Backend     string // what runs its plans: plans.Vulkan and the like
	Wave        int    // subgroup size that pipelines ask for
	Waves       []int  // sizes to choose from for kernels of few rows, Wave first; none: only Wave
	Workgroup   int    // invocations of a workgroup, at most
	Shared      int    // bytes of shared memory of a workgroup, at most
	SharedOptIn int    // the same of workgroups that ask for it; 0: as Shared
	Units       int    // compute units or SMs: workgroups that make progress at once
	// Rows is the largest number of rows of a prompt in a step. More rows fill more units and
	// share reads of the weights, but take more memory.
	Rows int
	// Matrix is the shape of the cooperative matrices that subgroups multiply, f16
	// by f16 into f32; zero where there are none.
	Matrix MatrixShape
	// Fragments: in matrices of shape 16x8x16, f16 by f16 into f32, the lanes of a subgroup of 32
	// hold the elements that NVIDIA's PTX defines for mma.m16n8k16, and sums of integers below 2^24 are exact.
	Fragments bool
	// EightHeadsFrom is a number of positions. Where a token sees so many or more, a workgroup of its attention has
	// eight heads of 256, so that units read the cache once; 0: never.
	EightHeadsFrom int
	// SharedFast is the bytes of shared memory of a workgroup above which dispatches were measured to take longer; 0:
	// none known.
	SharedFast int
	// Groups: four subgroups multiply matrices with one in shared memory (wgmma).
	Groups bool
	// Dot: dot products of four bytes are instructions (integerDotProduct4x8BitPackedSignedAccelerated).
	Dot bool
	// Permute: bytes of two words are chosen by an instruction.
	Permute bool
	// UnsignedDot: dot products take unsigned bytes of weights and signed bytes of x; others cost more.
	UnsignedDot bool
	// Tiles: processors multiply tiles of bf16 (AMX).
	Tiles bool
	// LaneRows: kernels have a row of the weights, which lie interleaved (layout.Rows16), or a dim of the head in each
	// lane, and lanes load what lies in a row.
	LaneRows bool
	// FewKernels: dispatches and loads are so cheap that saving some is not worth a kernel for each mix of ops, types
	// and sizes. Kernels leave open what they can and serve all models; they were lowered ahead (codegen/objects), none
	// for steps wider than DecodeRows.
	FewKernels bool
	// ArgmaxPart is the least number of logits of a workgroup that shares a row with others; 0: not measured.
	ArgmaxPart int
	// Exact: x of many rows is not rounded to 8 bits for dot products of bytes, or to bf16 (Exactly).
	Exact bool
	// Brief: work that a workgroup does once is faster in fewer instructions, even with more registers, because the
	// code loads from memory while nothing else runs.
	Brief bool
	// Chunks: the delta rule of many rows is faster chunk by chunk than row by row.
	Chunks bool
	// Memory is the device memory in bytes, 0 if it is the host's.
	Memory int64
	// Bandwidth is the read bandwidth in bytes a second.
	Bandwidth float64
	// FLOPs and MatrixFLOPs are the floating-point operations a second of float32
	// arithmetic and of cooperative matrices of f16; 0 where not known.
	FLOPs, MatrixFLOPs float64
	// Stage is the time of a dispatch and its barrier in seconds.
	Stage float64
	// Curve is what was fitted to the device; nil: nothing, so tiles are ranked by the figures above.
	Curve *Curve
	// Thresholds are what was measured of the device beside the curve; zero values: nothing.
	Thresholds Thresholds
	Fit        Fit
	AMD        *AMD // nil for others
	// CUDA is the compute capability without the dot, of targets of that backend.
	CUDA int

	// Tuned are the tuning files of the device, TARGET.jsonl and TARGET.DEVICE.jsonl; nil: none.
	Tuned fs.FS `json:"-"`
	// Probe is the JSON of the probe that the target was made of; nil if it is published.
	Probe []byte `json:"-"`
}

// IsHost reports whether the oracle evaluates the target's plans, which then hold no kernels.
func (t *Target) IsHost() bool { return t.Backend == plans.Host }

// Fit describes the time that measured dispatches take beyond Bandwidth, FLOPs and Stage. It is zero
// for devices that were not measured.
type Fit struct {
	// Ramp is the seconds that a step takes beyond Stage, at its start until reads run at full rate and
	// at its end after the first workgroups have ended.
	Ramp float64
	// Share is the share of the bandwidth that kernels reach; 0: all.
	Share float64
	// Attention is the share of MatrixFLOPs that attention reaches; 0: all.
	Attention float64
	// Timestamp is the seconds of the timestamp behind a dispatch, which rows of tuning
	// files include and plans do not spend.
	Timestamp float64
	// Overlap is the same for dispatches that begin while the one before them runs: rows include an event, and the
	// delay of a dispatch behind it.
	Overlap float64
	// Cached is the bytes a second that units read of what others have read before them; 0: not measured.
	Cached float64
	// Paces are those of families whose time is no roofline, by name.
	Paces map[string]Pace
}

// Pace is the time of a kernel that its bytes and operations do not explain, in seconds.
type Pace struct {
	// Once and Round are latencies that nothing hides, of a dispatch and of each round of workgroups: loads that wait
	// for each other, barriers, sums of lanes, the last workgroup that adds up what others have.
	Once, Round float64
	// Each is what a unit takes for a workgroup, and Item for each of its Work.Items: instructions that bound it.
	Each, Item float64
	// Share is as that of Fit, where the family reaches another.
	Share float64
}

// MatrixShape is the shape of a product: Rows x Depth by Depth x Cols.
type MatrixShape struct{ Rows, Cols, Depth int }

// NoMatrix ends the names of targets for drivers without cooperative matrices, where
// later drivers of the device have them.
const NoMatrix = "-nomatrix"

// WithoutMatrix returns the target for such a driver.
func (t *Target) WithoutMatrix() *Target {
	without := *t
	without.Name += NoMatrix
	without.Doc = strings.TrimSuffix(t.Doc, " with cooperative matrices") + " without cooperative matrices"
	without.Matrix, without.MatrixFLOPs = MatrixShape{}, 0
	return &without
}

// HasMatrices reports whether subgroups multiply cooperative matrices.
func (t *Target) HasMatrices() bool { return t.Matrix != (MatrixShape{}) }

// DecodeRows is how many rows of an exact step kernels compute together, and of one sequence there can be in it.
const DecodeRows = 8

// widestExact is the rows of the widest exact step where rows are computed in tiles of DecodeRows.
const widestExact = 128

// WidestExact is the rows of the widest exact step, of plans for many sequences.
func (t *Target) WidestExact() int {
	if t.FewKernels {
		return DecodeRows
	}
	return widestExact
}

// Exactly returns the target for plans that do not round x of prompts to 8 bits or bf16.
func (t *Target) Exactly() *Target {
	exact := *t
	exact.Exact = true
	return &exact
}
