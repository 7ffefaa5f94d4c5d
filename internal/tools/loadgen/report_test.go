package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/internal/spawn"
	"github.com/zincc-dev/zincc/internal/table"
)

func TestTables(t *testing.T) {
	m := &measures{requests: 64, errors: 1, unfinished: 2, seconds: 3.25, promptRate: 10000, outputRate: 2500, cached: 4000,
		ttft: latencies{1, 2, 4}, tpot: latencies{2.5}, itl: latencies{0.25, 0.75}, e2el: latencies{100}}
	var text, data bytes.Buffer
	if err := table.WriteText(&text, m.tables(7)...); err != nil {
		t.Fatal(err)
	}
	if err := table.WriteJSON(&data, m.tables(7)...); err != nil {
		t.Fatal(err)
	}
	const want = `load
  requests  errors  unfinished  seconds  prompt tok/s  output tok/s  cached  seed
        64       1           2      3.2       10000.0        2500.0  4000.0     7

latency, ms
  of      mean  median     p99
  TTFT    2.33    2.00    3.96
  TPOT    2.50    2.50    2.50
  ITL     0.50    0.50    0.74
  E2EL  100.00  100.00  100.00
`
	if text.String() != want {
		t.Errorf("%s\nwant\n%s", &text, want)
	}
	var back map[string][]map[string]any
	if err := json.Unmarshal(data.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if got := back["latency, ms"][2]["p99"]; got != 0.745 {
		t.Errorf("p99 of ITL is %v", got)
	}
}

// Tables are at most 120 columns wide with the widest figures that are sensible.
func TestWidths(t *testing.T) {
	compared := comparisonTable()
	wide := latencies{12345, 12345}
	for _, c := range cases {
		m := &measures{outputRate: 12345, ttft: wide, tpot: latencies{123, 123}, itl: wide, e2el: wide, cached: 4000, requests: 48}
		compared.Add(cells("qwen35-35b-a3b", c.name, "llama-server", m)...)
	}
	turns := turnTable()
	for _, c := range turnCases {
		slow := millis(12345.678)
		turns.Add("llama-server", c.name, 1000, 102056, 101760, 1333, slow, slow, slow, 123.4, uint64(1<<32-1))
	}
	held := &rested{metrics: map[string]float64{"process_resident_memory_bytes": 1234 << 20, "go_goroutines": 1234, "process_open_fds": 1234}}
	soak := &soak{known: make([]knownAnswer, 2000), lives: []life{{rounds: 50, busy: time.Minute, first: held, last: held, end: "still runs"}}}
	for _, all := range []*table.Table{compared, turns, soak.livesTable()} {
		var b bytes.Buffer
		if err := all.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 120 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

// TestServerName holds what a server that loadgen starts is called.
func TestServerName(t *testing.T) {
	for command, want := range map[string]string{
		"bin/zincrun serve a.bin --port PORT": "zincrun", "env A=b C=d /usr/bin/llama-server -m a.gguf": "llama-server",
	} {
		if got := (&turns{server: &spawn.Server{Command: strings.Fields(command)}}).name(); got != want {
			t.Errorf("%q is called %q, want %q", command, got, want)
		}
	}
}
