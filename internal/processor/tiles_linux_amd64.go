package processor

import (
	"fmt"
	"sync"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// arch_prctl(2) and Documentation/arch/x86/xstate.rst of Linux.
const (
	archReqXcompPerm = 0x1023
	xfeatureTileData = 18
)

// TilesRefused says why the system does not give this process the tiles that the processor has; nil where it does, and
// where there are none. It has to be asked once, for all threads.
var TilesRefused = sync.OnceValue(func() error {
	if !cpu.X86.HasAMXTile {
		return nil
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archReqXcompPerm, xfeatureTileData, 0); errno != 0 {
		return fmt.Errorf("the system refuses tiles of AMX: %w", errno)
	}
	return nil
})
