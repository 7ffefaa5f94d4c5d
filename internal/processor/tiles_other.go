//go:build !(linux && amd64)

package processor

import (
	"errors"

	"golang.org/x/sys/cpu"
)

// TilesRefused says why the system does not give this process the tiles that the processor has; nil where it does, and
// where there are none.
func TilesRefused() error {
	if !cpu.X86.HasAMXTile {
		return nil
	}
	return errors.New("tiles of AMX are used on Linux alone")
}
