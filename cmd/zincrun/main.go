// Command zincrun runs the plans that zincc makes.
package main

import (
	"os"

	"github.com/zincc-dev/zincc/internal/cli"
)

func main() { os.Exit(program.Main()) }

var program = &cli.Program{
	Name:  "zincrun",
	Short: "runs a plan made by zincc",
	Env:   "ZINCRUN_",
	Long: `
zincrun loads a plan and its weights, records the plan's command buffers once, and
replays them for every token. On a computer without a GPU, plans hold machine code for
the processor. --device host evaluates the plan's op program instead: slower, for
comparison.

  zincrun plan.bin -p "Once upon a time" -n 64
  zincrun plan.bin                              # interactive: continues each line`,
	Commands: []cli.Command{runCommand, runByName, chatCommand, serveCommand, pullCommand, listCommand, rmCommand, psCommand, embedCommand, logitsCommand, perplexityCommand, tokenizeCommand, templateCommand, schemaCommand, profileCommand, tuneCommand, verifyCommand, trustCommand, checkModelCommand, devicesCommand, plansCommand, probeCommand, benchCommand},
}
