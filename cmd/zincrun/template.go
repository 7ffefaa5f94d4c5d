package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/models"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/text"
)

var templateCommand = cli.Command{
	Name:  "template",
	Args:  "MODEL.gguf|plan.bin|FILE.jinja [--context FILE.json]",
	Short: "render a chat template",
	Long: `
Prints the text that the model would read: its chat template, rendered with the variables of a JSON
object: messages, tools, add_generation_prompt, enable_thinking and
whatever else the template uses. bos_token and eos_token are the model's own. Without
--context it prints the template.

--tokens prints the tokens instead, each on a line with its id. A control token such as
<|im_end|> counts as one only where the template wrote it; in a message it is plain text.

An error in the template names its line and column.

  echo '{"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true}' >hi.json
  zincrun template model.gguf --context hi.json
  zincrun template model.gguf --context hi.json --tokens
  zincrun template new.jinja --context hi.json`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		from := f.String("context", "", "the file with the variables; - for standard input")
		tokens := f.Bool("tokens", false, "print the tokens")
		asJSON := f.Bool("json", false, "with --tokens, print the ids as a JSON list")
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "model, plan or template")
			if err != nil {
				return err
			}
			switch {
			case *tokens && *from == "":
				return cli.Usagef("--tokens needs a conversation: give --context")
			case *asJSON && !*tokens:
				return cli.Usagef("--json goes with --tokens")
			}
			if path, err = models.Path(ctx, path); err != nil {
				return err
			}
			vocab, err := readVocab(path)
			if err != nil {
				return err
			}
			if *tokens && len(vocab.Tokens) == 0 {
				return cli.Usagef("--tokens: a template has no tokens; name a model or a plan")
			}
			t, err := chat.New(vocab)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if t.Note() != "" {
				fmt.Fprintf(cli.Stderr, "zincrun: %s: %s\n", path, printable.Line(t.Note()))
			}
			if *from == "" {
				_, err := io.WriteString(cli.Stdout, t.Source())
				return err
			}
			variables, err := readInput(ctx, *from)
			if err != nil {
				return err
			}
			spans, err := t.RenderJSON(ctx, variables, time.Now())
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if !*tokens {
				_, err := io.WriteString(cli.Stdout, chat.Text(spans))
				return err
			}
			tok, err := text.New(vocab)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			ids, err := tok.EncodeSpans(ctx, spans)
			if err != nil {
				return err
			}
			return printTokens(tok, ids, *asJSON)
		}
	},
}

// readVocab reads the vocabulary of a model or a plan; of a template's source only
// that is known.
func readVocab(path string) (plans.Vocab, error) {
	if strings.HasSuffix(path, ".jinja") || strings.HasSuffix(path, ".j2") {
		source, err := os.ReadFile(path)
		return plans.Vocab{ChatTemplate: string(source)}, err
	}
	if gguf.Is(path) {
		f, err := gguf.OpenHeader(path)
		if err != nil {
			return plans.Vocab{}, err
		}
		defer f.Close()
		v, err := plans.ReadVocab(f)
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return v, err
	}
	plan, err := plans.Read(path)
	if err != nil {
		return plans.Vocab{}, err
	}
	defer plan.Close()
	return plan.Vocab, nil
}

// readInput reads a file, or standard input for -.
func readInput(ctx context.Context, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(cli.Stdin(ctx))
	}
	return os.ReadFile(path)
}

// printTokens prints ids, a line each with the token's text or as a list.
func printTokens(tok *text.Tokenizer, ids []int32, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(cli.Stdout).Encode(ids)
	}
	w := bufio.NewWriter(cli.Stdout)
	for _, id := range ids {
		fmt.Fprintf(w, "%6d %q\n", id, tok.Piece(id, true))
	}
	return w.Flush()
}
