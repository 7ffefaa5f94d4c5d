package plans

// The backends: what runs a plan.
const (
	Host   = "host"   // the oracle, in Go: no kernels
	Vulkan = "vulkan" // any Vulkan driver
	CUDA   = "cuda"   // NVIDIA's driver
	CPU    = "cpu"    // machine code for the processor
)
