package vulkan

import (
	"cmp"
	"slices"
)

// typeRanks are the types of devices, the fastest first. Types that are not here come last.
var typeRanks = map[string]int{"discrete": 1, "virtual": 2, "integrated": 3, "other": 4, "cpu": 5}

// Ranked returns the devices in the order in which they are worth trying: discrete GPUs before
// integrated ones before processors, the one with more memory first, else as the loader lists them.
func Ranked(all []DeviceInfo) []DeviceInfo {
	ranked := slices.Clone(all)
	slices.SortStableFunc(ranked, func(a, b DeviceInfo) int {
		return cmp.Or(cmp.Compare(TypeRank(a.Type), TypeRank(b.Type)), cmp.Compare(b.LocalMemory(), a.LocalMemory()))
	})
	return ranked
}

// TypeRank is the place of a type of device, the fastest first.
func TypeRank(kind string) int {
	if rank, ok := typeRanks[kind]; ok {
		return rank
	}
	return len(typeRanks) + 1
}

// LocalMemory is the size of the largest heap of the device's own memory, in bytes.
func (info *DeviceInfo) LocalMemory() uint64 {
	return info.largestLocal().Size
}

// FreeMemory is what this process may still take of that heap; all of it where the driver does
// not tell.
func (info *DeviceInfo) FreeMemory() uint64 {
	h := info.largestLocal()
	if h.Free == 0 {
		return h.Size
	}
	return h.Free
}

func (info *DeviceInfo) largestLocal() Heap {
	var largest Heap
	for _, h := range info.Heaps {
		if h.DeviceLocal && h.Size > largest.Size {
			largest = h
		}
	}
	return largest
}
