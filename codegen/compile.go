package codegen

import (
	"context"
	"fmt"
	"time"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Source is the input of a compilation: a model (its header suffices unless
// weights are embedded) and, if there is one already, its program at any stage.
type Source struct {
	Model   *gguf.File  // nil only with a program of which no plan is made
	Program *ir.Program // changed in place; nil: imported from Model
}

// Options say what to compile for and how.
type Options struct {
	Target *target.Target
	Import frontend.Options // for a source without a program
	Choice Choice           // the zero value takes each family's best guess
	Embed  bool             // put the weights into the plan
	// Dump, if not nil, gets the program after each pass that changed it.
	Dump func(s passes.Snapshot) error
	// Check, if not nil, gets the plan before the target's compiler is asked about its kernels.
	Check func(p *plans.Plan) error
	// Progress, if not nil, gets how far a part of the compilation is. It may be called from several goroutines.
	Progress Progress
}

// Progress gets what is being done, and how much of it is.
type Progress func(part string, done, total int)

// of is the progress of a part.
func (p Progress) of(part string) func(done, total int) {
	return func(done, total int) {
		if p != nil {
			p(part, done, total)
		}
	}
}

// Result is a compiled plan, with the time of each pass and of emission.
type Result struct {
	Plan  *plans.Plan
	Times []passes.Timing
}

// Compile makes the plan of src.
func Compile(ctx context.Context, src Source, o Options) (*Result, error) {
	if o.Choice.Compiler != nil {
		o.Choice.Compiler.Asking(o.Progress.of("asking AMD's compiler"))
	}
	calls := chosen{tables: []*tuning.Table{o.Choice.Tuned}} // of a program whose kernels are chosen already
	p, times, err := lower(ctx, src, o, ir.Place, func(p *ir.Program) (_ chosen, err error) {
		calls, err = selectKernels(ctx, p, o.Target, o.Choice)
		return calls, err
	})
	if err != nil {
		return nil, err
	}
	if src.Model == nil {
		return nil, fmt.Errorf("a plan needs the model that its program was imported from")
	}
	start := time.Now()
	plan, err := emit(ctx, p, src.Model, o, calls)
	if err != nil {
		return nil, err
	}
	if o.Check != nil {
		if err := o.Check(plan); err != nil {
			return nil, err
		}
	}
	if o.Choice.Compiler != nil {
		if err := Annotate(ctx, plan, o.Target, o.Choice.Compiler); err != nil {
			return nil, err
		}
	}
	times = append(times, passes.Timing{Pass: "emit", Stage: ir.Place, Time: time.Since(start), Changed: true})
	return &Result{plan, times}, ctx.Err()
}

// Kernels lowers a program, which it changes, and builds the kernels of its calls for which wants returns true. It
// makes no plan. It calls wants once for each module.
func Kernels(ctx context.Context, p *ir.Program, t *target.Target, wants func(kernel string) bool) error {
	e := newEmitter(p, t, &plans.Plan{Program: p})
	e.wants = wants
	_, _, err := lower(ctx, Source{Program: p}, Options{Target: t}, ir.Place, func(p *ir.Program) (_ chosen, err error) {
		e.known, err = selectKernels(ctx, p, t, Choice{})
		return e.known, err
	})
	if err != nil {
		return err
	}
	if e.backend, err = backendOf(t.Backend); err != nil {
		return err
	}
	return e.prepare(ctx)
}

// Import makes the program of a model, at stage import; a row limit of 0 means MaxRows.
func Import(f *gguf.File, o frontend.Options) (*ir.Program, error) {
	if o.MaxRows == 0 {
		o.MaxRows = MaxRows
	}
	return frontend.Load(f, o)
}

// Lower imports src, unless it has a program, and runs the passes up to a stage.
func Lower(ctx context.Context, src Source, o Options, stop ir.Stage) (*ir.Program, []passes.Timing, error) {
	return lower(ctx, src, o, stop, func(p *ir.Program) (chosen, error) {
		return selectKernels(ctx, p, o.Target, o.Choice)
	})
}

// lower is Lower with another way to choose kernels.
func lower(ctx context.Context, src Source, o Options, stop ir.Stage, choose func(p *ir.Program) (chosen, error)) (*ir.Program, []passes.Timing, error) {
	p := src.Program
	if p == nil {
		var err error
		if p, err = Import(src.Model, o.Import); err != nil {
			return nil, nil, err
		}
	}
	if o.Target.Processor() && p.Global(ir.StepPages) != nil {
		return nil, nil, ir.Unsupported("target %s: processors hold the caches of each sequence side by side, not in pages", o.Target.Name)
	}
	rows := 0
	for _, f := range p.Funcs {
		rows = max(rows, f.Rows)
	}
	times, err := passes.Run(p, passTable(o.Target, rows, choose), passes.Options{StopAfter: stop, Dump: o.Dump, Progress: o.Progress.of("passes")})
	if err == nil {
		err = ctx.Err()
	}
	return p, times, err
}
