// Command soak looks for wrong bits: a model writes answers of a thousand tokens, as many at a time as the plan has
// slots, and a hash of each is compared with that of the same answer written alone, before.
//
//	soak plan.bin --tokens 864000     what a reader of 10 tokens a second reads in a day
//
// It ends with exit code 1 if a hash differs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/model"
)

// options are the flags.
type options struct {
	device string
	tokens int
	limit  time.Duration
}

func main() {
	o := options{}
	pflag.StringVar(&o.device, "device", "auto", "auto, cuda, cuda:I, vulkan, vulkan:I, cpu or host")
	pflag.IntVarP(&o.tokens, "tokens", "n", 864_000, "tokens to compare")
	pflag.DurationVar(&o.limit, "time", time.Hour, "stop after this, whatever has been compared")
	pflag.Parse()
	if pflag.NArg() != 1 || o.tokens < answerTokens || o.limit <= 0 {
		fmt.Fprintf(os.Stderr, "soak: want a plan, --tokens of %d and more and a --time\n", answerTokens)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, pflag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, path string) error {
	opened, err := model.Open(ctx, path, model.Options{Device: o.device})
	if err != nil {
		return err
	}
	defer opened.Close()
	tok, err := opened.Tokenizer()
	if err != nil {
		return err
	}
	e, err := engine.New(opened.Plan, opened.Exec, tok, engine.Options{})
	if err != nil {
		return err
	}
	defer e.Close()
	h := &opened.Plan.Header
	fmt.Fprintf(os.Stderr, "soak: %s on %s, %d answers at a time\n", h.Model.Name, opened.Exec.Device(), h.Slots)
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	s := &soak{writer: writer(e, h.Model.Vocab), answers: differentAnswers, users: h.Slots}
	start := time.Now()
	err = s.run(ctx, o.tokens/answerTokens)
	took := time.Since(start)
	fmt.Printf("%d answers of %d tokens compared, %d differ; %d tokens in %s, %.0f a second\n",
		s.compared, answerTokens, s.wrong, s.tokens(), took.Round(time.Second/10), float64(s.tokens())/took.Seconds())
	switch {
	case s.wrong > 0:
		return errors.New("answers differ from what was written alone")
	case s.compared > 0 && errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return err
}
