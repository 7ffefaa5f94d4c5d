package hopper

import "github.com/zincc-dev/zincc/codegen/target/device"

// vulkanThresholds and cudaThresholds are what an H200 decided through each backend.
var (
	vulkanThresholds = device.Thresholds{
		Device: measured,
		// Fewer leave most of a matrix empty (docs/lab/batched-decoding.md).
		FixedRows: 3,
		// Fewer rows take less time in one dispatch with those in float32 than a second dispatch does
		// (docs/lab/hybrids.md).
		Apart: device.Apart{Rows: 4, Work: 1 << 27},
		// Of output heads, that of 2 subgroups gains 8 %, that of 4 loses 5 %.
		BarrierSubgroups: 2,
		// Gate and up of qwen3-8b (23 rows) gain 1.5 %, its output head (288 rows) loses 8 % (docs/lab/decoding.md).
		SharedRows: 32,
		// Gate and up of qwen3-8b (23 rows) gain 9 % (docs/lab/decoding.md).
		FourRows: 16,
	}
	cudaThresholds = device.Thresholds{
		Device:           measured,
		FixedRows:        vulkanThresholds.FixedRows,
		Apart:            vulkanThresholds.Apart,
		BarrierSubgroups: vulkanThresholds.BarrierSubgroups,
		SharedRows:       vulkanThresholds.SharedRows,
		FourRows:         vulkanThresholds.FourRows,
		LoadsEarly:       true, // docs/lab/cuda.md
		// For 48, 128 and 256 rows of the 8B behind 300 positions attention_coop takes 11, 15 and 21 us,
		// attention_wgmma 15, 16 and 17; behind 40,000 205, 398 and 786, and 103, 192 and 371.
		WgmmaRows: 128,
		// Heads of 64 rows gain, the 8B's (156 MB) 454 to 439 us, the 35B's (127 MB) 385 to 372. More was not measured.
		Parts: 200e6,
		// Only staging buffers of 2 to 4 were measured (docs/lab/batched-decoding.md).
		StagedTiles: 4,
		// Without, a unit has one workgroup. With heads of 128, 4 and 8 rows: 10.4 us where 13.0 were, and 14.8 of
		// 17.8. With one and two rows each unit has no more than one anyway.
		Room: device.Room{Lanes: 512, Rows: 3, Head: 128},
		// Projections of one row with more lanes and with more rows at a time: 1 to 4 % more tokens a second
		// (docs/lab/tuning.md).
		Timed: true,
	}
)
