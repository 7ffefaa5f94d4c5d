package runtime

// ProbeResult is what the cost model needs to know of a device, as measured. Times are in seconds.
type ProbeResult struct {
	ReadBandwidth  float64         `json:"read_bandwidth"`  // bytes a second, of the best grid
	ReadWorkgroups int             `json:"read_workgroups"` // that grid
	Dispatches     []DispatchProbe `json:"dispatches"`
	SubmitBest     float64         `json:"submit_best"` // an empty submission and the wait for it
	SubmitMean     float64         `json:"submit_mean"`
	// Fragments: lanes hold the elements of matrices of 16x8x16 that plans rely on where they
	// require plans.VulkanRequirements.Fragments. PTX says it: it is not tried there.
	Fragments bool `json:"fragments"`
}

// DispatchProbe is the cost of an empty dispatch of so many workgroups among
// others: alone, and with a barrier between it and the next.
type DispatchProbe struct {
	Workgroups int     `json:"workgroups"`
	Alone      float64 `json:"alone,omitempty"` // 0: not measured
	Barrier    float64 `json:"barrier"`
}
