// Command write writes GGUF files in the shapes of published models, with random weights: as large and as fast as those,
// for measurements, and of no other use. `write` alone lists the shapes and the quantizations.
//
//	go run ./internal/synth/write qwen3-14b -o 14b.gguf
//	go run ./internal/synth/write llama-8b --type Q8_0 --layers 4 -o m.gguf
//	go run ./internal/synth/write grid-4096 -o m.gguf # to tune with: a layer of each type
//
// With fewer layers than a model repeats (six of gemma4 and nemotron3-nano, four of qwen35) some kinds of layers are missing.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/synth"
)

func main() {
	out := pflag.StringP("output", "o", "", "the file; without it, print what would be written")
	quant := pflag.String("type", "", "quantization, instead of the shape's")
	layers := pflag.Int("layers", 0, "number of layers, instead of the shape's")
	header := pflag.Bool("header", false, "leave the weights a hole: enough to compile, and takes no room on the disk")
	pflag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: write SHAPE [--type Q4_K_M] [--layers N] [--header] [-o FILE]\nWrites a GGUF file in a published shape, with random weights.\n\n%s", pflag.CommandLine.FlagUsages())
	}
	pflag.Parse()
	switch pflag.NArg() {
	case 0:
		list()
	case 1:
		if err := write(pflag.Arg(0), *quant, *layers, *header, *out); err != nil {
			fmt.Fprintln(os.Stderr, "write:", err)
			os.Exit(1)
		}
	default:
		pflag.Usage()
		os.Exit(2)
	}
}

func shapes() []synth.Shape { return slices.Concat(synth.Published, synth.Grid) }

func list() {
	for _, s := range shapes() {
		fmt.Printf("%-16s %-15s %3d layers  %s\n", s.Name, s.Arch, s.Layers, s.Quant)
	}
	fmt.Println("types:", strings.Join(synth.Quants(), " "))
}

func write(name, quant string, layers int, header bool, out string) error {
	at := slices.IndexFunc(shapes(), func(s synth.Shape) bool { return s.Name == name })
	if at < 0 {
		return fmt.Errorf("no shape %q; without arguments, write lists them", name)
	}
	s := shapes()[at]
	if quant != "" {
		s.Quant = quant
	}
	if layers < 0 {
		return errors.New("--layers is negative")
	}
	if layers > 0 {
		s.Layers = layers
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
