package attention_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

func TestMain(m *testing.M) { kerneltest.Main(m, spare...) }

// spare are the barriers that order nothing which others do not order.
var spare = []racetest.Spare{
	{Kernel: "attention_lanes", File: "attention/attention_lanes.go", Why: onProcessors},
	{Kernel: "attention_split", File: "attention/attention_split_lanes.go", Why: onProcessors},
}

const onProcessors = "barriers are nothing on processors, for which the kernel is"
