// Package processor says what the processor at hand can do, in names that plans and targets share.
package processor

import (
	"runtime"
	"slices"

	"golang.org/x/sys/cpu"
)

// features are the names, of all architectures, and whether this processor has them.
var features = []struct {
	name string
	has  *bool
}{
	{"avx2", &cpu.X86.HasAVX2},
	{"fma", &cpu.X86.HasFMA},
	{"f16c", &cpu.X86.HasF16C},
	{"bmi2", &cpu.X86.HasBMI2},
	{"avx512f", &cpu.X86.HasAVX512F},
	{"avx512bw", &cpu.X86.HasAVX512BW},
	{"avx512cd", &cpu.X86.HasAVX512CD},
	{"avx512dq", &cpu.X86.HasAVX512DQ},
	{"avx512vl", &cpu.X86.HasAVX512VL},
	{"avx512vnni", &cpu.X86.HasAVX512VNNI},
	{Tile, &tiles},
	{"amx-bf16", &cpu.X86.HasAMXBF16},
	{"dotprod", &cpu.ARM64.HasASIMDDP},
	{"i8mm", &cpu.ARM64.HasI8MM},
}

// Tile is the feature that the system has to give to a process.
const Tile = "amx-tile"

// tiles: the processor has them, and the system gives them to this process.
var tiles = cpu.X86.HasAMXTile && TilesRefused() == nil

// Arch is the architecture, as Go names it.
const Arch = runtime.GOARCH

// Known returns the names that Missing knows.
func Known() []string {
	var list []string
	for _, f := range features {
		list = append(list, f.name)
	}
	return list
}

// Missing returns the features that this processor lacks, or that have no meaning here.
func Missing(names []string) []string {
	var list []string
	for _, name := range names {
		i := slices.IndexFunc(features, func(f struct {
			name string
			has  *bool
		}) bool {
			return f.name == name
		})
		if i < 0 || !*features[i].has {
			list = append(list, name)
		}
	}
	return list
}
