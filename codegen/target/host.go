package target

import "github.com/zincc-dev/zincc/plans"

// host needs no driver: the runtime evaluates the op program in Go.
var host = &Target{
	Name:    "host",
	Doc:     "this computer's processor, without a driver or compiler",
	Backend: plans.Host,
	Wave:    1, Workgroup: 1, Units: 1, Rows: 512,
}
