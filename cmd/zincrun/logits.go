package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/runtime"
)

var logitsCommand = cli.Command{
	Name:  "logits",
	Args:  "plan.bin (-p TEXT | -f FILE | --tokens 1,2,3) -o out.f32",
	Short: "write the logits after every token of a text",
	Long:  "The file holds little-endian float32 [tokens, vocabulary].",
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var plan planFlags
		var prompt promptFlags
		prompt.declare(f)
		tokens := f.String("tokens", "", "token ids instead of text, separated by commas")
		out := f.StringP("output", "o", "", "file to write")
		plan.declare(f)
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "plan")
			if err != nil {
				return err
			}
			s, given, err := prompt.read(ctx, f)
			if err != nil {
				return err
			}
			if given == (*tokens != "") || *out == "" {
				return cli.Usagef("want -o and one of -p, -f and --tokens")
			}
			ids, err := parseTokens(*tokens)
			if err != nil {
				return err
			}
			open := plan.open
			if given {
				open = plan.openText
			}
			o, err := open(ctx, path)
			if err != nil {
				return err
			}
			defer o.Close()
			if err := o.checkOutput(*out, prompt.file); err != nil {
				return err
			}
			if given {
				ids = encode(o.tok, s)
			}
			if len(ids) == 0 {
				return cli.Usagef("the text has no tokens: there are no logits to write")
			}
			return writeLogits(ctx, o, ids, *out)
		}
	},
}

func parseTokens(list string) ([]int32, error) {
	if list == "" {
		return nil, nil
	}
	var ids []int32
	for _, s := range strings.Split(list, ",") {
		id, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
		if err != nil {
			return nil, cli.Usagef("--tokens: %q is not a token id", s)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

func writeLogits(ctx context.Context, o *opened, ids []int32, path string) error {
	var written, scored error // of the file; of either
	bar := cli.NewProgress("reading the text", int64(len(ids)))
	defer bar.Done()
	err := outfile.Write(path, func(w io.Writer) error {
		scored = runtime.NewSession(o.Plan, o.Exec).Score(ctx, ids, func(_ int, logits []float32) error {
			bar.Add(1)
			written = binary.Write(w, binary.LittleEndian, logits)
			return written
		})
		return scored
	})
	switch {
	case scored != nil && written == nil: // the file has no part in it
		return scored
	case err != nil:
		return err
	}
	bar.Done()
	fmt.Fprintf(cli.Stderr, "%s: %d x %d float32\n", path, len(ids), o.Plan.Header.Model.Vocab)
	return nil
}
