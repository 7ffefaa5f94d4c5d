// Package plans is plan.bin: its schema, its encoding, and the static checker.
//
// A plan is all that a runtime needs besides the model file: kernels, where
// every buffer lies, which dispatches to record, and, behind every dispatch, the
// ops that it computes, so that it can be evaluated and checked without a GPU.
package plans

import (
	"os"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/ir"
)

// Plan is the decoded form of plan.bin.
type Plan struct {
	Header    Header
	Require   Requirements
	Modules   []Module
	Pipelines []Pipeline
	Memory    Memory
	Weights   []Weight
	Entries   []Entry
	// Program is the op program at stage place. Dispatch i of an entry computes
	// group i of the function that has the entry's name.
	Program *ir.Program
	Vocab   Vocab
	Dialect Dialect
	// Embedded holds the bytes of the weights as in the GGUF, if the
	// plan was compiled with them; Weight.At are offsets into it.
	Embedded []byte

	digest *Digest      // of the bytes that it was decoded from
	mapped *mapped.File // the file, if Embedded is a part of it
	info   os.FileInfo  // of that file when it was opened
}

// Header says what the plan was made from and for.
type Header struct {
	Compiler string // version of zincc
	Target   string // target name
	Probe    []byte // of a device that was measured: what was found, as JSON of package codegen/target; else empty
	Model    Model
	Ctx      int    // positions a sequence slot holds
	Slots    int    // sequence slots
	KV       string // dtype of the KV cache, such as "f16" (ir.CacheTypeNames); "none" without
	MaxRows  int    // rows of the widest entry; extent of the step block's arrays
	Ring     int    // entries of the output ring
}

// Model identifies the GGUF that the weights come from.
type Model struct {
	Arch        string
	Name        string
	Path        string // as given to the compiler; a hint where to look
	Absolute    string // the same, from wherever one looks
	Fingerprint string // hex SHA-256 of the header: gguf.File.Fingerprint
	Shards      int
	Layers      int
	Vocab       int
	Parameters  int64
}

// Pipeline is a module with its constants.
type Pipeline struct {
	Module    int
	Consts    []Const
	Wave      int // required subgroup size; 0 leaves it to the device
	Workgroup int // invocations, for people and the checker
	Shared    int // bytes of shared memory
	Machine   *Machine
}

// Machine is the answer of the target's driver's compiler about a pipeline, when the
// plan was compiled; nil if it was not asked. Registers are those of a lane,
// cycles those of a subgroup with every loop taken as eight iterations. The
// driver that runs the plan may be of another version.
type Machine struct {
	Compiler string // name and version
	SGPRs    int
	VGPRs    int
	Spills   int // registers of both kinds
	Scratch  int // bytes of a lane
	Waves    int // subgroups that a SIMD holds at once
	Code     int // bytes
	VALU     int // vector instructions in the code
	VMEM     int // memory instructions of vectors
	Cycles   int // for which a subgroup keeps its SIMD busy
	Latency  int // cycles until a subgroup ends, alone on its SIMD
}

// Const is one specialization constant.
type Const struct {
	ID    uint32
	Name  string
	Value uint32 // of a float its bits
	Float bool
}

// String writes the constant as the program has it.
func (c Const) String() string { return c.Name + "=" + ir.ConstText(c.Value, c.Float) }

// Memory is the size of each address space, in bytes, but for the weights, which
// Weight lists.
type Memory struct {
	Arena  int64
	KV     []Region // caches of keys and values
	State  []Region // recurrent states
	Tables []Region
	Step   []Region
	IO     []Region // results the host reads, one per entry and value
}

// Weight is one tensor on the device.
type Weight struct {
	Name   string
	DType  ir.DType // in the GGUF
	Shape  []int64  // row-major
	Shard  int
	Offset int64  // in the shard
	Size   int64  // bytes in the GGUF
	Layout string // recipe, a row of the layout table
	Bytes  int64  // after the recipe
	At     int64  // offset in Embedded, or -1
}

