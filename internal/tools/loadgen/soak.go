package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/spawn"
	"github.com/zincc-dev/zincc/internal/table"
)

var soakCommand = cli.Command{
	Name:  "soak",
	Args:  "URL | --start COMMAND [flags]",
	Short: "look for what a server loses or gets wrong under load and abuse",
	Long: `
Sends requests at random: answers read whole, slowly or not to their end, connections cut off, bodies
that are malformed or too large. Before, each of --known requests is asked alone; whenever it comes
again, the answer must have the same bytes. Afterwards nothing may be left: no slot in use (/slots), no
request that waits or runs, no goroutine, no open file, no memory (/metrics).

  loadgen soak http://127.0.0.1:8080 --requests 10000
  loadgen soak --start "zincrun serve m.bin --port PORT" --restarts 3 --requests 10000
  loadgen soak --start "zincrun serve m.bin --port PORT --cache-dir DIR" --known 2000 --rounds 50 --users 64 --restarts 9

With --start, PORT is replaced by a free port; the server gets SIGTERM in the middle of the load,
must end with code 0, and is started again, as often as --restarts says.

With --rounds there is no abuse: each round asks for all known answers, and none may be refused. The
server is ended between rounds, by SIGTERM and by SIGKILL by turns; "servers" says what each of them
did, and held behind its first round and its last.

Small models do: what is tested is the server. Answers that depend on other requests, as llama-server's may, count as wrong.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		s := &soak{rest: 30 * time.Second}
		var start, model string
		var remote, asJSON bool
		f.StringVar(&start, "start", "", "command that starts the server; split at spaces")
		f.IntVar(&s.restarts, "restarts", 0, "times to end and start it, with --start")
		f.IntVarP(&s.requests, "requests", "r", 1000, "requests to send")
		f.IntVar(&s.rounds, "rounds", 0, "ask for all known answers so often, instead of --requests at random")
		f.IntVarP(&s.users, "users", "u", 16, "requests at a time")
		f.IntVar(&s.distinct, "known", 16, "distinct requests, each of which is asked alone first")
		f.IntVarP(&s.prompt, "prompt", "p", 0, "tokens of a prompt (default 2 to 200)")
		f.IntVarP(&s.answer, "answer", "n", 0, "tokens of an answer (default 1 to 12)")
		f.DurationVar(&s.limit, "time", time.Hour, "give up by then")
		seedFlag(f, &s.seed, "seed of what is sent; what is sent when depends on the server, too")
		f.StringVar(&model, "model", "", "name of the model, where the server has several")
		f.BoolVar(&remote, "remote", false, "the server may be another computer")
		f.BoolVar(&asJSON, "json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			switch {
			case (start == "") == (len(args) == 0), len(args) > 1:
				return cli.Usagef("want the URL of a server, or --start")
			case s.restarts < 0 || s.restarts > 0 && start == "":
				return cli.Usagef("--restarts: want 0 or more, with --start")
			case s.rounds > 0 && f.Changed("requests"), s.rounds < 0, s.rounds > 0 && s.restarts >= s.rounds:
				return cli.Usagef("--rounds: want more than --restarts, and no --requests")
			case s.prompt < 0 || s.prompt > 1e6 || s.answer < 0 || s.answer > 1e6:
				return cli.Usagef("--prompt and --answer: want at most 1000000")
			case s.requests < 10 || s.users < 1 || s.users > 1024 || s.distinct < 1 || s.distinct > 1e6 || s.limit <= 0:
				return cli.Usagef("want 10 --requests and more, 1 to 1024 --users, 1 to 1000000 --known, and --time")
			}
			ctx, cancel := context.WithTimeoutCause(ctx, s.limit, errLimit)
			defer cancel()
			fmt.Fprintf(os.Stderr, "loadgen: seed %d\n", s.seed)
			base := ""
			if start == "" {
				base = args[0]
			} else {
				var err error
				if s.server, err = spawn.Start(ctx, strings.Fields(start)); err != nil {
					return err
				}
				defer func() { s.server.Stop() }()
				base = s.server.URL
			}
			var err error
			if s.client, err = newClient(base, model, remote); err != nil {
				return err
			}
			if err := s.run(ctx); err != nil {
				return err
			}
			write := table.WriteText
			if asJSON {
				write = table.WriteJSON
			}
			if err := write(cli.Stdout, s.tables()...); err != nil {
				return err
			}
			return s.verdict()
		}
	},
}

// soak is a run of the command, and what came of it.
type soak struct {
	client          *client
	server          *spawn.Server // nil if somebody else started it
	requests, users int
	distinct        int
	prompt, answer  int // tokens; 0: of several lengths
	restarts        int
	rounds          int // 0: requests at random
	limit           time.Duration
	rest            time.Duration // for the server to come to rest
	seed            uint64

	known  []knownAnswer
	ending atomic.Bool // the server was asked to end

	mu     sync.Mutex
	counts []actCount // by act
	wrong  []string   // the first few
	left   []leftOver
	lives  []life // of rounds
}

// knownAnswer is a request with its answer when nothing else runs.
type knownAnswer struct {
	ask  ask
	text string
}

type actCount struct{ done, busy, wrong int }

// leftOver is a quantity that must not grow.
type leftOver struct {
	what          string
	before, after float64
	most          float64 // that after may be
}

func (s *soak) run(ctx context.Context) error {
	s.counts = make([]actCount, len(acts))
	if err := s.learn(ctx); err != nil {
		return err
	}
	if s.rounds > 0 {
		progress := cli.NewProgress("soak", int64(s.rounds*len(s.known)))
		defer progress.Done()
		if err := s.inRounds(ctx, progress); err != nil {
			return err
		}
		return s.check(ctx)
	}
	if err := s.abuse(ctx); err != nil {
		return err
	}
	return s.check(ctx)
}

// abuse sends requests at random.
func (s *soak) abuse(ctx context.Context) error {
	progress := cli.NewProgress("soak", int64(s.requests))
	defer progress.Done()
	from := 0
	for i := range s.restarts {
		to := s.requests * (i + 1) / (s.restarts + 1)
		if err := s.interrupted(ctx, from, to, progress); err != nil {
			return err
		}
		from = to
	}
	// The first tenth fills pools and caches, which is no leak.
	warm := from + (s.requests-from)/10
	s.send(ctx, from, warm, progress)
	before, err := s.settle(ctx)
	if err != nil {
		return err
	}
	s.send(ctx, warm, s.requests, progress)
	after, err := s.settle(ctx)
	if err != nil {
		return err
	}
	s.compare("", before, after)
	return nil
}

// send sends the requests with numbers from from up to to.
func (s *soak) send(ctx context.Context, from, to int, progress *cli.Progress) {
	l := load{users: s.users, requests: to - from}
	l.closed(ctx, func(i int) {
		r := rand.New(rand.NewPCG(s.seed, uint64(from+i)))
		k := pick(r)
		if from+i < len(acts) {
			k = from + i // each at least once
		}
		err := acts[k].do(s, ctx, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		progress.Add(1)
		s.count(ctx, k, err)
	})
}

// count notes what came of act number k. A server that was asked to end may refuse and break off, but
// what it answers is right.
func (s *soak) count(ctx context.Context, k int, err error) {
	var wrong *wrongError
	switch {
	case err == nil:
		s.counts[k].done++
	case err == errBusy, s.ending.Load() && !errors.As(err, &wrong):
		s.counts[k].busy++
	case ctx.Err() != nil: // it was given up
	default:
		s.counts[k].wrong++
		s.complain("%s: %s", acts[k].name, err)
	}
}

func (s *soak) complain(format string, args ...any) {
	if len(s.wrong) < 20 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

// interrupted sends the requests, ends the server while it has the last of them, and starts another.
func (s *soak) interrupted(ctx context.Context, from, to int, progress *cli.Progress) error {
	last := max(from, to-2*s.users)
	s.send(ctx, from, last, progress)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.send(ctx, last, to, progress)
	}()
	time.Sleep(100 * time.Millisecond) // some are under way, some are to come
	s.ending.Store(true)
	s.stop()
	<-sent
	s.ending.Store(false)
	return s.startNext(ctx)
}

// stop asks the server to end.
func (s *soak) stop() {
	if err := s.server.Stop(); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.complain("the server, asked to end: %s; it said: %s", err, s.server.Said())
	}
}

func (s *soak) startNext(ctx context.Context) error {
	next, err := spawn.Start(ctx, s.server.Command)
	if err != nil {
		return err
	}
	s.server, s.client.base = next, next.URL
	return nil
}

// learn asks for the known answers, one after the other.
func (s *soak) learn(ctx context.Context) error {
	p, err := newPrompts(ctx, s.client, s.seed)
	if err != nil {
		return err
	}
	topK, topP, minP := 20, 0.9, 0.0
	shared := p.of(s.distinct, 150)
	for i := range s.distinct {
		a := ask{prompt: p.of(i, 2+i*5%7), answer: 1 + i*7%12, seed: uint32(i)}
		switch i % 16 {
		case 12:
			a.prompt = p.of(i, 200)
		case 13:
			a.prompt = append(slices.Clone(shared), a.prompt...) // found in the cache
		case 14, 15:
			a.prompt = p.of(i, 60) // in pieces
		}
		if s.prompt > 0 {
			a.prompt = p.of(i, s.prompt)
		}
		if s.answer > 0 {
			a.answer = s.answer
		}
		if i%2 == 1 {
			a.sampler = sampler{Temp: 0.8, TopK: &topK, TopP: &topP, MinP: &minP}
		}
		t := s.client.generate(ctx, a)
		if t.err != nil {
			return fmt.Errorf("the first requests, alone: %w", t.err)
		}
		s.known = append(s.known, knownAnswer{a, t.text})
	}
	return nil
}

// check asks for the known answers again when all is over.
func (s *soak) check(ctx context.Context) error {
	for _, k := range s.known {
		t := s.client.generate(ctx, k.ask)
		if t.err != nil {
			return fmt.Errorf("the last requests, alone: %w", t.err)
		}
		if err := k.judge(t.text); err != nil {
			s.complain("in the end: %s", err)
		}
	}
	return nil
}

func (s *soak) tables() []*table.Table {
	sent := &table.Table{Title: "requests", Columns: []string{"kind", "right", "busy", "wrong"}}
	for i, a := range acts {
		if c := s.counts[i]; c != (actCount{}) {
			sent.Add(a.name, c.done, c.busy, c.wrong)
		}
	}
	if s.rounds > 0 {
		return []*table.Table{sent, s.livesTable()}
	}
	left := &table.Table{Title: "left at rest", Columns: []string{"what", "before", "after", "at most"}}
	for _, l := range s.left {
		left.Add(l.what, l.before, l.after, l.most)
	}
	return []*table.Table{sent, left}
}

// verdict is an error if something was wrong.
func (s *soak) verdict() error {
	problems := s.wrong
	for i, c := range s.counts {
		if s.rounds > 0 && c.busy > 0 {
			problems = append(problems, fmt.Sprintf("%s: %d were refused", acts[i].name, c.busy))
		}
	}
	for _, l := range s.left {
		if l.after > l.most {
			problems = append(problems, fmt.Sprintf("%s: %.0f before, %.0f after", l.what, l.before, l.after))
		}
	}
	for _, p := range problems[min(1, len(problems)):] {
		note("%s", p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("seed %d: %s", s.seed, problems[0])
	}
	return nil
}
