package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/runtime/kvevents"
)

// eventFlags say where routers are told which prompts the server holds.
type eventFlags struct {
	endpoint, replay, pod string
	publisher             *kvevents.Publisher // nil: nobody is told
}

func (e *eventFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&e.endpoint, "kv-events", "", "tcp://HOST:PORT (or tcp://*:PORT) where routers subscribe to what slots hold of prompts, as vLLM publishes it; it shows the tokens of all prompts")
	f.StringVar(&e.replay, "kv-events-replay", "", "tcp://HOST:PORT where routers get events again that they missed")
	f.StringVar(&e.pod, "kv-events-pod", "", "what the server is called in topics, kv@POD@MODEL (default the address of --kv-events)")
}

// open begins to listen. An address that other computers reach is for those who are let in without a key.
func (e *eventFlags) open(insecure bool) error {
	if e.endpoint == "" {
		if e.replay != "" || e.pod != "" {
			return cli.Usagef("--kv-events-replay and --kv-events-pod belong to --kv-events")
		}
		return nil
	}
	at := []string{"", ""}
	for i, c := range []struct{ flag, endpoint string }{{"--kv-events", e.endpoint}, {"--kv-events-replay", e.replay}} {
		if c.endpoint == "" {
			continue
		}
		address, loopback, err := kvevents.Address(c.endpoint)
		if err != nil {
			return cli.Usagef("%s: %v", c.flag, err)
		}
		if !loopback && !insecure {
			return cli.Usagef("%s %s shows the tokens of all prompts to other computers, without a key: give --insecure", c.flag, c.endpoint)
		}
		at[i] = address
	}
	p, err := kvevents.Listen(e.pod, at[0], at[1])
	if err != nil {
		return fmt.Errorf("--kv-events: %w", err)
	}
	e.publisher = p
	return nil
}

func (e *eventFlags) close() error {
	if e.publisher == nil {
		return nil
	}
	return e.publisher.Close()
}
