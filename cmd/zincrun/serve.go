package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/version"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/ui"
)

var serveCommand = cli.Command{
	Name:  "serve",
	Args:  "[MODEL... | DIR] [flags]",
	Short: "serve models over HTTP, with a page to talk to them",
	Long: `
Serves plans and models to programs that speak OpenAI's API (chat completions, completions,
responses), Anthropic's (messages) or Ollama's, and to people through a page. A model has
its file's name. Of several models, or a folder, the server loads each on its first
request, and unloads it when others need the memory. Models that come into a folder later, or below it, are
served, too; broken ones are left out with a warning. Without a name it serves all that zincrun list has.

  zincrun serve qwen3-8b.bin                          # http://127.0.0.1:8080
  zincrun serve models/ --port 9000 --memory 60       # GiB for all that are loaded
  zincrun serve m.bin --host 0.0.0.0 --api-key SECRET # for other computers
  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"messages": [{"role": "user", "content": "Hello"}]}'

^C or SIGTERM ends the server: it takes no new requests, and running ones have --drain to end.
Standard error gets a line of JSON for each request, without its text. Metrics are at
/metrics, the state of the engine at /load and on the page. docs/serving.md says more.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		s := &serveFlags{}
		f.StringVar(&s.host, "host", "127.0.0.1", "address to listen on; an address that other computers reach needs a key or --insecure")
		f.IntVarP(&s.port, "port", "p", 8080, "port; 0 takes a free one and prints it")
		f.StringArrayVar(&s.names, "name", nil, "name of the model, if there is only one, instead of its file's name (repeatable)")
		f.Float64Var(&s.memory, "memory", 0, "GiB for all models that are loaded (default nine tenths of what the device has free). The only model, if it is a plan with a pool of pages, takes as many pages as fit")
		f.StringArrayVar(&s.keys, "api-key", nil, "key that requests must have (repeatable)")
		f.StringVar(&s.keyFile, "keys", "", "TOML file of keys with limits: [[key]] with key, requests, tokens, at_once, priority, admin")
		f.BoolVar(&s.insecure, "insecure", false, "serve everybody who reaches the address, without a key")
		f.StringArrayVar(&s.origins, "cors-origin", nil, "origin whose pages may use the server (repeatable); * for all")
		f.StringVar(&s.cert, "tls-cert", "", "certificate file, for HTTPS; it is read again when it changes")
		f.StringVar(&s.certKey, "tls-key", "", "key of the certificate")
		f.BoolVar(&s.noUI, "no-ui", false, "no page at /")
		f.DurationVar(&s.itl, "itl", 50*time.Millisecond, "longest time between two tokens of an answer while prompts are read")
		f.Var(&s.reuse, "reuse", reuseHelp)
		f.BoolVar(&s.noDrafts, "no-drafts", false, "choose one token a step, also where a text repeats itself; answers are the same")
		f.DurationVar(&s.queue, "queue-timeout", time.Minute, "longest wait for a model to be loaded")
		f.DurationVar(&s.drain, "drain", 25*time.Second, "time for running requests when the server ends")
		f.StringVar(&s.compat, "metrics-compat", "vllm", "also export metrics under these names: vllm, or empty for none")
		f.BoolVar(&s.logText, "log-text", false, "log prompts and answers, too")
		f.IntVar(&s.slots, "slots", 0, "of model files: conversations at a time, each with a KV cache of its own (default as many as fit, up to 8)")
		s.plan.declare(f)
		s.answers.declare(f)
		s.events.declare(f)
		s.kept.declare(f)
		cli.ConfigFlag(f)
		return s.run
	},
}

type serveFlags struct {
	plan                 planFlags
	answers              answerFlags
	events               eventFlags
	kept                 keptFlags
	host                 string
	port                 int
	names, keys, origins []string
	keyFile              string
	cert, certKey        string
	memory               float64
	insecure, noUI       bool
	noDrafts             bool
	logText              bool
	slots                int
	several              bool // models
	log                  *slog.Logger
	compat               string
	itl, queue, drain    time.Duration
	reuse                reuse
}

func (s *serveFlags) run(ctx context.Context, args []string) error {
	s.log = slog.New(slog.NewJSONHandler(cli.Stderr, nil))
	shelf, err := s.shelf(ctx, args)
	if err != nil {
		return err
	}
	served, folder := shelf.look(), len(shelf.folders) > 0
	if len(served) == 0 {
		s.log.Warn("no models yet", "hint", "zincrun pull fetches some; those that come are served")
	}
	several := folder || len(served) > 1
	s.several = several
	if err := s.answers.check(several); err != nil {
		return err
	}
	keys, err := s.readKeys()
	if err != nil {
		return err
	}
	if err := s.check(len(keys)); err != nil {
		return err
	}
	if err := s.kept.open(s.log); err != nil {
		return err
	}
	if err := s.events.open(s.insecure); err != nil {
		return err
	}
	o := api.Options{
		Events: s.events.publisher,
		Served: served, Folder: folder, Library: shelf.library(), Memory: s.room(several), Keys: keys, Origins: s.origins, Loopback: s.loopback(), Version: version.Release,
		Compat: s.compat != "", Log: s.log, LogText: s.logText, QueueTimeout: s.queue,
		AnyModel: s.answers.anyModel, Hosts: s.answers.hosts, System: s.answers.system,
	}
	if !s.noUI {
		o.UI = ui.Handler()
	}
	server := api.New(o)
	shelf.server = server

	if p := s.events.publisher; p != nil {
		pub, replay := p.Addresses()
		s.log.Info("kv-events", "pub", pub, "replay", replay)
	}
	listener, url, err := s.listen(ctx)
	if err != nil {
		return err
	}
	web := server.HTTP()
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	if cli.Stderr.Terminal() {
		fmt.Fprintf(cli.Stderr, "zincrun: %s at %s\n", strings.Join(firstNames(served), ", "), url)
	} else {
		s.log.Info("listen", "url", url, "models", firstNames(served))
	}
	failed := make(chan error, 1)
	go shelf.watch(ctx)
	if !several {
		go func() {
			if err := server.Load(ctx, ""); err != nil && ctx.Err() == nil {
				failed <- err
			}
		}()
	}
	select {
	case <-ctx.Done():
		err = nil
	case <-server.Asked():
	case err = <-ended:
	case err = <-failed: // the only model cannot be had
	case err = <-server.Lost():
		err = fmt.Errorf("the device is lost: %w", err)
	}
	return errors.Join(err, s.end(server, web))
}

// end lets requests end and closes the server. The context of run is at its end; this has a time of its own.
func (s *serveFlags) end(server *api.Server, web *http.Server) error {
	grace, stop := context.WithTimeout(context.Background(), s.drain)
	defer stop()
	s.log.Info("drain")
	err := errors.Join(server.Drain(grace), s.events.close())
	last, stopLast := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer stopLast()
	if web.Shutdown(last) != nil { // replies that nobody reads
		web.Close()
	}
	return err
}

// check holds flags against each other and their bounds.
func (s *serveFlags) check(keys int) error {
	switch {
	case !s.loopback() && keys == 0 && !s.insecure:
		return cli.Usagef("--host %s lets other computers in: give --api-key or --keys, or --insecure", s.host)
	case s.compat != "" && s.compat != "vllm":
		return cli.Usagef("--metrics-compat: want vllm or nothing, have %q", s.compat)
	case (s.cert == "") != (s.certKey == ""):
		return cli.Usagef("give both --tls-cert and --tls-key")
	case s.memory < 0:
		return cli.Usagef("--memory: want 0 or more")
	case s.port < 0 || s.port > 65535:
		return cli.Usagef("--port is %d, want 0 to 65535", s.port)
	}
	return nil
}

// listen opens the port, and returns its address for people.
func (s *serveFlags) listen(ctx context.Context) (l net.Listener, url string, err error) {
	l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(s.host, strconv.Itoa(s.port)))
	scheme := "http"
	if err == nil && s.cert != "" {
		l, err = serveTLS(l, s.cert, s.certKey)
		scheme = "https"
	}
	if err != nil {
		return nil, "", err
	}
	return l, scheme + "://" + l.Addr().String(), nil
}

func firstNames(served []*api.Served) []string {
	var names []string
	for _, m := range served {
		names = append(names, m.Names[0])
	}
	return names
}

// loopback says whether only this computer reaches the address.
func (s *serveFlags) loopback() bool {
	ip := net.ParseIP(s.host)
	return s.host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *serveFlags) readKeys() ([]api.Key, error) {
	var keys []api.Key
	for _, k := range s.keys {
		if k == "" {
			return nil, cli.Usagef("--api-key: it is empty")
		}
		keys = append(keys, api.Key{Key: k, Admin: true})
	}
	if s.keyFile == "" {
		return keys, nil
	}
	var file struct {
		Key []api.Key `toml:"key"`
	}
	meta, err := toml.DecodeFile(s.keyFile, &file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.keyFile, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%s: unknown field %s", s.keyFile, unknown[0])
	}
	for i, k := range file.Key {
		if k.Key == "" {
			return nil, fmt.Errorf("%s: key %d is empty", s.keyFile, i+1)
		}
	}
	if len(file.Key) == 0 {
		return nil, fmt.Errorf("%s: has no [[key]]", s.keyFile)
	}
	return append(keys, file.Key...), nil
}

// room is the memory for all models, in bytes; 0 where it is not known, or one needs no one else's.
func (s *serveFlags) room(several bool) int64 {
	switch {
	case s.memory > 0:
		return int64(s.memory * (1 << 30))
	case !several:
		return 0
	}
	if free := freeOn(s.plan.device); free > 0 {
		return free
	}
	return host.Available() / 10 * 9
}

// freeOn is nine tenths of what a GPU has free; 0 where it is not known, or the device is none.
func freeOn(name string) int64 {
	c, _, err := device.Select(name)
	if err != nil || !c.IsGPU() || c.Type() == "cpu" {
		return 0
	}
	free, _ := c.Free() // 0 is not known
	return int64(free / 10 * 9)
}

// poolRoom is the memory that a plan with a pool of pages may take: the only model gets what --memory says, or what a
// GPU has free. 0: as much as the plan states, also on devices that have no memory of their own.
func (s *serveFlags) poolRoom(p *plans.Plan) int64 {
	switch {
	case s.several:
		return 0
	case s.memory > 0:
		return s.room(false)
	case s.plan.device != "auto":
		return freeOn(s.plan.device)
	}
	return freeOn(p.Require.Backend)
}
