// Command zincc compiles a GGUF language model ahead of time for one device.
package main

import (
	"os"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/internal/cli"
)

func main() {
	radv.Main() // in the processes that ask AMD's compiler, this does not return
	os.Exit(program.Main())
}

var program = &cli.Program{
	Name:  "zincc",
	Short: "compiles a language model ahead of time for one device",
	Long: `
zincc reads a GGUF file and writes plan.bin: kernels specialized for the model and
the device, a memory map, and the command stream that zincrun replays for every
token. zincc decides what can be decided before the first token, and the plan
shows each decision.

  zincc compile model.gguf --target native -o plan.bin
  zincrun plan.bin -p "Once upon a time"`,
	Commands: []cli.Command{compileCommand, dumpCommand, inspectCommand, diffCommand, estimateCommand, tuneCommand, checkCommand, targetsCommand},
}
