package codegen

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/printable"
	units "github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
)

// Report sums up a compilation for people and, as JSON, for programs. Bytes are those on the device.
type Report struct {
	Plan       string
	SHA256     plans.Digest // of the plan's file
	Unrecorded string       `json:",omitempty"` // why it is not on record as made here
	Target     string
	Model      string
	Arch       string
	Parameters int64
	Ctx        int
	OwnCtx     int // positions that the model was trained for
	Slots      int
	Pool       int   `json:",omitempty"` // positions that the pages of all sequences have at least; 0: each has its context
	MostPool   int   `json:",omitempty"` // that they may have, where memory is
	PageBytes  int64 `json:",omitempty"` // that one more page takes
	KVType     string
	Entries    []EntryReport
	Weights    int64
	KV         int64
	State      int64
	Arena      int64
	Memory     int64 // all that the plan needs
	Has        int64 // memory of the target; 0 where that is not known
	LargestCtx int   // largest context that fits the target's memory; 0 where that is not known
	Chat       bool  // the model has a chat template
	Vectors    bool  // it makes vectors of texts and predicts no tokens
	Ranks      bool  // and these are scores
	// Read by decode/1 with an empty cache; 0 for a model that makes vectors.
	BytesPerToken int64
	// Predicted tokens a second behind an empty cache: of decode/1, and of a full step of the widest prefill or embed
	// entry; 0 where nothing is predicted. Cores are those of a processor that the predictions are for.
	Decode, Prompt plans.Range
	Cores          int
	PromptRows     int
	Passes         []PassReport
	Total          time.Duration
}

// EntryReport counts the dispatches of an entry and their stages.
type EntryReport struct {
	Name       string
	Dispatches int
	Stages     int
	PerLayer   float64 // dispatches of the layers over the number of layers
}

// PassReport is the time of a pass.
type PassReport struct {
	Name string
	Time time.Duration
}

// NewReport sums up plan, which was compiled for t and written to path; own is the context that its
// model was trained for.
func NewReport(plan *plans.Plan, t *target.Target, own int, times []passes.Timing, path string) *Report {
	h := &plan.Header
	r := &Report{
		Plan: path, Target: printable.Name(h.Target), Model: printable.Name(h.Model.Name), Arch: h.Model.Arch, Parameters: h.Model.Parameters,
		Ctx: h.Ctx, OwnCtx: own, Slots: h.Slots, KVType: h.KV,
		Weights: plan.WeightBytes(), KV: plans.SumBytes(plan.Memory.KV), State: plans.SumBytes(plan.Memory.State), Arena: plan.Memory.Arena,
		Memory: plan.MemoryBytes(), Has: t.Memory, Chat: plan.Dialect.Name != "", Ranks: plan.Vocab.RankTemplate != "", Cores: target.Cores(t),
	}
	if k := plan.Paged(); k != nil {
		r.Pool, r.MostPool, r.PageBytes = (k.Pages-1)*k.Page, (plan.MostPages()-1)*k.Page, plan.PageBytes()
	}
	if t.Memory != 0 {
		r.LargestCtx = LargestCtx(plan, t)
	}
	for i := range plan.Entries {
		r.entry(plan, &plan.Entries[i])
	}
	for _, t := range times {
		r.Passes = append(r.Passes, PassReport{t.Pass, t.Time})
		r.Total += t.Time
	}
	return r
}

func (r *Report) entry(plan *plans.Plan, e *plans.Entry) {
	inLayers := 0
	for _, d := range e.Dispatches {
		if strings.HasPrefix(d.Site, "blk.") {
			inLayers++
		}
	}
	r.Entries = append(r.Entries, EntryReport{e.Name, len(e.Dispatches), e.Stages(), float64(inLayers) / float64(max(plan.Header.Model.Layers, 1))})
	rate := plan.Rate(e, 0, r.Cores)
	switch {
	case e.Kind == "decode" && e.Rows == 1:
		r.BytesPerToken, _, _ = e.Work(0)
		r.Decode = rate
	case e.Kind == "embed":
		r.Vectors = true
		fallthrough
	case e.Kind == "prefill":
		if e.Rows <= r.PromptRows || rate[0] == 0 {
			return
		}
		r.PromptRows, r.Prompt = e.Rows, rate
	}
}

