package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime"
)

var embedCommand = cli.Command{
	Name:  "embed",
	Args:  "MODEL.gguf|plan.bin (-p TEXT [-p TEXT]... | -f FILE)",
	Short: "turn texts into vectors with an embedding model",
	Long: `
For models such as Qwen3-Embedding, whose file says how a text becomes a vector (pooling_type:
last or mean). Prints a line for each text: the number of dimensions, then the numbers. Vectors
have length 1, so their inner product is the cosine of the angle between them.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var plan planFlags
		var one promptFlags
		texts := f.StringArrayP("prompt", "p", nil, "a text (repeatable)")
		f.StringVarP(&one.file, "file", "f", "", "the file that holds one text; - for standard input")
		plan.declare(f)
		asJSON := f.Bool("json", false, "print a JSON object for each text: its tokens and its vector")
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "plan")
			if err != nil {
				return err
			}
			all := *texts
			if len(all) == 0 {
				s, given, err := one.read(ctx, f)
				if err != nil {
					return err
				}
				if !given {
					return cli.Usagef("no text: give -p or -f")
				}
				all = []string{s}
			} else if one.file != "" {
				return cli.Usagef("give either -p or -f")
			}
			o, err := plan.openText(ctx, path)
			if err != nil {
				return err
			}
			defer o.Close()
			if runtime.Ranks(o.Plan) {
				return ir.Unsupported("%s: %s", path, runtime.ErrRanks)
			}
			sess := runtime.NewSession(o.Plan, o.Exec)
			for _, s := range all {
				ids := encode(o.tok, s)
				bar := cli.NewProgress("reading the text", 0)
				v, err := sess.Embed(ctx, ids)
				bar.Done()
				if err != nil {
					return err
				}
				if err := printVector(cli.Stdout, len(ids), v, *asJSON); err != nil {
					return err
				}
			}
			return nil
		}
	},
}

func printVector(w io.Writer, tokens int, v []float32, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(struct {
			Tokens    int       `json:"tokens"`
			Embedding []float32 `json:"embedding"`
		}{tokens, v})
	}
	line := []byte(fmt.Sprintf("%d:", len(v)))
	for _, x := range v {
		line = strconv.AppendFloat(append(line, ' '), float64(x), 'g', -1, 32)
	}
	_, err := w.Write(append(line, '\n'))
	return err
}