// Entry is one command list over the plan's weights and state.
type Entry struct {
	Name  string // the function's name: "decode/1", "prefill/256", "score/64", "embed/48"
	Kind  string // "decode", "prefill", "score" or "embed"
	Rows  int    // rows of a step, at most
	Run   int    // those of one sequence, at most
	Class string // which bits rows have: "exact", those of a step of the row alone, "alike", those that all entries of this class give the rows of a prompt, or "prompt"
	Reach int    // what is left of a prompt, at most, when it takes the next step; at least Run
	// Grain is the positions of which a step may begin at any multiple. Steps of one entry that begin so, and end at a
	// multiple or where the prompt ends, give a prompt the same bits wherever it is cut: caches, states, and the logits
	// of its last row. So rows of whole grains have the bits of any step that has them. 0: steps are as long as Run.
	Grain int
	// Part is 0, or rows: a step may have the prompts of several sequences, each in a run of rows that begins at a
	// multiple of Part. The rows between the end of a run and the next multiple are dead: see ir.Func.Part.
	Part       int
	Logits     string // region of the logits in Memory.IO; of embed: of vectors
	Next       string // region of the chosen ids in Memory.IO; empty for score and embed
	Candidates string // region of op candidates in Memory.IO; empty where the host chooses by logits alone
	Dispatches []Dispatch
}

// Result is where the entry has the region of an op's result in Memory.IO.
func (e *Entry) Result(op *ir.Op) *string {
	switch {
	case op.Kind.Name == "candidates":
		return &e.Candidates
	case op.Result.Type.DType == ir.I32:
		return &e.Next
	}
	return &e.Logits
}

// Exact reports whether rows of the entry's steps have the bits of a step of the row alone.
func (e *Entry) Exact() bool { return e.Class == ir.ExactStep.String() }

// Alike reports whether rows of a prompt have the same bits in steps of the entry as of all others that are alike.
func (e *Entry) Alike() bool { return e.Class == ir.AlikeStep.String() }

// Heads is the number of rows of Logits and Next: of a prompt there is the last one, and where steps have parts, one
// for each of these: the rows that ir.StepHeads names.
func (e *Entry) Heads() int {
	switch {
	case e.Part > 0:
		return e.Rows / e.Part
	case e.Kind == "prefill":
		return 1
	}
	return e.Rows
}

// Dispatch is one kernel launch: pipeline, arguments, grid.
type Dispatch struct {
	Site     string // call site, such as "blk.0.attn_q+attn_k+attn_v"
	Pipeline int
	Grid     [3]int
	Args     []Arg
	ir.Order // of the group
	Cover    []Cover
	Cost     Cost
	Why      string // reason of the kernel choice
	Mixes    bool   // the kernel takes rows of different sequences in a step; not said where no op uses slots
	Grain    int    // neighbours among the rows, from the first on, that share what their bits depend on; 0: all rows
}

// Arg is one address that a kernel takes, and what the dispatch does there.
type Arg struct {
	Name   string // operand name in the kernel
	Space  string // "weight", "table", "arena", "kv", "state", "step", "io"
	Region string // weight or region name; empty for arena
	Offset int64
	Bytes  int64 // extent that the dispatch may touch
	Read   bool
	Write  bool
}

// Cover says how a dispatch's workgroups tile an output: workgroup g of grid
// axis Axis[d], counted from First[d], writes elements [g*Tile[d], (g+1)*Tile[d])
// of dim d, as far as they exist. Workgroups before First[d], and those whose
// elements do not exist, write nothing of this output. A tile of 0 says that the
// step's data tell the workgroups from First[d] on how to share the dim, as for rows
// sorted by expert.
type Cover struct {
	Arg  string
	Dims []int
	Tile []int
	Axis []int // 0, 1, 2; -1 for a dim that every workgroup covers whole
	// First is not 0 where several outputs share a grid, each with a range of its
	// workgroups; nil means 0 everywhere.
	First []int
	// Joined are axes whose workgroups end in a last-block reduction: each leaves its part in the dispatch's
	// workspace, and the last one to finish writes the output from all parts. Where such an axis has a dim, of a tile
	// of 0, the step's data tell which workgroups on it meet: some, or none with others.
	Joined []int
}

// Cost is the minimal work of a dispatch, at full rows and behind an empty cache,
// and the predicted time.
type Cost struct {
	ReadBytes  int64
	WriteBytes int64
	FLOPs      int64
	// Each position that the cache holds before the step adds these.
	BytesPerPos int64 // read
	FLOPsPerPos int64
	Predicted   Times
	Measured    bool // Predicted is what the kernel took when the site was tuned
}

// Times is a prediction in seconds, made from the target's figures; all 0 where it
// has none. Bytes and operations overlap, the stage does not.
type Times struct {
	Bytes      float32 // to move the bytes at the target's bandwidth
	Operations float32 // to compute at the target's rate
	Stage      float32 // launch and barrier, for the first dispatch of a stage
}
