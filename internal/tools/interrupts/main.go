// Command interrupts sends SIGINT and SIGTERM at random times to all commands of zincc and
// zincrun, and holds that each ends as it should: exit code 0, 1 with one line on standard
// error, or by the signal itself before the program has begun to handle it; that a file which
// was to be written is as it was before or is whole; and that nothing lies beside it.
//
//	interrupts --bin bin -n 200 model.gguf
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
)

func main() {
	bin := pflag.String("bin", "bin", "folder of zincc and zincrun")
	n := pflag.IntP("number", "n", 200, "signals to send")
	seed := pflag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the times")
	only := pflag.String("only", "", "only commands whose line contains this")
	pflag.Parse()
	failed, err := run(*bin, pflag.Args(), *n, *seed, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interrupts:", err)
	}
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}

func run(bin string, models []string, n int, seed uint64, only string) (failed int, err error) {
	if len(models) != 1 {
		return 0, fmt.Errorf("want one model, have %d", len(models))
	}
	dir, err := os.MkdirTemp("", "interrupts-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir}
	for _, path := range []*string{&bin, &models[0]} {
		if *path, err = filepath.Abs(*path); err != nil {
			return 0, err
		}
	}
	b.bin, b.model = bin, models[0]
	if err := b.prepare(only); err != nil {
		return 0, err
	}
	fmt.Printf("%d commands, seed %d\n", len(b.trials), seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	counts := map[string]int{}
	for i := range n {
		how, problem := b.interrupt(&b.trials[i%len(b.trials)], rng)
		counts[how]++
		if problem != "" {
			failed++
			fmt.Println(problem)
		}
	}
	fmt.Printf("%d signals: %d ended before, %d said so and ended with 1, %d ended by the signal before they handled it; %d failures\n",
		n, counts[ended], counts[told], counts[early], failed)
	return failed, nil
}
