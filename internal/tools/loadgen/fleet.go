package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/internal/tools/loadgen/fleet"
)

var fleetCommand = cli.Command{
	Name:  "fleet",
	Args:  "STEPS.json [flags]",
	Short: "simulate several servers behind a router, from measured step times",
	Long: `
Says what users would wait for if 1, 2, 4, ... of the measured servers stood behind a router: nothing is run. The step
times are those of loadgen steps. The work is a mix of conversations, which begin at random times, or a trace: lines of
JSON with "at" (seconds), "conversation", "prompt" and "answer" (tokens; a prompt with all turns before it), and if
there is one "system" and "system_tokens".

  loadgen fleet 8b.json --servers 1,2,4 --rate 2 --turns 4 --system 2000
  loadgen fleet 8b.json --servers 2 --router round-robin --trace day.jsonl

The router "prefix" sends a request where its first token is expected first: of what a server holds of its prompt, and
what waits there. The same seed gives the same figures. Not simulated: models with recurrent state, which find less of
their prompts; bursts of greedy tokens; copies between slots; the network. Times are as good as their measurement.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		m := fleet.Mix{}
		var servers []int
		var router, trace string
		var itl, think time.Duration
		var asJSON bool
		f.IntSliceVar(&servers, "servers", []int{1, 2, 4}, "numbers of servers to simulate")
		f.StringVar(&router, "router", string(fleet.Prefix), "prefix or round-robin")
		f.StringVar(&trace, "trace", "", "file of requests, instead of a mix of conversations")
		f.DurationVar(&itl, "itl", 50*time.Millisecond, "the servers' --itl")
		f.IntVar(&m.Conversations, "conversations", 200, "conversations in all")
		f.Float64Var(&m.Rate, "rate", 1, "conversations that begin in a second")
		f.IntVar(&m.Turns, "turns", 4, "turns of a conversation")
		f.DurationVar(&think, "think", 5*time.Second, "mean time from an answer to the next turn")
		f.IntVar(&m.Systems, "systems", 1, "different system prompts")
		f.IntVar(&m.SystemTokens, "system", 0, "tokens of a system prompt")
		f.IntVarP(&m.Prompt, "prompt", "p", 256, "new tokens of a turn")
		f.IntVarP(&m.Answer, "answer", "n", 128, "tokens of an answer")
		f.Uint64Var(&m.Seed, "seed", 1, "seed of arrivals")
		f.BoolVar(&asJSON, "json", false, "print JSON")
		return func(_ context.Context, args []string) error {
			path, err := cli.OneArg(args, "file of steps")
			if err != nil {
				return err
			}
			for _, c := range []struct {
				flag, want string
				ok         bool
			}{
				{"servers", "a list of 1 to 4096", len(servers) > 0},
				{"router", "prefix or round-robin", router == string(fleet.Prefix) || router == string(fleet.RoundRobin)},
				{"itl", "more than 0", itl > 0},
				{"conversations", "1 to 1000000", m.Conversations >= 1 && m.Conversations <= 1e6},
				{"rate", "more than 0, to 1000000", m.Rate > 0 && m.Rate <= 1e6},
				{"turns", "1 to 1000", m.Turns >= 1 && m.Turns <= 1000},
				{"think", "0 or more", think >= 0},
				{"systems", "0 to 1000000", m.Systems >= 0 && m.Systems <= 1e6},
				{"system", "0 to 10000000", m.SystemTokens >= 0 && m.SystemTokens <= 1e7},
				{"prompt", "1 to 10000000", m.Prompt >= 1 && m.Prompt <= 1e7},
				{"answer", "1 to 10000000", m.Answer >= 1 && m.Answer <= 1e7},
			} {
				if !c.ok {
					return cli.Usagef("--%s: want %s", c.flag, c.want)
				}
			}
			for _, n := range servers {
				if n < 1 || n > 4096 {
					return cli.Usagef("--servers: want a list of 1 to 4096")
				}
			}
			m.Think = think.Seconds()
			s, err := readSteps(path)
			if err != nil {
				return err
			}
			simulate := m.Simulate
			if trace != "" {
				all, err := readTraceFile(trace)
				if err != nil {
					return err
				}
				simulate = func(s *fleet.Steps, o fleet.Options) (*fleet.Result, error) { return fleet.Trace(s, o, all) }
			}
			t := fleetTable()
			for _, n := range servers {
				r, err := simulate(s, fleet.Options{Servers: n, Router: fleet.Router(router), ITL: itl.Seconds()})
				if err != nil {
					return err
				}
				addFleet(t, n, r)
			}
			write := table.WriteText
			if asJSON {
				write = table.WriteJSON
			}
			return write(cli.Stdout, t)
		}
	},
}

func readTraceFile(path string) ([]fleet.Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := fleet.ReadTrace(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

func fleetTable() *table.Table {
	return &table.Table{Title: "fleet", Columns: []string{"servers", "tok/s", "TTFT ms", "ITL ms", "found %", "most waiting", "most of a server", "done", "refused", "seconds"}}
}

// addFleet adds a row. Pairs are the median and the 99th percentile.
func addFleet(t *table.Table, servers int, r *fleet.Result) {
	most := 0
	for _, n := range r.Shares {
		most = max(most, n)
	}
	t.Add(servers, float64(r.Output)/max(r.Seconds, 1e-9), pair(inMS(r.TTFT)), pair(inMS(r.ITL)), 100*float64(r.Cached)/float64(max(1, r.Prompt)),
		r.MostWaiting, most, r.Requests, r.Refused, r.Seconds)
}

func inMS(seconds []float64) latencies {
	l := make(latencies, len(seconds))
	for i, s := range seconds {
		l[i] = 1e3 * s
	}
	return l
}
