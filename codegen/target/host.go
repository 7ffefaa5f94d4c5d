package target

// host needs no driver: the runtime evaluates the op program in Go.
var host = &Target{
	Name: "host",
	Doc:  "this computer's processor, without a driver or compiler",
	Host: true,
	Wave: 1, Workgroup: 1, Units: 1, Rows: 512,
}
