package rowwise_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

func TestMain(m *testing.M) { kerneltest.Main(m) }
