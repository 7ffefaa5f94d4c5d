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
	Long: `
zincrun loads a plan and its weights, records the plan's command buffers once, and
replays them for every token. On a computer without a GPU plans are for the processor, and
hold its machine code. With --device host the op program stored in the plan is evaluated
instead: slower, for comparison.

  zincrun plan.bin -p "Once upon a time" -n 64
  zincrun plan.bin                              # interactive: each line is continued`,
	Commands: []cli.Command{runCommand, runByName, chatCommand, serveCommand, embedCommand, logitsCommand, perplexityCommand, tokenizeCommand, templateCommand, profileCommand, tuneCommand, verifyCommand, trustCommand, checkModelCommand, devicesCommand, plansCommand, probeCommand, benchCommand},
}