// Print writes a summary for people; if verbose, also the entries and the time of each pass.
func (r *Report) Print(w io.Writer, verbose bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s parameters, for %s\n", r.Plan, r.Model, units.Count(r.Parameters), r.Target)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s %s\n", what, fmt.Sprintf(format, args...))
	}
	sequences := "1 sequence"
	if r.Slots > 1 {
		sequences = fmt.Sprintf("%d sequences", r.Slots)
	}
	if r.Pool > 0 {
		sequences += fmt.Sprintf(" in a pool of %d positions", r.Pool)
		if r.MostPool > r.Pool {
			sequences += fmt.Sprintf(" to %d", r.MostPool)
		}
	}
	cache := "KV cache in " + r.KVType
	if r.KVType == "none" {
		cache = "no KV cache"
	}
	line("context", "%d positions, %s, %s", r.Ctx, sequences, cache)
	line("memory", "%s%s: weights %s, KV cache %s%s, activations %s", units.Bytes(r.Memory), r.has(), units.Bytes(r.Weights), units.Bytes(r.KV), r.state(), units.Bytes(r.Arena))
	if most := min(r.LargestCtx, r.OwnCtx); most > r.Ctx {
		line("", "--ctx up to %d would fit", most)
	}
	with := ""
	if r.Cores > 0 {
		with = fmt.Sprintf(", with %d cores", r.Cores)
	}
	switch {
	case r.Decode[0] > 0:
		line("predicted", "%s tokens/s, a prompt of %d at %s tokens/s%s", r.Decode.Text(speed), r.PromptRows, r.Prompt.Text(speed), with)
	case r.Prompt[0] > 0:
		line("predicted", "a text of %d tokens at %s tokens/s%s", r.PromptRows, r.Prompt.Text(speed), with)
	}
	if !r.Vectors {
		line("a token", "reads %s in %d dispatches", units.Bytes(r.BytesPerToken), r.Entries[0].Dispatches)
	}
	line("compiled", "in %s", r.Total.Round(time.Millisecond))
	if verbose {
		r.printVerbose(&b)
	}
	next := fmt.Sprintf("zincrun %s -p \"Once upon a time\"", r.Plan)
	switch {
	case r.Ranks:
		next = "zincrun serve " + r.Plan
	case r.Vectors:
		next = fmt.Sprintf("zincrun embed %s -p \"Once upon a time\", zincrun serve %s", r.Plan, r.Plan)
	case r.Chat:
		next = fmt.Sprintf("zincrun chat %s, zincrun serve %s", r.Plan, r.Plan)
	}
	line("next", "%s", next)
	_, err := io.WriteString(w, b.String())
	return err
}

// has says of how much memory the plan's is a part.
func (r *Report) has() string {
	if r.Has == 0 {
		return ""
	}
	return fmt.Sprintf(" of %s", units.Bytes(r.Has))
}

func (r *Report) state() string {
	if r.State == 0 {
		return ""
	}
	return fmt.Sprintf(", recurrent state %s", units.Bytes(r.State))
}

// speed writes a prediction with the digits that it is good for.
func speed(perSecond float64) string {
	if perSecond < 1000 {
		return fmt.Sprintf("%.3g", perSecond)
	}
	return units.Count(perSecond).String()
}

func (r *Report) printVerbose(b *strings.Builder) {
	fmt.Fprintf(b, "\n%-14s %10s %6s %10s\n", "entry", "dispatches", "stages", "per layer")
	for _, e := range r.Entries {
		fmt.Fprintf(b, "%-14s %10d %6d %10.1f\n", e.Name, e.Dispatches, e.Stages, e.PerLayer)
	}
	b.WriteString("\npasses")
	for i, p := range r.Passes {
		if i%4 == 0 {
			b.WriteString("\n ")
		}
		fmt.Fprintf(b, " %s %s", p.Name, p.Time.Round(10*time.Microsecond))
	}
	b.WriteString("\n\n")
}
