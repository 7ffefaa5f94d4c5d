package runtime

// ProbeResult holds the measured figures of a device that the cost model needs. Times are in seconds.
type ProbeResult struct {
	ReadBandwidth  float64         `json:"read_bandwidth"`  // bytes a second, of the best grid
	ReadWorkgroups int             `json:"read_workgroups"` // that grid
	Dispatches     []DispatchProbe `json:"dispatches"`
	SubmitBest     float64         `json:"submit_best"` // an empty submission and the wait for it
	SubmitMean     float64         `json:"submit_mean"`
	// Fragments: lanes hold the elements of matrices of 16x8x16 on which plans with
	// plans.VulkanRequirements.Fragments rely. PTX defines this, so CUDA devices are not tested.
	Fragments bool `json:"fragments"`
}

// DispatchProbe is the cost of an empty dispatch of that many workgroups among
// others: without and with a barrier behind it.
type DispatchProbe struct {
	Workgroups int     `json:"workgroups"`
	Alone      float64 `json:"alone,omitempty"` // 0: not measured
	Barrier    float64 `json:"barrier"`
}
