package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/gosrc"
)

var compileCommand = cli.Command{
	Name:  "compile",
	Args:  "MODEL.gguf|X.zir --target TARGET [-o plan.bin]",
	Short: "compile a model into a plan",
	Long: `
Stages: import, fuse, specialize, schedule, place; then kernels and commands are
emitted into the plan. --stop-after STAGE writes the program as .zir text instead,
which ` + "`zincc compile X.zir`" + ` goes on from, edited or not. --dump-dir writes the text
after every pass that changed it.

The plan refers to the weights in the model file, by offset, and checks at load that
the file is the same one; --embed-weights puts them into the plan.

For AMD targets no AMD GPU is needed to compile with AMD's own compiler: Mesa's driver
does it without hardware (version 25, not 26). Kernels that spill registers are then
refused, the others are ranked by a cost model, and the plan records registers and
occupancy (zincc inspect). Results are cached in the user's cache folder.

Call sites that were tuned get the kernel that was best: this program holds measurements
of NVIDIA Hopper and what AMD's compiler says of the shapes of published models. --tuning
FILE, which may come several times, adds files of ` + "`zincrun tune` or `zincc tune`" + `, which count
more than what the program holds; --tuning off uses neither. --candidates makes the plan that
zincrun tune times: each entry comes as often as there are candidates.

--target probe.json compiles for the device that ` + "`zincrun probe --json`" + ` measured, here or on
another computer: its limits, subgroups, matrices, memory, bandwidth and stage cost.

--emit-go DIR also writes the plan as Go source: commands and buffers as literals, kernels
beside them. go build makes one program of it that runs the model without zincrun; its
weights come from the model file, or with --embed-weights from the program itself. In a
module that requires github.com/zincc-dev/zincc, such as a checkout of it, go build ./DIR
is all; else make one first:

  zincc compile qwen3-8b.gguf --target gfx1201 --emit-go qwen
  cd qwen && go mod init qwen && go get github.com/zincc-dev/zincc && CGO_ENABLED=0 go build
  ./qwen --model qwen3-8b.gguf -p "Once upon a time"

A plan that needs more memory than the target has is refused; the closing table says
which context would be the largest. ` + "`zincc estimate`" + ` says it beforehand.

  zincc compile qwen3-8b.gguf --target gfx1201 --ctx 16k -o plan.bin
  zincrun probe --device vulkan:0 --json > card.json
  zincc compile qwen3-8b.gguf --target card.json -o plan.bin
  zincc compile qwen3-8b.gguf --target card.json --candidates -o tune.bin
  zincrun tune tune.bin -o card.jsonl
  zincc compile qwen3-8b.gguf --target card.json --tuning card.jsonl -o plan.bin
  zincc compile qwen3-8b.gguf --target host --stop-after fuse -o fused.zir`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		c := compileFlags{}
		f.StringVar(&c.target, "target", "", "device to compile for; zincc targets lists them; native is the GPU of this computer, else host; or a probe's .json")
		f.StringVarP(&c.out, "output", "o", "", "file to write (default plan.bin, or the model's name with .zir)")
		f.Var(&c.ctx, "ctx", fmt.Sprintf("positions of the KV cache, such as 4096 or 128k (default the model's context, at most %d)", frontend.DefaultCtx))
		f.StringVar(&c.kv, "kv", "f16", "type of the KV cache: f16, f32 or q8_0")
		f.BoolVar(&c.embed, "embed-weights", false, "put the weights into the plan")
		f.StringVar(&c.goDir, "emit-go", "", "also write the plan as a Go program into this directory")
		f.StringVar(&c.stop, "stop-after", "", "write the program after this stage")
		f.StringVar(&c.dump, "dump-dir", "", "write the program after every pass into this directory")
		c.choice.declare(f)
		f.BoolVar(&c.json, "json", false, "print the closing table as JSON")
		return c.run
	},
}

