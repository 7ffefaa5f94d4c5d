//go:build !linux && !windows

package native

import "github.com/ebitengine/purego"

// yield is the address of the system's function that lets other threads run; 0 without one.
var yield, _ = purego.Dlsym(purego.RTLD_DEFAULT, "sched_yield")
