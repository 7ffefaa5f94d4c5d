// Command write writes GGUF files in the shapes of published models, with random weights: as large and as fast as
// those, for measurements, and of no other use. `write` alone lists the shapes and the quantizations.
//
//	go run ./internal/synth/write qwen3-14b -o 14b.gguf
//	go run ./internal/synth/write llama-8b:Q8_0:4 -o m.gguf # in another quantization, of four layers
//	go run ./internal/synth/write grid-4096 -o m.gguf # to tune with: a layer of each type
//
// With fewer layers than a model repeats (six of gemma4 and nemotron3-nano, four of qwen35) some kinds of layers are
// missing.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/synth"
)

func main() {
	out := pflag.StringP("output", "o", "", "the file; without it, print what would be written")
	header := pflag.Bool("header", false, "leave the weights a hole: enough to compile, and takes no room on the disk")
	pflag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: write SHAPE[:TYPE][:LAYERS] [--header] [-o FILE]\nWrites a GGUF file in a published shape, with random weights.\n\n%s", pflag.CommandLine.FlagUsages())
	}
	pflag.Parse()
	switch pflag.NArg() {
	case 0:
		list()
	case 1:
		if err := write(pflag.Arg(0), *header, *out); err != nil {
			fmt.Fprintln(os.Stderr, "write:", err)
			os.Exit(1)
		}
	default:
		pflag.Usage()
		os.Exit(2)
	}
}

func list() {
	for _, s := range synth.Named() {
		fmt.Printf("%-16s %-15s %3d layers  %s\n", s.Name, s.Arch, s.Layers, s.Quant)
	}
	fmt.Println("types:", strings.Join(synth.Quants(), " "))
}

func write(asked string, header bool, out string) error {
	s, err := synth.Parse(asked)
	if err != nil {
		return err
	}
	m, err := synth.New(s)
	if err != nil {
		return err
	}
	if out == "" {
		fmt.Printf("%s in %s, %d layers: %.2f GB\n", s.Name, s.Quant, s.Layers, float64(m.Bytes())/1e9)
		return nil
	}
	if header {
		return m.WriteHollow(out)
	}
	start := time.Now()
	if err := m.Write(out); err != nil {
		return err
	}
	fmt.Printf("%s: %s in %s, %d layers, %.2f GB in %.1f s\n", out, s.Name, s.Quant, s.Layers, float64(m.Bytes())/1e9, time.Since(start).Seconds())
	return nil
}
