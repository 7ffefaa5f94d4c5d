package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/library"
	"github.com/zincc-dev/zincc/runtime/pull"
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
		models := declareModels(f)
		return func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("name a model: hf.co/ORG/REPO[:QUANT], NAME[:TAG] of Ollama's library, or a URL")
			}
			l, err := library.Open(*models)
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
				path, err := fetch(ctx, l.Dir, ref)
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

// fetch pulls a model, and shows how far it is.
func fetch(ctx context.Context, dir string, ref library.Ref) (path string, err error) {
	c, err := pull.New(dir)
	if err != nil {
		return "", err
	}
	bar := &pullBar{Progress: cli.NewProgress("pulling", 0)}
	defer bar.Done()
	c.Said = said
	c.Progress = bar.show
	return c.Pull(ctx, ref)
}

// pullBar says how much there is, how fast it comes, and how long the rest takes.
type pullBar struct {
	*cli.Progress
	begun bool
	rate  float64 // bytes a second, over some seconds
	at    time.Time
	done  int64
}

func (b *pullBar) show(p pull.Progress) {
	now := time.Now()
	if !b.begun {
		b.begun, b.at, b.done = true, now, p.Done
	}
	if took := now.Sub(b.at).Seconds(); took >= 0.5 {
		rate := float64(p.Done-b.done) / took
		if b.rate == 0 {
			b.rate = rate
		}
		b.rate += (rate - b.rate) * min(1, took/5)
		b.at, b.done = now, p.Done
	}
	if p.Total > 0 {
		b.Say(progressLine(p, b.rate))
	}
}

func progressLine(p pull.Progress, rate float64) string {
	parts := []string{fmt.Sprintf("%3d %%", 100*p.Done/p.Total), fmt.Sprintf("%s of %s", table.Bytes(p.Done), table.Bytes(p.Total))}
	if p.Step == "pulling" && rate > 0 {
		rest := time.Duration(float64(p.Total-p.Done) / rate * float64(time.Second))
		parts = append(parts, table.Bytes(rate).String()+"/s", rest.Round(time.Second).String()+" left")
	}
	return p.Step + " " + strings.Join(parts, "  ") + "  " + printable.Line(p.File)
}
