package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/gosrc"
	"github.com/zincc-dev/zincc/plans/trust"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/text"
)

var compileCommand = cli.Command{
	Name:  "compile",
	Args:  "MODEL|X.zir [--target TARGET] [-o plan.bin]",
	Short: "compile a model into a plan",
	Long: `
A model is a file, or a name as zincrun pull and zincrun list have it, such as qwen3:8b or
hf.co/Qwen/Qwen3-8B-GGUF; one that is not here is fetched first.

The stages are import, fuse, specialize, schedule and place. Then zincc emits kernels and
commands into the plan. --stop-after STAGE writes the program as .zir text instead, and
` + "`zincc compile X.zir`" + ` continues from there, also if you edited it. --dump-dir writes the
text after every pass that changed it.

The plan refers to the weights in the model file by offset. zincrun looks for the file at its old
path, then beside the plan, and compares the header (metadata, names, types and places of
tensors). ` + "`zincrun check-model`" + ` compares the tensors' data. --embed-weights copies the weights
into the plan.

zincc overwrites an existing output if it is a plan of the same model. --force overwrites any other
file.

AMD targets need no AMD GPU: Mesa's driver (version 25, not 26) compiles their kernels without one.
zincc refuses kernels that spill registers, ranks the others by a cost model, and records registers
and occupancy in the plan (zincc inspect). It keeps the answers in the user's cache folder.

Call sites that were tuned get the kernel that was best. This program holds measurements
of NVIDIA Hopper, and the answers of AMD's compiler for the shapes of published models. --tuning
FILE (repeatable) adds files of ` + "`zincrun tune` or `zincc tune`" + `, which take precedence over those
of the program; --tuning off uses neither. --candidates makes the plan that
zincrun tune times: it has a copy of each entry for every candidate.

zincc also finds out how the model marks reasoning and tool calls, by rendering its
chat template with probes. The plan records it; zincc inspect shows it.

--target probe.json compiles for the device that ` + "`zincrun probe --json`" + ` measured, here or on
another computer. The file has its limits, subgroups, matrices, memory, bandwidth and stage cost.

--emit-go DIR also writes the plan as Go source: commands and buffers as literals, kernels
beside them. go build makes one program of it that runs the model without zincrun. The
weights come from the model file, or with --embed-weights from the program itself. In a
module that requires github.com/zincc-dev/zincc, such as a checkout of it, go build ./DIR
is enough; elsewhere make a module first:

  zincc compile qwen3-8b.gguf --target gfx1201 --emit-go qwen
  cd qwen && go mod init qwen && go get github.com/zincc-dev/zincc && CGO_ENABLED=0 go build
  ./qwen --model qwen3-8b.gguf -p "Once upon a time"

zincc refuses a plan that needs more memory than the target has, and says which context
would be the largest. ` + "`zincc estimate`" + ` says it beforehand.

  zincc compile qwen3-8b.gguf --target gfx1201 --ctx 16k -o plan.bin
  zincrun probe --device vulkan:0 --json > card.json
  zincc compile qwen3-8b.gguf --target card.json -o plan.bin
  zincc compile qwen3-8b.gguf --target card.json --candidates -o tune.bin
  zincrun tune tune.bin -o card.jsonl
  zincc compile qwen3-8b.gguf --target card.json --tuning card.jsonl -o plan.bin
  zincc compile qwen3-8b.gguf --target host --stop-after fuse -o fused.zir`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		c := compileFlags{}
		f.StringVar(&c.target, "target", "", "device to compile for: a name of zincc targets, or a probe's .json (default native, the best device of this computer, see zincrun devices)")
		f.StringVar(&c.backend, "backend", "", "with --target native: use only this backend: cuda, vulkan, cpu or host (default the fastest)")
		f.StringVarP(&c.out, "output", "o", "", "file to write (default plan.bin, or the model's name with .zir)")
		f.Var(&c.ctx, "ctx", fmt.Sprintf("positions of the KV cache, such as 4096 or 128k, or max: as many as fit the memory and the model has (default the model's context, at most %d)", frontend.DefaultCtx))
		c.slots.n = 1
		f.Var(&c.slots, "slots", "sequences that the plan holds at a time, each with a KV cache of its own, or max: as many as fit, up to 8")
		c.pages.declare(f)
		f.StringVar(&c.kv, "kv", "f16", "type of the KV cache: "+ir.CacheTypeNames())
		f.BoolVar(&c.exact, "exact", false, "read prompts as exactly as answers: x in 12 bits on processors and in float32 on GPUs without matrices, instead of 8 bits or bfloat16; slower")
		f.BoolVar(&c.embed, "embed-weights", false, "put the weights into the plan")
		f.StringVar(&c.goDir, "emit-go", "", "also write the plan as a Go program into this directory")
		f.StringVar((*string)(&c.dialect), "dialect", "", "how the model writes tool calls, if its chat template does not show it: "+strings.Join(chat.Dialects(), ", "))
		f.StringVar(&c.stop, "stop-after", "", "write the program after this stage, as .zir")
		f.StringVar(&c.dump, "dump-dir", "", "write the program after every pass into this directory")
		c.choice.declare(f)
		f.BoolVar(&c.force, "force", false, "overwrite a file or directory that does not belong to this model")
		f.BoolVarP(&c.verbose, "verbose", "v", false, "also print the entries and the time of each pass")
		f.BoolVar(&c.json, "json", false, "print the result as JSON")
		return c.run
	},
}