type compileFlags struct {
	target, out, kv, stop, dump, goDir string
	choice                             choiceFlags
	ctx                                cli.Positions
	embed, json                        bool
}

func (c *compileFlags) run(ctx context.Context, args []string) error {
	path, err := cli.OneArg(args, "model or .zir file")
	if err != nil {
		return err
	}
	if c.goDir != "" && c.stop != "" {
		return cli.Usagef("--emit-go writes a whole plan: it does not go with --stop-after")
	}
	stop := ir.Place
	if c.stop != "" {
		var ok bool
		if stop, ok = ir.ParseStage(c.stop); !ok {
			return cli.Usagef("--stop-after: unknown stage %q", c.stop)
		}
	}
	p, f, err := c.load(path)
	if err != nil {
		return err
	}
	defer f.Close()
	t, probe, err := c.pick(p)
	if err != nil {
		return err
	}
	choice, done, err := c.choice.open(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	o := passes.Options{StopAfter: stop}
	if c.dump != "" {
		if err := os.MkdirAll(c.dump, 0o777); err != nil {
			return err
		}
		o.Dump = func(n int, pass, text string) error {
			return os.WriteFile(filepath.Join(c.dump, fmt.Sprintf("%02d-%s.zir", n, pass)), []byte(text), 0o666)
		}
	}
	times, err := passes.Run(p, codegen.ChoiceTable(ctx, t, p.Funcs[0].Rows, choice), o)
	if err != nil {
		return err
	}
	if c.stop != "" {
		out := c.out
		if out == "" {
			out = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + "." + c.stop + ".zir"
		}
		return outfile.Write(out, func(w io.Writer) error {
			_, err := io.WriteString(w, ir.Print(p))
			return err
		})
	}
	start := time.Now()
	plan, err := codegen.Emit(p, f, t, c.embed)
	if err != nil {
		return err
	}
	if err := codegen.CheckMemory(plan, t); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if probe != nil {
		if err := probe.Check(plan.Require); err != nil {
			return fmt.Errorf("%s: %w", c.target, err)
		}
	}
	if choice.Oracle != nil {
		if err := codegen.Annotate(ctx, plan, t, choice.Oracle); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	out := c.out
	if out == "" {
		out = "plan.bin"
	}
	if err := plans.WriteFile(out, plan); err != nil {
		return err
	}
	if c.goDir != "" {
		if err := gosrc.Write(c.goDir, plan); err != nil {
			return err
		}
	}
	times = append(times, passes.Timing{Pass: "emit", Stage: ir.Place, Time: time.Since(start), Changed: true})
	report := codegen.NewReport(plan, t, times, out)
	if c.json {
		return json.NewEncoder(cli.Stdout).Encode(report)
	}
	return report.Print(cli.Stdout)
}

// load reads a model or a program in text form and the model it came from.
func (c *compileFlags) load(path string) (*ir.Program, *gguf.File, error) {
	if filepath.Ext(path) != ".zir" {
		kv, err := kvType(c.kv)
		if err != nil {
			return nil, nil, err
		}
		f, err := gguf.Open(path)
		if err != nil {
			return nil, nil, err
		}
		p, err := frontend.Load(f, frontend.Options{Ctx: int(c.ctx), KV: kv, MaxRows: codegen.MaxRows})
		if err != nil {
			f.Close()
			return nil, nil, err
		}
		return p, f, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := ir.Parse(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := gguf.Open(p.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: the model it was imported from: %w", path, err)
	}
	return p, f, nil
}

// pick returns the target that the program is for or shall be for.
func (c *compileFlags) pick(p *ir.Program) (*target.Target, *target.Probe, error) {
	name := c.target
	if name == "" {
		name = p.Target
	}
	t, probe, err := findTarget(name)
	if err == nil && p.Target != "" && t.Name != p.Target {
		err = cli.Usagef("--target: the program is specialized for %s already", p.Target)
	}
	return t, probe, err
}
