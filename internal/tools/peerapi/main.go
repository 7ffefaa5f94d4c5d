// Command peerapi asks zincrun serve and llama-server the same and says where they differ: what
// llama.cpp's own tests of its server ask, as far as both have it, in cases of our own.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/spawn"
	"github.com/zincc-dev/zincc/internal/table"
)

func main() {
	p := &cli.Program{
		Name:  "peerapi",
		Short: "asks zincrun serve and llama-server the same",
		Long: `
Starts both servers on gopher-chat, each once without and once with a key, asks both everything in its
table of rows, and prints what came of each row. Where the servers differ on purpose a row says why,
and wants both to do what it says; docs/serving.md lists these rows.`,
		Commands: []cli.Command{runCommand, differencesCommand},
	}
	os.Exit(p.Main())
}

type comparison struct {
	bin, peer, only string
	json            bool
}

var runCommand = cli.Command{
	Name:  "run",
	Args:  "MODEL.gguf [flags]",
	Short: "ask both servers, and fail if one does not do what a row wants",
	Long: `
  peerapi run testdata/models/gopher-chat-q4_k_m.gguf
  peerapi run testdata/models/gopher-chat-q4_k_m.gguf --peer "env A=b" --only tools`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		o := &comparison{}
		f.StringVar(&o.bin, "bin", "bin", "folder of zincc and zincrun")
		f.StringVar(&o.peer, "peer", "", "what llama-server is run with, such as env A=b; split at spaces")
		f.StringVar(&o.only, "only", "", "ask the rows with this in their group and name")
		f.BoolVar(&o.json, "json", false, "print JSON")
		return o.run
	},
}

var differencesCommand = cli.Command{
	Name:  "differences",
	Short: "print the rows in which the servers differ, as Markdown",
	Setup: func(*pflag.FlagSet) func(context.Context, []string) error {
		return func(context.Context, []string) error {
			_, err := io.WriteString(cli.Stdout, differences())
			return err
		}
	},
}

// differences is the table of docs/serving.md.
func differences() string {
	var b strings.Builder
	b.WriteString("| asked for | what zincrun does, and why |\n|---|---|\n")
	for _, r := range rows {
		if r.differs != "" {
			fmt.Fprintf(&b, "| %s: %s | %s |\n", r.group, r.name, strings.ReplaceAll(r.differs, "|", `\|`))
		}
	}
	return b.String()
}

func (o *comparison) run(run context.Context, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("want one model")
	}
	model, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peerapi-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plan := filepath.Join(dir, "plan.bin")
	if err := spawn.Run(run, filepath.Join(o.bin, "zincc"), "compile", model, "--target", "host", "--ctx", strconv.Itoa(ctx), "--slots", "2", "-o", plan); err != nil {
		return err
	}
	ours := []string{filepath.Join(o.bin, "zincrun"), "serve", plan, "--name", "gopher-chat", "--device", "host", "--port", "PORT"}
	theirs := append(strings.Fields(o.peer), "llama-server", "-m", model, "-a", "gopher-chat", "-np", "2", "-c", strconv.Itoa(2*ctx), "-t", "1",
		"--device", "none", "--metrics", "--host", "127.0.0.1", "--port", "PORT")
	var sites []site
	for _, s := range []struct {
		name    string
		command []string
	}{{zincrun, ours}, {llama, theirs}} {
		one := site{name: s.name}
		for url, command := range map[*string][]string{&one.open: s.command, &one.keyed: append(s.command[:len(s.command):len(s.command)], "--api-key", key)} {
			server, err := spawn.Start(run, command)
			if err != nil {
				return err
			}
			defer server.Stop()
			*url = server.URL
		}
		sites = append(sites, one)
	}
	return o.ask(run, sites)
}

func (o *comparison) ask(run context.Context, sites []site) error {
	out := &table.Table{Title: "rows", Columns: []string{"group", "asked for", "same", "zincrun", "llama-server"}}
	failed, differ := 0, 0
	for _, r := range rows {
		if !strings.Contains(r.group+": "+r.name, o.only) {
			continue
		}
		cells := []any{r.group, r.name, r.differs == ""}
		if r.differs != "" {
			differ++
		}
		for _, s := range sites {
			wrong := try(run, r, s)
			if run.Err() != nil {
				return context.Cause(run)
			}
			verdict := "ok"
			if len(wrong) > 0 {
				failed++
				verdict = "not ok"
			}
			for _, w := range wrong {
				fmt.Fprintf(os.Stderr, "%s, %s: %s: %s\n", s.name, r.group, r.name, w)
			}
			cells = append(cells, verdict)
		}
		out.Add(cells...)
	}
	write := table.WriteText
	if o.json {
		write = table.WriteJSON
	}
	if err := write(cli.Stdout, out); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d things are not as the rows want them", failed, 2*len(out.Rows))
	}
	fmt.Fprintf(os.Stderr, "%d rows, in %d of them the servers differ\n", len(out.Rows), differ)
	return nil
}
