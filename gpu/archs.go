package gpu

// The architectures. Figures are those of makers' data sheets at boost clock, without
// sparsity; of GeForce cards before Blackwell products in f16 with sums in float32 have half
// the rate of those with sums in f16, as the architecture white papers state.
var (
	sm70  = arch(NVIDIA, "sm_70", "Volta", "V100", 80, 15.7e12, 125e12)
	sm75  = arch(NVIDIA, "sm_75", "Turing", "GeForce RTX 2080 Ti", 68, 13.4e12, 53.8e12)
	sm80  = arch(NVIDIA, "sm_80", "Ampere", "A100", 108, 19.5e12, 312e12)
	sm86  = arch(NVIDIA, "sm_86", "Ampere", "GeForce RTX 3090", 82, 35.6e12, 71e12)
	sm89  = arch(NVIDIA, "sm_89", "Ada", "GeForce RTX 4090", 128, 82.6e12, 165.2e12)
	sm90  = arch(NVIDIA, "sm_90", "Hopper", "H100 SXM", 132, 67e12, 989e12)
	sm100 = arch(NVIDIA, "sm_100", "Blackwell", "B200", 148, 80e12, 2250e12)
	sm103 = arch(NVIDIA, "sm_103", "Blackwell Ultra", "B300", 148, 80e12, 2250e12)
	sm120 = arch(NVIDIA, "sm_120", "Blackwell", "GeForce RTX 5090", 170, 104.8e12, 209.5e12)
	sm121 = arch(NVIDIA, "sm_121", "Blackwell", "GB10", 48, 0, 0)

	gfx900  = arch(AMD, "gfx900", "Vega", "RX Vega 64", 64, 12.7e12, 0)
	gfx902  = arch(AMD, "gfx902", "Vega", "Ryzen 7 2700U", 10, 1.7e12, 0)
	gfx904  = arch(AMD, "gfx904", "Vega", "Pro Vega 20", 20, 3.3e12, 0)
	gfx906  = arch(AMD, "gfx906", "Vega", "Radeon VII", 60, 13.4e12, 0)
	gfx908  = arch(AMD, "gfx908", "CDNA", "MI100", 120, 23.1e12, 184.6e12)
	gfx90a  = arch(AMD, "gfx90a", "CDNA2", "MI210", 104, 22.6e12, 181e12)
	gfx90c  = arch(AMD, "gfx90c", "Vega", "Ryzen 7 5700G", 8, 2e12, 0)
	gfx942  = arch(AMD, "gfx942", "CDNA3", "MI300X", 304, 163.4e12, 1307e12)
	gfx950  = arch(AMD, "gfx950", "CDNA4", "MI350X", 256, 144.2e12, 2300e12)
	gfx1010 = arch(AMD, "gfx1010", "RDNA", "RX 5700 XT", 40, 9.75e12, 0)
	gfx1011 = arch(AMD, "gfx1011", "RDNA", "Pro 5600M", 40, 5.3e12, 0)
	gfx1012 = arch(AMD, "gfx1012", "RDNA", "RX 5500 XT", 22, 5.2e12, 0)
	gfx1030 = arch(AMD, "gfx1030", "RDNA2", "RX 6900 XT", 80, 23.04e12, 0)
	gfx1031 = arch(AMD, "gfx1031", "RDNA2", "RX 6700 XT", 40, 13.21e12, 0)
	gfx1032 = arch(AMD, "gfx1032", "RDNA2", "RX 6600 XT", 32, 10.6e12, 0)
	gfx1033 = arch(AMD, "gfx1033", "RDNA2", "Steam Deck", 8, 1.6e12, 0)
	gfx1034 = arch(AMD, "gfx1034", "RDNA2", "RX 6500 XT", 16, 5.77e12, 0)
	gfx1035 = arch(AMD, "gfx1035", "RDNA2", "Radeon 680M", 12, 3.7e12, 0)
	gfx1036 = arch(AMD, "gfx1036", "RDNA2", "Ryzen 9 7950X", 2, 0.56e12, 0)
	gfx1100 = arch(AMD, "gfx1100", "RDNA3", "RX 7900 XTX", 96, 61.4e12, 122.8e12)
	gfx1101 = arch(AMD, "gfx1101", "RDNA3", "RX 7800 XT", 60, 37.3e12, 74.6e12)
	gfx1102 = arch(AMD, "gfx1102", "RDNA3", "RX 7600", 32, 21.75e12, 43.5e12)
	gfx1103 = arch(AMD, "gfx1103", "RDNA3", "Radeon 780M", 12, 8.3e12, 16.6e12)
	gfx1150 = arch(AMD, "gfx1150", "RDNA3.5", "Radeon 890M", 16, 11.9e12, 23.8e12)
	gfx1151 = arch(AMD, "gfx1151", "RDNA3.5", "Radeon 8060S", 40, 29.7e12, 59.4e12)
	gfx1152 = arch(AMD, "gfx1152", "RDNA3.5", "Radeon 860M", 8, 6.1e12, 12.3e12)
	gfx1200 = arch(AMD, "gfx1200", "RDNA4", "RX 9060 XT", 32, 25.6e12, 103e12)
	gfx1201 = arch(AMD, "gfx1201", "RDNA4", "RX 9070 XT", 64, 48.7e12, 195e12)

	xe    = arch(Intel, "xe", "Xe-LP", "UHD 770", 2, 0.79e12, 0)
	xehpg = arch(Intel, "xe-hpg", "Xe-HPG", "Arc A770", 32, 19.66e12, 157e12)
	xelpg = arch(Intel, "xe-lpg", "Xe-LPG", "Arc Graphics of Core Ultra", 8, 4.6e12, 0)
	xe2   = arch(Intel, "xe2", "Xe2", "Arc B580", 20, 13.67e12, 116.5e12)
	xe3   = arch(Intel, "xe3", "Xe3", "Arc Graphics of Core Ultra 300", 12, 0, 0)

	llvmpipe = arch(Mesa, "llvmpipe", "a processor", "", 0, 0, 0)
)

func arch(vendor uint32, name, family, card string, units int, flops, matrix float64) *Arch {
	return &Arch{Name: name, Family: family, Vendor: vendor, Card: card, Units: units, FLOPs: flops, MatrixFLOPs: matrix}
}
