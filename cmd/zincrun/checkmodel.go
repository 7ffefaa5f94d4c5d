package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/models"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

var checkModelCommand = cli.Command{
	Name:  "check-model",
	Args:  "MODEL.gguf|plan.bin [--record]",
	Short: "compare the data of a model's tensors with recorded hashes",
	Long: `
Loading a plan compares the header of the model with that of compilation: metadata, and names, types
and places of the tensors. It does not read their data, which takes as long as reading the
file. This command does: it computes the SHA-256 of every tensor and compares it with the recorded
one, in a file beside the model or plan with .sha256 behind its name. --record writes
that file, for a model that is known to be good. For a plan, it checks the tensors that the plan
uses, wherever they are, also in the plan itself.

If a tensor differs, it names the first one and exits with 1.

  zincrun check-model qwen3-8b.gguf --record
  zincrun check-model qwen3-8b.gguf`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var c checkModelFlags
		f.BoolVar(&c.record, "record", false, "record the hashes instead")
		f.StringVar(&c.model, "model", "", "the model file of a plan, if it has moved since compilation")
		f.BoolVar(&c.json, "json", false, "print JSON")
		return c.run
	},
}

type checkModelFlags struct {
	record, json bool
	model        string
}

// tensorData is where the tensors of a model or plan are read.
type tensorData struct {
	names []string
	bytes int64
	data  func(name string) ([]byte, error)
	files []string
	close func()
}

func (c *checkModelFlags) run(ctx context.Context, args []string) error {
	path, err := cli.OneArg(args, "model or plan")
	if err != nil {
		return err
	}
	if path, err = models.Path(ctx, path); err != nil {
		return err
	}
	open := openPlanData
	if gguf.Is(path) {
		open = openModelData
	}
	t, err := open(path, c.model)
	if err != nil {
		return err
	}
	defer t.close()
	sumsPath := path + ".sha256"
	var recorded []plans.Sum
	if c.record {
		err = cli.CheckOutput(sumsPath, append(t.files, path)...)
	} else if recorded, err = plans.ReadSums(sumsPath); errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: no recorded hashes; check-model --record writes them, for a model that is known to be good", sumsPath)
	}
	if err != nil {
		return err
	}
	bar := cli.NewProgress("hashing", t.bytes)
	sums, err := plans.HashTensors(ctx, t.names, t.data, bar.Add)
	bar.Done()
	if err != nil {
		return err
	}
	if c.record {
		if err := plans.WriteSums(sumsPath, sums); err != nil {
			return err
		}
		return c.print(sumsPath, "recorded", t, nil)
	}
	different := plans.DifferentSums(recorded, sums)
	if len(different) == 0 || c.json {
		if err := c.print(path, "as recorded", t, different); err != nil {
			return err
		}
	}
	if len(different) > 0 {
		return fmt.Errorf("%s: the data of tensor %q differs from the hash in %s (%d of %d tensors differ)", path, different[0], sumsPath, len(different), len(sums))
	}
	return nil
}

func (c *checkModelFlags) print(path, what string, t *tensorData, different []string) error {
	if c.json {
		return json.NewEncoder(cli.Stdout).Encode(struct {
			Path      string
			Tensors   int
			Bytes     int64
			Different []string
		}{path, len(t.names), t.bytes, append([]string{}, different...)})
	}
	_, err := fmt.Fprintf(cli.Stdout, "%s: %d tensors, %s, %s\n", path, len(t.names), table.Bytes(t.bytes), what)
	return err
}

func openModelData(path, model string) (*tensorData, error) {
	if model != "" {
		return nil, cli.Usagef("--model is for plans: %s is a model", path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	t := &tensorData{files: f.Shards(), close: func() { f.Close() }, data: func(name string) ([]byte, error) {
		tensor, _ := f.Tensor(name)
		return f.Data(tensor), nil
	}}
	for i := range f.Tensors {
		t.names = append(t.names, f.Tensors[i].Name)
		t.bytes += f.Tensors[i].Size
	}
	return t, nil
}

func openPlanData(path, model string) (*tensorData, error) {
	p, err := plans.Read(path)
	if err != nil {
		return nil, err
	}
	src, err := plans.OpenSource(p, path, model)
	if err != nil {
		p.Close()
		return nil, err
	}
	t := &tensorData{files: src.Files(), data: src.Weight, close: func() { src.Close(); p.Close() }}
	for _, w := range p.Weights {
		t.names = append(t.names, w.Name)
		t.bytes += w.Size
	}
	return t, nil
}
