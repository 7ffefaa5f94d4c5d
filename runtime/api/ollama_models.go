package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/text"
)

// ollamaModel is a row of GET /api/tags and /api/ps.
type ollamaModel struct {
	Name     string        `json:"name"`
	Model    string        `json:"model"`
	Modified string        `json:"modified_at,omitempty"`
	Size     int64         `json:"size"`
	Digest   string        `json:"digest"`
	Details  ollamaDetails `json:"details"`
	Expires  string        `json:"expires_at,omitempty"`
	VRAM     *int64        `json:"size_vram,omitempty"`
	Ctx      int           `json:"context_length,omitempty"`
}

type ollamaDetails struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

func detailsOf(h plans.Model, quantization string) ollamaDetails {
	d := ollamaDetails{Format: "gguf", Family: h.Arch, Families: []string{}, Quantization: quantization}
	if h.Arch != "" {
		d.Families = append(d.Families, h.Arch)
	}
	switch n := float64(h.Parameters); {
	case n >= 1e9:
		d.Parameters = fmt.Sprintf("%.1fB", n/1e9)
	case n > 0:
		d.Parameters = fmt.Sprintf("%.0fM", n/1e6)
	}
	return d
}

// row is what is known of a model without loading it.
func (s *Server) row(served *Served, m *Model) ollamaModel {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", served.Path, served.Bytes, served.Made.UnixNano()))
	r := ollamaModel{Name: served.Names[0], Model: served.Names[0], Modified: served.Made.UTC().Format(time.RFC3339Nano), Size: served.Bytes, Digest: hex.EncodeToString(sum[:]), Details: detailsOf(plans.Model{}, "")}
	d := served.summary()
	if r.Details = detailsOf(d.model, d.quantization); m != nil {
		r.Details = detailsOf(m.Header.Model, d.quantization)
	}
	return r
}

// summary is what the file of a model says of its size and types, read once; nothing if it cannot be read.
func (s *Served) summary() *described {
	s.reading.Do(func() {
		s.read = &described{}
		if s.Broken != "" {
			return
		}
		if d, err := describe(s.Path); err == nil {
			s.read = &described{model: d.model, ctx: d.ctx, quantization: d.quantization}
		}
	})
	return s.read
}

func (s *Server) loadedModels() map[*Served]*Model {
	loaded := map[*Served]*Model{}
	s.pool.each(func(served *Served, m *Model) { loaded[served] = m })
	return loaded
}

func handleOllamaTags(c *call) error {
	loaded := c.s.loadedModels()
	rows := []ollamaModel{}
	for _, served := range c.s.pool.all() {
		if state, _ := c.s.pool.state(served); state == broken {
			continue
		}
		for _, name := range served.Names {
			r := c.s.row(served, loaded[served])
			r.Name, r.Model = name, name
			rows = append(rows, r)
		}
	}
	return c.reply(map[string]any{"models": rows})
}

// handleOllamaPs lists the models in memory. They stay there until others need it, unless a keep_alive says how long.
func handleOllamaPs(c *call) error {
	rows := []ollamaModel{}
	c.s.pool.each(func(served *Served, m *Model) {
		r := c.s.row(served, m)
		memory := m.Memory.total()
		r.Modified, r.Size, r.VRAM, r.Ctx = "", memory, &memory, m.Header.Ctx
		r.Expires = c.s.pool.expires(served).UTC().Format(time.RFC3339Nano)
		rows = append(rows, r)
	})
	return c.reply(map[string]any{"models": rows})
}

// named is the body of what is about one model.
type named struct {
	Model    string `json:"model"`
	Name     string `json:"name"` // once
	Stream   *bool  `json:"stream"`
	Insecure bool   `json:"insecure"`
	Verbose  bool   `json:"verbose"`
}

func (c *call) named() (named, error) {
	var q named
	if err := c.ollamaBody(&q); err != nil {
		return q, err
	}
	if q.Model == "" {
		q.Model = q.Name
	}
	if q.Model == "" {
		return q, badParam("model", "model is missing")
	}
	return q, nil
}

// described is what the file of a model says of it, loaded or not.
type described struct {
	model        plans.Model
	ctx          int
	quantization string
	vocab        plans.Vocab
	dialect      plans.Dialect
	vectors      bool
	ranks        bool
}

