package hopper

import "github.com/zincc-dev/zincc/codegen/target/device"

// fitCUDA is the fit of sm_90-cuda. docs/estimates.md says what each figure was measured by.
var fitCUDA = device.Fit{Ramp: 1.5e-6, Share: 0.82, Attention: 0.55, Timestamp: 0.5e-6, Overlap: 3.8e-6, Cached: 6.2e12, Paces: paces}

// paces were fitted to the sites of codegen/testdata/sites.tsv: steps of 1 to 512 rows of the 8B and the 35B-A3B.
// Stage, Ramp and Timestamp, 3.3 us together, come before them.
var paces = map[string]device.Pace{
	// What waits in a workgroup, one behind the other: q, its norm and rope, the first keys, their scores, the sum of
	// the subgroups, that of the splits. A unit has one or two workgroups at a time, so 64 rows are two rounds. The
	// rest of 1,000 positions comes at 0.9 of the bandwidth.
	"attention_split": {Once: 0.8e-6, Round: 5e-6, Share: 0.9},
	// 18.7 us for 512 rows behind no positions, 15.5 for 256: operations at Attention's share would take 5.1 and 1.3.
	"attention_wgmma": {Once: 11e-6},
	// 8,192 workgroups of 64 and of 128 lanes take 13.4 to 14 us, whatever they read.
	"attention_merge": {Each: 0.165e-6},
	// Weights of logits bound many rows, barriers one; bytes of 64 rows would take 15 us of 39.
	"candidates": {Once: 3.2e-6, Each: 1.06e-6, Item: 0.118e-9},
	"argmax":     {Once: 2.7e-6, Each: 1e-6, Item: 0.055e-9},
	// A projection of few rows waits for x, for its sums and their norm.
	"gemv":    {Once: 3.3e-6},
	"rownorm": {Once: 0.7e-6},
	"heads":   {Once: 0.7e-6},
	// The same; each workgroup reads x on its own.
	"gemm_fixed": {Once: 3e-6},
	// 8 rows of 8 experts take 29.8 us, of which bytes would take 9: a unit takes 20 weights apart in a nanosecond.
	"expert_down":  {Item: 0.05e-9},
	"expert_sort":  {Once: 3.6e-6},
	"router":       {Once: 1.5e-6},
	"expert_weigh": {Once: 1.3e-6},
	// Parts of a few megabytes come from the L2 cache, those of an output head from memory.
	"add_parts": {Once: 0.8e-6, Share: 1.15},
	"pack12":    {Once: 0.7e-6},
	// States are copied ahead, behind the convolution and norms of a row.
	"delta":       {Once: 4e-6, Share: 0.95},
	"delta_chunk": {Once: 3e-6},
}
