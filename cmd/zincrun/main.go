// Command zincrun runs the plans that zincc makes.
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
	Name:  "zincrun",
	Short: "runs language models",
	Env:   "ZINCRUN_",
	Long: `
zincrun talks to a model, serves it, and measures it. Of a model file zincc first compiles a plan for this
computer, once; zincrun records the plan's commands and replays them for every token. On a computer without a GPU, plans
hold machine code for the processor.

  zincrun chat MODEL.gguf                       # or a name: zincrun chat hf.co/Qwen/Qwen3-8B-GGUF
  zincrun serve MODEL.gguf                      # a page to talk to it, and APIs
  zincrun MODEL.gguf -p "Once upon a time"      # continues a text`,
	Commands: []cli.Command{chatCommand, serveCommand, pullCommand, listCommand, rmCommand, psCommand, runCommand, runByName, embedCommand, logitsCommand, perplexityCommand, tokenizeCommand, templateCommand, schemaCommand, profileCommand, tuneCommand, verifyCommand, trustCommand, checkModelCommand, devicesCommand, doctorCommand, plansCommand, probeCommand, benchCommand},
}
