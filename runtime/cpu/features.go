package cpu

import (
	"slices"

	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/plans"
)

// Capabilities are what this processor offers.
func Capabilities() plans.Capabilities {
	have := map[string]bool{}
	names := processor.Known()
	missing := processor.Missing(names)
	for _, name := range names {
		have[name] = !slices.Contains(missing, name)
	}
	refused := map[string]string{}
	if err := processor.TilesRefused(); err != nil {
		refused[processor.Tile] = err.Error()
	}
	return plans.Capabilities{CPU: plans.CPUCapabilities{Arch: processor.Arch, Features: have, Refused: refused}}
}
