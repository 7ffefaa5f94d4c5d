// Command grammars tries package runtime/grammar with what others publish: schemas, documents and tokenizers.
//
//	go run ./grammars suite DIR                       decide the documents of the JSON-Schema-Test-Suite
//	go run ./grammars coverage PATH...                which schemas are taken, and what of others is refused
//	go run ./grammars masks --tokenizer FILE PATH...  compare masks with every token tried by itself
//	go run ./grammars bench --tokenizer FILE PATH...  how long masks take
//	go run ./grammars walk --tokenizer FILE PATH...   write random texts along masks, and validate them
//	go run ./grammars split --tokenizer FILE DIR      take the suite's valid documents apart into tokens at random
//
// Tokenizers are the tokenizer.json of a model. PATH is a JSON schema, an OpenAPI description, a request with tools, or
// a folder of such. It ends with exit code 1 where a document is decided wrongly, a mask differs or coverage is below
// 95 %.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// walkTokens is how many tokens a random walk of masks has at most.
const walkTokens = 60

// options are the flags.
type options struct {
	tokenizers []string
	states     int
	seed       uint64
	verbose    bool
	walks      int
	cpu        bool
	orders     map[*grammar.Vocabulary][]int32 // tokens by their text
}

var commands = map[string]func(o *options, args []string) error{
	"suite": suite, "coverage": coverage, "masks": masks, "bench": bench, "walk": walk, "split": split,
}

func main() {
	o := options{orders: map[*grammar.Vocabulary][]int32{}}
	pflag.StringSliceVar(&o.tokenizers, "tokenizer", nil, "tokenizer.json of a model")
	pflag.IntVar(&o.states, "states", 10000, "how many states masks compares")
	pflag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the random walks")
	pflag.IntVar(&o.walks, "walks", 100000, "how many texts walk writes, and split takes apart")
	pflag.BoolVar(&o.cpu, "cpu", false, "measure the processor time of the thread")
	pflag.BoolVarP(&o.verbose, "verbose", "v", false, "say what is refused, and where")
	pflag.Parse()
	run := commands[pflag.Arg(0)]
	if run == nil || pflag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "grammars: want suite, coverage, masks, bench, walk or split, and files or folders")
		os.Exit(2)
	}
	if err := run(&o, pflag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "grammars:", err)
		os.Exit(1)
	}
}