type compileFlags struct {
	target, backend, out, kv, stop, dump, goDir string
	choice                                      choiceFlags
	ctx                                         ctxFlag
	slots                                       slotsFlag
	pages                                       pageFlags
	embed, exact, json, force, verbose          bool
	dialect                                     dialectFlag
}

func (c *compileFlags) run(ctx context.Context, args []string) error {
	path, err := input(ctx, args, "model or .zir file")
	if err != nil {
		return err
	}
	if err := c.dialect.check(); err != nil {
		return err
	}
	if err := c.pages.check(c.slots.n); err != nil {
		return err
	}
	stop, err := c.lastStage()
	if err != nil {
		return err
	}
	p, f, err := c.load(path)
	if err != nil {
		return err
	}
	defer f.Close()
	noText, err := c.checkText(f)
	if err != nil {
		return err
	}
	out := c.output(path)
	inputs := append(f.Shards(), append(c.choice.tuning, path, c.target)...)
	if err := c.checkOutputs(out, inputs, p.Source); err != nil {
		return err
	}
	bar, at := watch("compiling")
	defer bar.Done()
	t, probe, err := c.pick(ctx, p)
	if err != nil {
		return err
	}
	if c.ctx.n == most || c.slots.n == most {
		if p, err = c.fill(ctx, path, f, t, probe, at); err != nil {
			return err
		}
	}
	t = c.exactly(t)
	choice, done, err := c.choice.open(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	src := codegen.Source{Model: f, Program: p}
	o := codegen.Options{Target: t, Choice: choice, Embed: c.embed, Progress: at, Check: c.fits(path, t, probe)}
	if o.Dump, err = c.dumps(inputs); err != nil {
		return err
	}
	if c.stop != "" {
		if p, _, err = codegen.Lower(ctx, src, o, stop); err != nil {
			return err
		}
		return writeText(out, ir.Print(p), inputs)
	}
	compiled, err := codegen.Compile(ctx, src, o)
	if missing := new(objects.MissingError); c.target == native && c.backend == "" && errors.As(err, &missing) {
		fmt.Fprintf(cli.Stderr, "zincc: the model will run on the oracle (host), slowly: %s\n", err)
		c.target = "host"
		return c.run(ctx, args)
	}
	if err != nil {
		return err
	}
	bar.Done()
	c.dialect.set(path, compiled.Plan)
	own, err := frontend.Context(f)
	if err != nil {
		return err
	}
	if err := c.finish(out, compiled, t, own); err != nil {
		return err
	}
	if noText {
		fmt.Fprintf(cli.Stderr, "zincc: %s: %s: the plan takes token ids only\n", path, text.ErrNone)
	}
	return nil
}

// finish writes the plan, and prints what was made of a model with a context of so many positions.
func (c *compileFlags) finish(out string, compiled *codegen.Result, t *target.Target, own int) error {
	digest, unrecorded, err := c.write(out, compiled.Plan)
	if err != nil {
		return err
	}
	report := codegen.NewReport(compiled.Plan, t, own, compiled.Times, out)
	report.SHA256 = digest
	return c.print(report, unrecorded)
}

// lastStage is the one to stop after.
func (c *compileFlags) lastStage() (ir.Stage, error) {
	if c.stop == "" {
		return ir.Place, nil
	}
	if c.goDir != "" {
		return 0, cli.Usagef("--emit-go needs a whole plan and excludes --stop-after")
	}
	stop, ok := ir.ParseStage(c.stop)
	if !ok {
		return 0, cli.Usagef("--stop-after: unknown stage %q", c.stop)
	}
	return stop, nil
}

// exactly is the target with the flag --exact.
func (c *compileFlags) exactly(t *target.Target) *target.Target {
	if !c.exact {
		return t
	}
	if t.HasMatrices() {
		fmt.Fprintf(cli.Stderr, "zincc: --exact changes nothing for %s: it multiplies prompts with matrices, x in float16\n", t.Name)
	}
	return t.Exactly()
}

// dumps returns what writes the program after every pass, nil without --dump-dir.
func (c *compileFlags) dumps(inputs []string) (func(passes.Snapshot) error, error) {
	if c.dump == "" {
		return nil, nil
	}
	return func(s passes.Snapshot) error {
		return writeText(filepath.Join(c.dump, fmt.Sprintf("%02d-%s.zir", s.Number, s.Pass.Name)), s.Text, inputs)
	}, os.MkdirAll(c.dump, 0o777)
}

// fits returns what refuses a plan that is too large for the device, or wants what it lacks.
func (c *compileFlags) fits(path string, t *target.Target, probe *target.Probe) func(*plans.Plan) error {
	return func(plan *plans.Plan) error {
		if err := codegen.CheckMemory(plan, t); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if probe != nil {
			if err := probe.Check(plan.Require); err != nil {
				return fmt.Errorf("%s: %w", c.target, err)
			}
		}
		return nil
	}
}

// write writes the plan, and the Go program if one is wanted. unrecorded is why the plan could not be recorded as made
// here.
func (c *compileFlags) write(out string, plan *plans.Plan) (digest plans.Digest, unrecorded, err error) {
	var program []gosrc.File
	if c.goDir != "" { // before anything is written: a plan may hold what Go source cannot
		if program, err = gosrc.Files(plan); err != nil {
			return digest, nil, err
		}
	}
	if digest, err = plans.WriteFile(out, plan); err != nil {
		return digest, nil, err
	}
	unrecorded = trust.Add(digest)
	if c.goDir != "" {
		err = gosrc.WriteFiles(c.goDir, program)
	}
	return digest, unrecorded, err
}

// print tells the result.
func (c *compileFlags) print(r *codegen.Report, unrecorded error) error {
	switch {
	case c.json && unrecorded != nil:
		r.Unrecorded = unrecorded.Error()
	case unrecorded != nil:
		fmt.Fprintf(cli.Stderr, "zincc: %s: the plan could not be recorded as made here, so zincrun will ask for `zincc check` or `zincrun trust`: %s\n", r.Plan, unrecorded)
	}
	if c.json {
		return json.NewEncoder(cli.Stdout).Encode(r)
	}
	return r.Print(cli.Stdout, c.verbose)
}

// checkText fails if the plan could not run because its model's tokenizer is unknown or
// broken, and reports whether there is none.
func (c *compileFlags) checkText(f *gguf.File) (none bool, err error) {
	if c.stop != "" {
		return false, nil
	}
	vocab, err := plans.ReadVocab(f)
	if err == nil {
		_, err = text.New(vocab)
	}
	if errors.Is(err, text.ErrNone) {
		return true, nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", f.Path, err)
	}
	return false, err
}

// output is the file to write: what -o says, else one in this folder.
func (c *compileFlags) output(path string) string {
	switch {
	case c.out != "":
		return c.out
	case c.stop != "":
		return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + "." + c.stop + ".zir"
	}
	return "plan.bin"
}

// checkOutputs fails if writing would destroy an input, or, without --force, what is
// there of another model.
func (c *compileFlags) checkOutputs(out string, inputs []string, source string) error {
	for _, path := range []string{out, c.goDir} {
		if err := cli.CheckOutput(path, inputs...); err != nil {
			return err
		}
	}
	if c.force {
		return nil
	}
	if c.goDir != "" {
		if err := mayReplace(filepath.Join(c.goDir, gosrc.ProgramFile), programFile, source); err != nil {
			return err
		}
	}
	want := planFile
	if c.stop != "" {
		want = programFile
	}
	return mayReplace(out, want, source)
}

// writeText writes a text to a file that must not be one of the inputs.
func writeText(path, text string, inputs []string) error {
	if err := cli.CheckOutput(path, inputs...); err != nil {
		return err
	}
	return outfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// load reads a model or a program in text form and the model it came from.
func (c *compileFlags) load(path string) (*ir.Program, *gguf.File, error) {
	what, err := kindOf(path)
	if err != nil {
		return nil, nil, err
	}
	switch what {
	case modelFile:
		kv, err := kvType(c.kv)
		if err != nil {
			return nil, nil, err
		}
		f, err := gguf.Open(path)
		if err != nil {
			return nil, nil, err
		}
		p, err := codegen.Import(f, frontend.Options{Ctx: max(0, c.ctx.n), Slots: max(1, c.slots.n), KV: kv, Page: c.pages.page, Pool: int(c.pages.pool)})
		if err != nil {
			f.Close()
			return nil, nil, err
		}
		return p, f, nil
	case programFile:
		return loadProgram(path)
	}
	return nil, nil, fmt.Errorf("%s: neither %s nor %s%s", path, modelFile, programFile, butIs(path))
}

// loadProgram reads a program and opens the model it was imported from, by its path then
// or beside the program.
func loadProgram(path string) (*ir.Program, *gguf.File, error) {
	p, err := readProgramFile(path)
	if err != nil {
		return nil, nil, err
	}
	model := p.Path
	if _, err := os.Stat(model); err != nil {
		model = filepath.Join(filepath.Dir(path), filepath.Base(model))
	}
	f, err := gguf.Open(model)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: its model %s is neither there nor beside it; the second line of the file says where to look", path, p.Path)
	}
	return p, f, err
}

// pick returns the target that the program is for or shall be for.
func (c *compileFlags) pick(ctx context.Context, p *ir.Program) (t *target.Target, probe *target.Probe, err error) {
	name := c.target
	if name == "" {
		name = p.Target
	}
	if name == "" {
		name, c.target = native, native
	}
	if c.backend != "" && name != native {
		return nil, nil, cli.Usagef("--backend is for --target native, not for %s", name)
	}
	if c.backend != "" {
		if name, err = device.Name("auto", c.backend); err != nil {
			return nil, nil, cli.Usagef("%s", err)
		}
	}
	t, probe, err = findTarget(ctx, name)
	if err == nil && p.Target != "" && t.Name != p.Target {
		err = cli.Usagef("--target: the program is specialized for %s already", p.Target)
	}
	return t, probe, err
}
