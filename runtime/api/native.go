package api

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// handleTokenize returns the ids of a text, as llama-server does.
func handleTokenize(c *call) error {
	var q struct {
		Model        string  `json:"model"`
		Content      *string `json:"content"`
		AddSpecial   bool    `json:"add_special"`
		ParseSpecial *bool   `json:"parse_special"`
		WithPieces   bool    `json:"with_pieces"`
	}
	if err := c.body(&q); err != nil {
		return err
	}
	if q.Content == nil {
		return badParam("content", "content is missing")
	}
	if err := c.admit(); err != nil {
		return err
	}
	m, err := c.model(q.Model)
	if err != nil {
		return err
	}
	var ids []int32
	err = c.text(func(ctx context.Context) error {
		ids, err = m.Tokenizer.EncodeContext(ctx, *q.Content, text.EncodeOptions{AddSpecial: q.AddSpecial, ParseSpecial: q.ParseSpecial == nil || *q.ParseSpecial})
		return err
	})
	if err != nil {
		return err
	}
	q.Content = nil
	c.forget()
	return writeTokens(c.w, m.Tokenizer, ids, q.WithPieces)
}

// writeTokens writes tokens one by one: all of them as JSON may be many times as large as their text.
func writeTokens(to http.ResponseWriter, tok *text.Tokenizer, ids []int32, pieces bool) error {
	to.Header().Set("Content-Type", "application/json; charset=utf-8")
	w := bufio.NewWriterSize(to, replyPart)
	w.WriteString(`{"tokens":[`)
	var one []byte
	for i, id := range ids {
		one = one[:0]
		if i > 0 {
			one = append(one, ',')
		}
		if pieces {
			one = append(one, `{"id":`...)
		}
		one = strconv.AppendInt(one, int64(id), 10)
		if pieces {
			one = append(one, `,"piece":`...)
			one = append(appendPiece(one, tok.Piece(id, true)), '}')
		}
		if _, err := w.Write(one); err != nil {
			return gone(err)
		}
	}
	w.WriteString("]}\n")
	return gone(w.Flush())
}

