package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/internal/tools/loadgen/fleet"
)

var stepsCommand = cli.Command{
	Name:  "steps",
	Args:  "URL -o FILE [flags]",
	Short: "measure the step times of one zincrun server, for loadgen fleet",
	Long: `
Puts 1, 2, 4, ... users on the server, up to its slots, with prompts of each of --depths tokens, and writes what the
server's /load says that its steps took meanwhile: a JSON file for loadgen fleet. Nothing else may use the server.

  loadgen steps http://127.0.0.1:8080 -o 8b.json`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var depths []int
		var out, model string
		var limit time.Duration
		var remote bool
		f.IntSliceVar(&depths, "depths", []int{512, 4096}, "tokens of prompts; at least as many as the server reads of a prompt in one step")
		f.StringVarP(&out, "output", "o", "", "file to write")
		f.StringVar(&model, "model", "", "name of the model, where the server has several")
		f.DurationVar(&limit, "time", time.Minute, "for each number of users and depth")
		f.BoolVar(&remote, "remote", false, "the server may be another computer")
		return func(ctx context.Context, args []string) error {
			base, err := cli.OneArg(args, "URL")
			switch {
			case err != nil:
				return err
			case out == "":
				return cli.Usagef("-o: want a file")
			case len(depths) == 0 || slices.Min(depths) < 1 || limit <= 0:
				return cli.Usagef("--depths, --time: want more than 0")
			}
			c, err := newClient(base, model, remote)
			if err != nil {
				return err
			}
			s, err := measureSteps(ctx, c, depths, limit)
			if err != nil {
				return err
			}
			return outfile.Write(out, func(w io.Writer) error {
				e := json.NewEncoder(w)
				e.SetIndent("", "  ")
				return e.Encode(s)
			})
		}
	},
}

// loadOf is what /load says of a model.
type loadOf struct {
	Model   string
	Status  string
	Device  string
	Ctx     int
	Slots   []struct{}
	Entries []struct {
		Name  string
		Steps int64
		MS    float64 `json:"ms"`
	}
}

// loaded asks what the model's steps took until now.
func (c *client) loaded(ctx context.Context) (*loadOf, error) {
	var reply struct{ Models []loadOf }
	if err := c.call(ctx, "GET", "/load", nil, &reply); err != nil {
		return nil, err
	}
	for _, m := range reply.Models {
		if m.Status == "loaded" && (c.model == "" || c.model == m.Model) {
			return &m, nil
		}
	}
	return nil, errors.New("GET /load: the model is not loaded")
}

// stepsAnswer is how many tokens answers have while steps are measured.
const stepsAnswer = 32

// measureSteps measures a server's steps.
func measureSteps(ctx context.Context, c *client, depths []int, limit time.Duration) (*fleet.Steps, error) {
	seed := uint64(rand.Uint32()) // what an earlier run asked is in the server's cache
	p, err := newPrompts(ctx, c, seed)
	if err != nil {
		return nil, err
	}
	warm := load{users: 2, requests: 4, limit: limit, prompt: slices.Min(depths), answer: stepsAnswer, sampler: sampler{Temp: 1}, seed: seed}
	if _, err := warm.answered(ctx, c, p); err != nil {
		return nil, err
	}
	first, err := c.loaded(ctx)
	if err != nil {
		return nil, err
	}
	s := &fleet.Steps{Model: first.Model, Device: first.Device, Slots: len(first.Slots), Ctx: first.Ctx}
	sums := stepSums{}
	alone := stepSum{} // the host's time of one user's steps
	for _, depth := range depths {
		if depth+stepsAnswer > s.Ctx {
			return nil, cli.Usagef("--depths: %d and answers of %d do not fit the %d positions of a slot", depth, stepsAnswer, s.Ctx)
		}
		for users := 1; ; users = min(2*users, s.Slots) {
			before, err := c.loaded(ctx)
			if err != nil {
				return nil, err
			}
			seed++
			// Tokens are sampled: one a step, as in the simulation.
			wall, err := load{users: users, requests: 2 * users, limit: limit, prompt: depth, answer: stepsAnswer, sampler: sampler{Temp: 1}, seed: seed}.answered(ctx, c, &prompts{p.ids, seed})
			if err != nil {
				return nil, err
			}
			after, err := c.loaded(ctx)
			if err != nil {
				return nil, err
			}
			if all := sums.add(before, after, depth); users == 1 {
				alone = stepSum{alone.steps + all.steps, alone.ms + max(0, ms(wall)-all.ms)}
			}
			if users == s.Slots {
				break
			}
		}
	}
	s.HostMS = alone.ms / float64(max(1, alone.steps))
	s.Times = sums.times()
	return s, nil
}

// stepKey is an entry behind so many tokens, stepSum what its steps took together.
type stepKey struct {
	name  string
	depth int
}

type stepSum struct {
	steps int64
	ms    float64
}

type stepSums map[stepKey]stepSum

// add adds the steps between two replies of /load, with prompts of depth tokens, and returns them all together.
func (s stepSums) add(before, after *loadOf, depth int) (all stepSum) {
	for _, e := range after.Entries {
		d := stepSum{e.Steps, e.MS}
		for _, b := range before.Entries {
			if b.Name == e.Name {
				d = stepSum{e.Steps - b.Steps, e.MS - b.MS}
			}
		}
		k := stepKey{e.Name, depth + stepsAnswer/2}
		if strings.HasPrefix(e.Name, "prefill/") {
			k.depth = depth / 2
		}
		s[k] = stepSum{s[k].steps + d.steps, s[k].ms + d.ms}
		all = stepSum{all.steps + d.steps, all.ms + d.ms}
	}
	return all
}

// times are the mean times of the entries that generate and read prompts.
func (s stepSums) times() (all []fleet.Time) {
	for k, v := range s {
		kind, rows, _ := strings.Cut(k.name, "/")
		n, err := strconv.Atoi(rows)
		if v.steps > 0 && err == nil && (kind == "decode" || kind == "prefill") {
			all = append(all, fleet.Time{Kind: kind, Rows: n, Depth: k.depth, MS: v.ms / float64(v.steps)})
		}
	}
	slices.SortFunc(all, func(a, b fleet.Time) int {
		return 4*strings.Compare(a.Kind, b.Kind) + 2*sign(a.Rows-b.Rows) + sign(a.Depth-b.Depth)
	})
	return all
}

func sign(n int) int { return min(1, max(-1, n)) }

// answered runs a load of which each request must be answered.
func (l load) answered(ctx context.Context, c *client, p *prompts) (time.Duration, error) {
	r, err := l.run(ctx, c, p, func() {})
	if err != nil {
		return 0, err
	}
	m := measure(r)
	if m.problem != nil {
		return 0, m.problem
	}
	if m.unfinished > 0 {
		return 0, fmt.Errorf("%d of %d requests are not answered in %v: give --time", m.unfinished, l.requests, l.limit)
	}
	return r.wall, nil
}

// readSteps reads a file of steps.
func readSteps(path string) (*fleet.Steps, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := fleet.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
