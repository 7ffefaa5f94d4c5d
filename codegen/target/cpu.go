package target

import (
	"fmt"
	"runtime"

	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/plans"
)

// CPU begins the names of targets whose kernels are machine code for processors; alone, it is the
// processor at hand.
const CPU = "cpu"

// processors has a target for each machine that there is code for. A workgroup is a subgroup of 16
// lanes, which vectors hold; its shared memory is a thread's, bounded by what stays in the caches of
// a core. Units are the threads of a small server. Bandwidth and operations are those of the reference of plans, about
// two cores of an EPYC of the fourth generation; a step takes less than 0.5 us there.
var processors = func() (list []*Target) {
	for _, m := range llvm.Machines {
		list = append(list, &Target{
			Name: CPU + ":" + m.Name, Doc: "processors with " + m.Doc, Backend: plans.CPU, Machine: m.Name,
			Wave: llvm.Lanes, Workgroup: llvm.Lanes, Shared: m.Shared, Tiles: m.Tiles, Units: 8, Rows: 512, Dot: true, UnsignedDot: m.Wide(),
			LaneRows: true, FewKernels: true, ArgmaxPart: 1024, // a thread has the logits that it wrote in its cache
			Bandwidth: plans.ReferenceBytes, FLOPs: plans.ReferenceFLOPs, Stage: 0.5e-6,
		})
	}
	return list
}()

// Cores is how many cores predictions for people count with, 0 for other devices than processors: those that Go may use
// here, two where the target is of another computer.
func Cores(t *Target) int {
	switch m, err := llvm.MachineOf(t.Machine); {
	case !t.Processor():
		return 0
	case err == nil && m.Here():
		return runtime.GOMAXPROCS(0)
	}
	return 2
}

// thisProcessor returns the target of the processor at hand: of the machines that it is, the best.
func thisProcessor() (best *Target, err error) {
	for i, m := range llvm.Machines {
		if m.Here() {
			best = processors[i]
		}
	}
	if best == nil {
		return nil, fmt.Errorf("target cpu: this processor lacks features that every kind of processor in `zincc targets` needs; target host runs on it")
	}
	return best, nil
}