// describe reads the file of a model.
func describe(path string) (*described, error) {
	if !gguf.Is(path) {
		p, err := plans.Read(path)
		if err != nil {
			return nil, err
		}
		defer p.Close()
		return &described{model: p.Header.Model, ctx: p.Header.Ctx, vocab: p.Vocab, dialect: p.Dialect}, nil
	}
	f, err := gguf.OpenHeader(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := &described{}
	if d.vocab, err = plans.ReadVocab(f); err != nil {
		return nil, err
	}
	d.model.Arch, _, _ = f.String("general.architecture")
	d.model.Name, _, _ = f.String("general.name")
	ctx, _, _ := f.Uint(d.model.Arch + ".context_length")
	pooling, _, _ := f.Uint(d.model.Arch + ".pooling_type")
	d.ctx, d.vectors, d.ranks = int(min(ctx, math.MaxInt32)), pooling != 0, d.vocab.RankTemplate != ""
	sizes := map[string]int64{}
	for _, t := range f.Tensors {
		n := int64(1)
		for _, side := range t.Shape {
			n *= side
		}
		d.model.Parameters += n
		if sizes[t.TypeName] += t.Size; sizes[t.TypeName] > sizes[d.quantization] {
			d.quantization = t.TypeName
		}
	}
	return d, nil
}

func handleOllamaShow(c *call) error {
	q, err := c.named()
	if err != nil {
		return err
	}
	served, err := c.s.find(q.Model)
	if err != nil {
		return err
	}
	m := c.s.loadedModels()[served]
	d := &described{}
	if m == nil {
		if d, err = describe(served.Path); err != nil {
			return &Error{Kind: invalid, Message: err.Error()}
		}
	} else {
		d.model, d.ctx, d.quantization = m.Header.Model, m.Header.Ctx, served.summary().quantization
		_, d.vectors = m.Engine.(Embedder)
		d.ranks = m.Rank != ""
	}
	template, tok := (*chat.Template)(nil), (*text.Tokenizer)(nil)
	if m != nil {
		template, tok = m.Template, m.Tokenizer
	} else {
		template, _ = chat.Open(d.vocab, d.dialect) // none: it only continues text
		tok, _ = text.New(d.vocab)
	}
	reply := struct {
		Modelfile    string         `json:"modelfile"`
		Parameters   string         `json:"parameters"`
		Template     string         `json:"template"`
		Details      ollamaDetails  `json:"details"`
		Info         map[string]any `json:"model_info"`
		Capabilities []string       `json:"capabilities"`
		Modified     string         `json:"modified_at"`
	}{Modelfile: "FROM " + served.Path + "\n", Details: detailsOf(d.model, d.quantization), Modified: served.Made.UTC().Format(time.RFC3339Nano), Info: map[string]any{
		"general.architecture": d.model.Arch, "general.parameter_count": d.model.Parameters, "general.basename": d.model.Name,
	}}
	if d.ctx > 0 {
		reply.Info[d.model.Arch+".context_length"] = d.ctx
	}
	if template != nil {
		reply.Template = template.Source()
	}
	if reply.Capabilities = capabilities(d.vectors, template, tok); d.ranks {
		reply.Capabilities = []string{"rerank"}
	}
	return c.reply(reply)
}

// capabilities are what a model can do, in Ollama's words.
func capabilities(vectors bool, t *chat.Template, tok *text.Tokenizer) []string {
	if vectors {
		return []string{"embedding"}
	}
	all := []string{"completion"}
	if t != nil && t.Dialect().Calls != "" {
		all = append(all, "tools")
	}
	if t != nil && t.Dialect().ReasoningClose != "" {
		all = append(all, "thinking")
	}
	if tok != nil {
		if _, ok := tok.Gap(); ok {
			all = append(all, "insert")
		}
	}
	return all
}

// admin says whether who asks may change what is served.
func (c *call) admin() error {
	if c.user == nil && !c.s.o.Loopback || c.user != nil && !c.user.Admin {
		return &Error{Kind: forbidden, Message: "this needs the key of an administrator"}
	}
	return nil
}

func handleOllamaDelete(c *call) error {
	q, err := c.named()
	if err != nil {
		return err
	}
	if err := c.admin(); err != nil {
		return err
	}
	if c.s.o.Library == nil {
		return errNoLibrary
	}
	served, err := c.s.find(q.Model)
	if err != nil {
		return err
	}
	if err := c.s.o.Library.Delete(c.r.Context(), served.Names[0]); err != nil {
		return libraryError(err)
	}
	c.w.WriteHeader(200)
	return nil
}

// libraryError is an error of the library, which is for who asked.
func libraryError(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) || errors.Is(err, context.Canceled) {
		return err
	}
	return &Error{Kind: invalid, Code: "library", Message: err.Error()}
}

func handleOllamaPull(c *call) error {
	q, err := c.named()
	if err != nil {
		return err
	}
	if err := c.admin(); err != nil {
		return err
	}
	if c.s.o.Library == nil {
		return errNoLibrary
	}
	type line struct {
		Status    string `json:"status"`
		Digest    string `json:"digest,omitempty"`
		Total     int64  `json:"total,omitempty"`
		Completed int64  `json:"completed,omitempty"`
	}
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	var out *stream
	if q.Stream == nil || *q.Stream {
		out = newStream(c.w)
		out.media = "application/x-ndjson"
	}
	say := func(l line) {
		if out != nil && out.line(l) != nil {
			cancel() // the client is gone
		}
	}
	say(line{Status: "pulling manifest"})
	err = c.s.o.Library.Pull(ctx, strings.TrimSuffix(q.Model, ":latest"), func(p Pulling) {
		say(line{Status: p.Step + " " + p.File, Digest: p.File, Total: p.Total, Completed: p.Done})
	})
	switch {
	case err != nil && out != nil:
		out.line(ollama.body(errorOf(libraryError(err)), c.id))
		return libraryError(err)
	case err != nil:
		return libraryError(err)
	case out == nil:
		return c.reply(line{Status: "success"})
	}
	return gone(out.line(line{Status: "success"}))
}
