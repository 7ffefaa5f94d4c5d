// Command emulated runs plans for processors on the one that it is emulated on. It prints four tokens of each, and
// fails if dispatches of the first do not agree with the oracle.
//
//	emulated DENSE.bin [PLAN.bin ...]
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu"
	"github.com/zincc-dev/zincc/runtime/cpu/cputest"
)

func main() {
	for i, path := range os.Args[1:] {
		if err := run(path, i == 0); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func run(path string, dense bool) error {
	plan, err := plans.Read(path)
	if err != nil {
		return err
	}
	defer plan.Close()
	src, err := plans.OpenSource(plan, path, "")
	if err != nil {
		return err
	}
	defer src.Close()
	x, err := cpu.New(context.Background(), plan, src, cpu.Options{Threads: 2})
	if err != nil {
		return err
	}
	defer x.Close()
	tokens, err := cputest.Greedy(context.Background(), plan, x, 4)
	if err != nil {
		return err
	}
	fmt.Println(tokens)
	if !dense {
		return nil
	}
	return cputest.Verify(context.Background(), plan, src, x)
}
