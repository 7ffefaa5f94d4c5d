// Command loadgen puts load on servers that speak OpenAI's completions: `loadgen URL` measures one,
// `loadgen compare` zincrun and llama-server by turns, `loadgen turns` what conversations that go on wait for,
// `loadgen soak` looks for what a server loses or gets wrong, `loadgen steps` measures a server's steps, and
// `loadgen fleet` simulates several such servers.
package main

import (
	"os"

	"github.com/zincc-dev/zincc/internal/cli"
)

func main() {
	p := &cli.Program{
		Name:  "loadgen",
		Short: "puts load on a server of language models",
		Long: `
Measures what users of a server wait for: the first token, each further one, the whole answer.
Servers must have POST /v1/completions and /tokenize; zincrun serve and llama-server do.`,
		Commands: []cli.Command{runCommand, compareCommand, soakCommand, stepsCommand, fleetCommand, turnsCommand},
	}
	os.Exit(p.Main())
}
