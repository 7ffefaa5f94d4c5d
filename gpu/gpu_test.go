package gpu

import (
	"slices"
	"testing"
)

// TestFind names cards that people have, by the ids that the PCI id repository lists for them.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		card           string
		vendor, device uint32
		want           string
	}{
		{"H200 SXM", NVIDIA, 0x2335, "sm_90"},
		{"H100 SXM5", NVIDIA, 0x2330, "sm_90"},
		{"A100 SXM4", NVIDIA, 0x20b0, "sm_80"},
		{"GeForce RTX 2080 Ti", NVIDIA, 0x1e07, "sm_75"},
		{"GeForce GTX 1660", NVIDIA, 0x2184, "sm_75"},
		{"GeForce RTX 3060", NVIDIA, 0x2503, "sm_86"},
		{"GeForce RTX 3090", NVIDIA, 0x2204, "sm_86"},
		{"GeForce RTX 4090", NVIDIA, 0x2684, "sm_89"},
		{"GeForce RTX 4060", NVIDIA, 0x2882, "sm_89"},
		{"GeForce RTX 5090", NVIDIA, 0x2b85, "sm_120"},
		{"B200", NVIDIA, 0x2901, "sm_100"},
		{"GeForce GTX 1080", NVIDIA, 0x1b80, ""},
		{"RX 9070 XT", AMD, 0x7550, "gfx1201"},
		{"RX 9060 XT", AMD, 0x7590, "gfx1200"},
		{"RX 7900 XTX", AMD, 0x744c, "gfx1100"},
		{"RX 7800 XT", AMD, 0x747e, "gfx1101"},
		{"RX 6700 XT", AMD, 0x73df, "gfx1031"},
		{"Radeon 780M", AMD, 0x15bf, "gfx1103"},
		{"Radeon 8060S", AMD, 0x1586, "gfx1151"},
		{"Radeon VII", AMD, 0x66af, "gfx906"},
		{"UHD Graphics 770", Intel, 0x4680, "xe"},
		{"Arc A770", Intel, 0x56a0, "xe-hpg"},
		{"Arc B580", Intel, 0xe20b, "xe2"},
		{"Arc 140V", Intel, 0x64a0, "xe2"},
		{"Apple M2 through MoltenVK", Apple, 0xf0802ff, ""},
		{"llvmpipe", Mesa, 0, "llvmpipe"},
	} {
		got := ""
		if chip := Find(c.vendor, c.device); chip != nil {
			got = chip.Arch.Name
		}
		if got != c.want {
			t.Errorf("%s (%#x:%#x): %q, want %q", c.card, c.vendor, c.device, got, c.want)
		}
	}
}

// TestChips checks that no device id has two chips.
func TestChips(t *testing.T) {
	of := map[uint32][]Chip{}
	for _, c := range chips {
		if c.Last < c.First || c.Name == "" || VendorName(c.Arch.Vendor) == "" {
			t.Errorf("row %+v", c)
		}
		of[c.Arch.Vendor] = append(of[c.Arch.Vendor], c)
	}
	for _, rows := range of {
		slices.SortFunc(rows, func(a, b Chip) int { return int(a.First) - int(b.First) })
		for i := 1; i < len(rows); i++ {
			if rows[i].First <= rows[i-1].Last {
				t.Errorf("%s and %s share device ids", rows[i-1].Name, rows[i].Name)
			}
		}
	}
}
