package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
)

var psCommand = cli.Command{
	Name:  "ps",
	Args:  "[--url http://127.0.0.1:8080]",
	Short: "list the models that a server has loaded",
	Long: `
Asks a server of zincrun serve what it has loaded, and what it does.

  zincrun ps
  zincrun ps --url https://models.example.org --api-key SECRET`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		address := f.String("url", "http://127.0.0.1:8080", "the server")
		key := f.String("api-key", "", "key that the server wants")
		all := f.Bool("all", false, "list models that are not loaded, too")
		asJSON := f.Bool("json", false, "print the server's JSON, which says more")
		return func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("ps takes no arguments, have %d", len(args))
			}
			u, err := url.Parse(*address)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return cli.Usagef("--url: want http://HOST:PORT, have %q", *address)
			}
			raw, err := askLoad(ctx, u, *key)
			if err != nil {
				return err
			}
			if *asJSON {
				_, err := cli.Stdout.Write(append(raw, '\n'))
				return err
			}
			return printLoad(*address, raw, *all)
		}
	},
}

// askLoad asks a server for /load.
func askLoad(ctx context.Context, u *url.URL, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("/load").String(), nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("no server at %s: zincrun serve starts one, --url names another", u)
	case err != nil:
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s wants a key: --api-key", u)
	case resp.StatusCode != http.StatusOK || !json.Valid(raw):
		return nil, fmt.Errorf("%s is no server of zincrun: it answers /load with %s", u, resp.Status)
	}
	return []byte(strings.TrimSpace(string(raw))), nil
}

func printLoad(title string, raw []byte, all bool) error {
	var load struct {
		Models []struct {
			Model, Status, Stage, Device string
			Ctx, Waiting, Running        int
			Memory                       map[string]int64
			Rate                         float64 `json:"generate_rate"`
		}
	}
	if err := json.Unmarshal(raw, &load); err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	t := &table.Table{Title: title, Columns: []string{"model", "status", "device", "ctx", "memory", "running", "waiting", "tokens/s"}}
	for _, m := range load.Models {
		if !all && m.Status != "loaded" && m.Status != "loading" {
			continue
		}
		if m.Stage != "" {
			m.Status = m.Stage
		}
		memory := int64(0)
		for _, n := range m.Memory {
			memory += n
		}
		t.Add(m.Model, m.Status, m.Device, m.Ctx, table.Bytes(memory), m.Running, m.Waiting, m.Rate)
	}
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintf(cli.Stdout, "%s: %d models, none loaded\n", title, len(load.Models))
		return err
	}
	return t.WriteText(cli.Stdout)
}