// appendPiece appends a text, or the bytes of what is none.
func appendPiece(b []byte, piece string) []byte {
	if utf8.ValidString(piece) {
		return append(b, quote(piece)...)
	}
	for i, c := range []byte(piece) {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return append(b, ']')
}

func handleDetokenize(c *call) error {
	var q struct {
		Model  string  `json:"model"`
		Tokens []int32 `json:"tokens"`
	}
	if err := c.body(&q); err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	m, err := c.model(q.Model)
	if err != nil {
		return err
	}
	if err := (prompt{ids: q.Tokens}).check(m, "tokens"); err != nil {
		return err
	}
	bytes := 0
	for _, id := range q.Tokens {
		bytes += len(m.Tokenizer.Piece(id, true))
	}
	if int64(bytes) > c.s.o.MaxBody {
		return badParam("tokens", "tokens: their text has %d bytes, at most %d", bytes, c.s.o.MaxBody)
	}
	return c.reply(map[string]string{"content": m.Tokenizer.Decode(q.Tokens, true)})
}

// handleTemplate returns what the model would read of a conversation.
func handleTemplate(c *call) error {
	var q chatRequest
	if err := c.body(&q); err != nil {
		return err
	}
	tq, err := q.talk()
	if err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	m, conv, err := c.prepare(tq)
	if err != nil {
		return err
	}
	conv.Generate = q.Generation == nil || *q.Generation
	var prompt string
	err = c.text(func(ctx context.Context) error {
		prompt, err = m.render(ctx, *conv)
		return err
	})
	if err != nil {
		return err
	}
	return c.reply(map[string]string{"prompt": prompt})
}

// handleProps says how the server is set up, as llama-server does.
func handleProps(c *call) error {
	name := c.r.URL.Query().Get("model")
	served, err := c.s.find(name)
	if err != nil {
		return err
	}
	type mediaJSON struct {
		Vision bool `json:"vision"`
		Audio  bool `json:"audio"`
	}
	type defaults struct {
		Params sample.Params `json:"params"`
		Ctx    int           `json:"n_ctx"`
	}
	type props struct {
		Name     string        `json:"model_alias"`
		Path     string        `json:"model_path"`
		Slots    int           `json:"total_slots"`
		Ctx      int           `json:"n_ctx"`
		Build    string        `json:"build_info"`
		Media    mediaJSON     `json:"modalities"`
		Status   string        `json:"status"`
		Defaults *defaults     `json:"default_generation_settings,omitempty"`
		BOS      string        `json:"bos_token"`
		EOS      string        `json:"eos_token"`
		Template string        `json:"chat_template,omitempty"`
		Caps     *templateCaps `json:"chat_template_caps,omitempty"`
		Dialect  any           `json:"dialect,omitempty"`
		Header   *plans.Header `json:"plan,omitempty"`
	}
	state, _ := c.s.pool.state(served)
	p := props{Name: served.Names[0], Path: served.Path, Ctx: served.Ctx, Build: c.s.o.Version, Status: state}
	c.s.pool.each(func(s *Served, m *Model) {
		if s != served {
			return
		}
		p.Slots, p.Ctx, p.Defaults, p.Header = m.Header.Slots, m.Header.Ctx, &defaults{m.Defaults, m.Header.Ctx}, &m.Header
		if m.Template != nil {
			d := m.Template.Dialect()
			p.Template, p.Dialect, p.Caps = m.Template.Source(), d, capsOf(d)
			p.BOS, p.EOS = m.Template.Tokens()
		}
	})
	return c.reply(p)
}

// templateCaps are what a chat template can do, in llama-server's words.
type templateCaps struct {
	Tools    bool `json:"supports_tools"`
	Calls    bool `json:"supports_tool_calls"`
	Parallel bool `json:"supports_parallel_tool_calls"`
	System   bool `json:"supports_system_role"`
}

func capsOf(d chat.Dialect) *templateCaps {
	tools := d.Calls != ""
	return &templateCaps{Tools: tools, Calls: tools, Parallel: tools && !d.OneCall, System: slices.Contains(d.Roles, "system")}
}

// handleSlots says what the slots of all loaded models hold, as llama-server does.
func handleSlots(c *call) error {
	type row struct {
		ID         int    `json:"id"`
		Model      string `json:"model"`
		Ctx        int    `json:"n_ctx"`
		Processing bool   `json:"is_processing"`
		slotJSON
	}
	all := []row{}
	c.s.pool.each(func(s *Served, m *Model) {
		st := m.Engine.Stats()
		for i, slot := range c.slots(st) {
			all = append(all, row{i, s.Names[0], st.Ctx, slot.State != "idle", slotOf(slot)})
		}
	})
	return c.reply(all)
}

// slots are those of a model as the key may see them: how much they hold is of who uses them, so that a key without
// admin sees their states.
func (c *call) slots(st engine.Stats) []engine.SlotStats {
	if c.seesAll() {
		return st.Slots
	}
	all := make([]engine.SlotStats, len(st.Slots))
	for i, s := range st.Slots {
		all[i].State = s.State
	}
	return all
}

// seesAll says whether the key may see what others' requests do.
func (c *call) seesAll() bool { return c.user == nil || c.user.Admin }

// slotJSON is engine.SlotStats.
type slotJSON struct {
	State      string `json:"state"`
	Tokens     int    `json:"tokens"`
	Kept       int    `json:"kept"`
	Pages      int    `json:"pages,omitempty"` // of a pool
	Prompt     int    `json:"prompt"`
	Cached     int    `json:"cached"`
	Answer     int    `json:"answer"`
	Checkpoint int64  `json:"checkpoint_bytes"`
	// Of the request that has the slot, or had it last: why it got this one, where the tokens were that needed no
	// computing, and what no slot holds any more since; and why its prompt is not read on now.
	Why      string `json:"why,omitempty"`
	Reuse    string `json:"reuse,omitempty"`
	From     *int   `json:"from,omitempty"`
	Forgot   int    `json:"forgot"`
	WaitsFor string `json:"waits_for,omitempty"`
}

func slotOf(s engine.SlotStats) slotJSON {
	j := slotJSON{State: s.State, Tokens: s.Tokens, Kept: s.Kept, Pages: s.Pages, Prompt: s.Prompt, Cached: s.Cached, Answer: s.Answer, Checkpoint: s.Checkpoint,
		Why: s.Why, Reuse: s.Reuse, Forgot: s.Forgot, WaitsFor: s.WaitsFor}
	if s.Reuse == engine.OtherSlot {
		j.From = &s.From
	}
	return j
}

// cacheJSON is cache.Stats.
type cacheJSON struct {
	Nodes           int   `json:"pieces"`
	States          int   `json:"states"`
	Tokens          int   `json:"tokens"`
	StateBytes      int64 `json:"state_bytes"`
	ForgottenTokens int64 `json:"forgotten_tokens"`
	EvictedStates   int64 `json:"evicted_states"`
}

// hostJSON is what the host's memory has of prompts, and what was found there and in files.
type hostJSON struct {
	Pieces   int   `json:"pieces"`
	Bytes    int64 `json:"bytes"`
	Restored int64 `json:"restored_tokens"`
}

// pagesJSON is cache.PageStats, and how often a request gave its slot up for the pages of others.
type pagesJSON struct {
	Positions   int   `json:"positions"`
	Total       int   `json:"total"`
	Free        int   `json:"free"`
	Held        int   `json:"held"`
	Shared      int   `json:"shared"`
	Preemptions int64 `json:"preemptions"`
}

// loadJSON is what a model does and has done.
type loadJSON struct {
	Model        string         `json:"model"`
	Status       string         `json:"status"`
	Stage        string         `json:"stage,omitempty"`    // of a model that is being loaded: what is done, and how far, for people
	Progress     *float64       `json:"progress,omitempty"` // of the stage, 0 to 1; none where that is not known
	Device       string         `json:"device"`
	Ctx          int            `json:"ctx"`
	Waiting      int            `json:"waiting"`
	WaitingFor   map[string]int `json:"waiting_for,omitempty"` // by what they wait for
	Running      int            `json:"running"`
	PromptRate   float64        `json:"prompt_rate"` // tokens a second of late
	GenerateRate float64        `json:"generate_rate"`
	Prompt       int64          `json:"prompt_tokens"`
	Cached       int64          `json:"cached_tokens"`
	Generated    int64          `json:"generated_tokens"`
	Kept         *cacheJSON     `json:"prefixes,omitempty"`   // what slots hold of prompts
	Host         *hostJSON      `json:"host_cache,omitempty"` // what memory has of prompts beside them
	Pages        *pagesJSON     `json:"pages,omitempty"`      // of the pool, where there is one
	Slots        []slotJSON     `json:"slots"`
	Entries      []entryJSON    `json:"entries"`
	Memory       Memory         `json:"memory"`
}

type entryJSON struct {
	Name    string  `json:"name"`
	Steps   int64   `json:"steps"`
	Rows    int64   `json:"rows"`
	Prompts int64   `json:"prompts"` // of which rows were read, counted in each step
	MS      float64 `json:"ms"`      // of all steps together
	Ratio   float64 `json:"ratio"`   // measured to predicted
}

// handleLoad says how many requests are being answered, as vLLM does, and what each model does.
func handleLoad(c *call) error {
	reply := struct {
		Load   int64      `json:"server_load"`
		Models []loadJSON `json:"models"`
	}{c.s.inFlight.Load(), []loadJSON{}}
	at := map[*Served]int{}
	for i, served := range c.s.pool.all() {
		at[served] = i
		state, _ := c.s.pool.state(served)
		l := loadJSON{Model: served.Names[0], Status: state, Ctx: served.Ctx}
		if at := c.s.pool.stage(served); at != nil {
			l.Stage, l.Progress = at.String(), at.fraction()
		}
		reply.Models = append(reply.Models, l)
	}
	c.s.pool.each(func(served *Served, m *Model) {
		i, ok := at[served]
		if !ok {
			return // it came in between
		}
		st := m.Engine.Stats()
		l := &reply.Models[i]
		*l = loadJSON{Model: l.Model, Status: l.Status, Device: st.Device, Ctx: st.Ctx, Waiting: st.Waiting, Running: running(st),
			PromptRate: st.PromptRate, GenerateRate: st.GenerateRate, Prompt: st.PromptTokens, Cached: st.CachedTokens, Generated: st.GeneratedTokens, Memory: m.Memory}
		if c.seesAll() {
			kept := cacheJSON(st.Cache)
			l.WaitingFor, l.Kept = st.WaitingFor, &kept
			if st.KeptPieces > 0 || st.RestoredTokens > 0 {
				l.Host = &hostJSON{st.KeptPieces, st.KeptBytes, st.RestoredTokens}
			}
			if p := st.Pages; p.Total > 0 {
				l.Pages = &pagesJSON{p.Positions, p.Total, p.Free, p.Held, p.Shared, st.Preempted}
			}
		}
		for _, s := range c.slots(st) {
			l.Slots = append(l.Slots, slotOf(s))
		}
		for _, e := range st.Entries {
			l.Entries = append(l.Entries, entryJSON{e.Name, e.Steps, e.Rows, e.Prompts, ms(e.Time), e.Ratio})
		}
	})
	return c.reply(reply)
}

// running counts the slots that are in use.
func running(s engine.Stats) int {
	n := 0
	for _, slot := range s.Slots {
		if slot.State != "idle" {
			n++
		}
	}
	return n
}

// usedShare is how much of the cache requests of now take, 0 to 1.
func usedShare(s engine.Stats) float64 {
	used, all := 0, 0
	for _, slot := range s.Slots {
		all += s.Ctx
		if slot.State != "idle" {
			used += slot.Tokens
		}
	}
	if p := s.Pages; p.Total > 0 {
		all = p.Total * p.Positions
	}
	if all == 0 {
		return 0
	}
	return min(1, float64(used)/float64(all)) // of a pool, slots share some
}
