package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/models"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/runtime/library"
)

var pullCommand = cli.Command{
	Name:  "pull",
	Args:  "NAME... [--models DIR]",
	Short: "fetch models",
	Long: `
Fetches models into the models folder, where every command finds them by name. A pull that ended early goes on
where it was; sums are checked at the end. zincrun list shows what is there.

  zincrun pull hf.co/Qwen/Qwen3-8B-GGUF          # of a repository: Q4_K_M, or its only model
  zincrun pull hf.co/Qwen/Qwen3-8B-GGUF:Q8_0     # another quantization
  zincrun pull qwen3:8b                          # a name of Ollama's library
  zincrun pull https://example.org/m.gguf
  zincrun chat hf.co/Qwen/Qwen3-8B-GGUF          # pulls first

HF_TOKEN is a token for gated and private repositories, HF_ENDPOINT another hub of Hugging Face's protocol,
ZINCRUN_REGISTRY another registry of Ollama's. The models folder is --models, else ZINCRUN_MODELS, else
zincc/models in the user's folder for data.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		dir := declareModels(f)
		return func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("name a model: hf.co/ORG/REPO[:QUANT], NAME[:TAG] of Ollama's library, or a URL")
			}
			l, err := library.Open(*dir)
			if err != nil {
				return err
			}
			var refs []library.Ref
			for _, arg := range args {
				ref, err := library.ParseRef(arg)
				if err != nil {
					return cli.Usagef("%s", err)
				}
				refs = append(refs, ref)
			}
			for _, ref := range refs {
				path, err := models.Fetch(ctx, l.Dir, ref)
				if err != nil {
					return err
				}
				fmt.Fprintf(cli.Stdout, "%s: %s\n", ref, printable.Line(path))
			}
			return nil
		}
	},
}

func declareModels(f *pflag.FlagSet) *string {
	return f.String("models", "", "the models folder (default ZINCRUN_MODELS, else zincc/models in the user's folder for data)")
}
