// Package text turns text into token ids and back: byte-level BPE ("gpt2"), BPE of lines ("gemma4") and
// SentencePiece ("llama") vocabularies as GGUF files carry them. Ids are those
// that llama.cpp gives for the same file, including for malformed UTF-8.
package text

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Token types as in tokenizer.ggml.token_type of the GGUF format.
const (
	typeNormal      = 1
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
	typeByte        = 6
)

// Vocab is the tokenizer data of a plan.
type Vocab = plans.Vocab

// Tokenizer encodes and decodes with one vocabulary. It is safe for use by
// several goroutines.
type Tokenizer struct {
	tokens []token
	byText map[string]int32
	model  model

	special []int32 // ids that are cut out of the text, longest text first
	finder  *finder // of these
	eog     map[int32]bool

	suppressed []int32
	longest    int // bytes of a token
	memory     memory

	bos, eos       int32 // -1: none
	addBOS, addEOS bool
}

// A token is one entry of the vocabulary.
type token struct {
	text  string // as in the file
	piece string // as in text
	score float32
	attr  attr
	space bool // a user-defined token of white space alone
}

// A model encodes text that holds no special tokens.
type model interface {
	// encode appends the ids of s; first says that s begins the text or
	// follows a special token. It ends early when stop says so.
	encode(ids []int32, s string, first bool, stop *cancel) []int32
	// piece returns the text of a normal token.
	piece(text string) string
}

// EncodeOptions say how Encode treats special tokens.
type EncodeOptions struct {
	AddSpecial   bool // begin and end with BOS and EOS if the vocabulary asks for it
	ParseSpecial bool // take the text of control tokens for the tokens
}

// ErrNone says that a model has no tokenizer: it takes and gives token ids only.
var ErrNone = errors.New("the model has no tokenizer")

// New prepares a tokenizer. The error names what is not supported, as
// errors.ErrUnsupported, or does not fit together; it is ErrNone where there is nothing.
func New(v Vocab) (*Tokenizer, error) {
	if v.Model == "none" || v.Model == "no_vocab" || v.Model == "" && len(v.Tokens) == 0 {
		return nil, ErrNone
	}
	kind, ok := kinds[v.Model]
	if !ok {
		return nil, ir.Unsupported("tokenizer: model %.80q is not supported", v.Model)
	}
	prepare, err := kind(&v)
	if err != nil {
		return nil, err
	}
	if err := checkVocab(&v); err != nil {
		return nil, err
	}
	t := &Tokenizer{suppressed: v.Suppress}
	if err := t.fill(&v); err != nil {
		return nil, err
	}
	family := prepare(t)
	t.model = family.model
	t.bos = t.specialID(v.BOS, family.bos)
	t.eos = t.specialID(v.EOS, family.eos)
	t.addBOS = family.addBOS
	if v.AddBOS != nil {
		t.addBOS = *v.AddBOS
	}
	if v.AddEOS != nil {
		t.addEOS = *v.AddEOS
	}
	if t.addBOS && t.bos < 0 {
		return nil, errors.New("tokenizer: add_bos_token is set, but there is no bos_token_id")
	}
	if t.addEOS && t.eos < 0 {
		return nil, errors.New("tokenizer: add_eos_token is set, but there is no eos_token_id")
	}
	t.findSpecial(v)
	for i := range t.tokens {
		t.tokens[i].piece = t.render(t.tokens[i])
		t.tokens[i].space = t.tokens[i].isBlank()
		t.longest = max(t.longest, len(t.tokens[i].piece))
	}
	return t, nil
}

// checkVocab reports what does not fit together in a vocabulary.
func checkVocab(v *Vocab) error {
	if len(v.Tokens) == 0 {
		return errors.New("tokenizer: vocabulary has no tokens")
	}
	if len(v.Types) != 0 && len(v.Types) < len(v.Tokens) {
		return fmt.Errorf("tokenizer: %d token types for %d tokens", len(v.Types), len(v.Tokens))
	}
	if len(v.Scores) != 0 && len(v.Scores) < len(v.Tokens) {
		return fmt.Errorf("tokenizer: %d scores for %d tokens", len(v.Scores), len(v.Tokens))
	}
	for _, id := range v.Suppress {
		if id < 0 || int(id) >= len(v.Tokens) {
			return fmt.Errorf("tokenizer: suppress_tokens names token %d of %d", id, len(v.Tokens))
		}
	}
	return nil
}

// fill takes the tokens of v as they are.
func (t *Tokenizer) fill(v *Vocab) error {
	t.tokens, t.byText = make([]token, len(v.Tokens)), make(map[string]int32, len(v.Tokens))
	for i, s := range v.Tokens {
		if s == "" {
			s = fmt.Sprintf("[EMPTY_%d]", i)
		}
		if j, dup := t.byText[s]; dup {
			return fmt.Errorf("tokenizer: tokens %d and %d are both %q", j, i, s)
		}
		t.byText[s] = int32(i)
		tok := token{text: s, attr: attrNormal}
		if len(v.Types) != 0 {
			tok.attr = attrOf(v.Types[i])
		}
		if len(v.Scores) != 0 {
			tok.score = v.Scores[i]
		}
		t.tokens[i] = tok
	}
	return nil
}

// A family holds what follows from the kind of vocabulary.
type family struct {
	model    model
	bos, eos int32 // when the file does not say
	addBOS   bool
}

// kinds are the values of tokenizer.ggml.model. Each says whether it knows the rest of v,
// and returns what makes the family of a tokenizer that has its tokens.
var kinds = map[string]func(v *Vocab) (func(t *Tokenizer) family, error){
	"gpt2": func(v *Vocab) (func(t *Tokenizer) family, error) {
		pre, err := newPreTokenizer(v.Pre)
		return func(t *Tokenizer) family {
			f := family{model: newBPE(t.byText, v.Merges, pre), bos: 11, eos: 11, addBOS: pre.addBOS}
			if pre.noBOS {
				f.bos = -1
			}
			return f
		}, err
	},
	"gemma4": func(v *Vocab) (func(t *Tokenizer) family, error) {
		v.AddBOS = nil // whatever the file says
		return func(t *Tokenizer) family {
			m := newLineBPE(newSPM(t.byText, t.tokens, t.specialID(v.UNK, 3), false), v.Merges)
			return family{model: m, bos: 2, eos: 1, addBOS: true}
		}, nil
	},
	"llama": func(v *Vocab) (func(t *Tokenizer) family, error) {
		return func(t *Tokenizer) family {
			prefix := v.AddSpacePrefix == nil || *v.AddSpacePrefix
			m := newSPM(t.byText, t.tokens, t.specialID(v.UNK, 0), prefix)
			return family{model: m, bos: 1, eos: 2, addBOS: true}
		}, nil
	},
}

// specialID checks an id from the file against the vocabulary.
func (t *Tokenizer) specialID(fromFile *int32, fallback int32) int32 {
	switch n := int32(len(t.tokens)); {
	case fromFile != nil && 0 <= *fromFile && *fromFile < n:
		return *fromFile
	case fallback < n:
		return fallback
	}
	return -1
}

// Len is the number of tokens.
func (t *Tokenizer) Len() int { return len(t.tokens) }

// BOS is the id of the token that begins a text, -1 if there is none.
func (t *Tokenizer) BOS() int32 { return t.bos }

// AddsBOS says whether Encode with AddSpecial begins with BOS.
func (t *Tokenizer) AddsBOS() bool { return t.addBOS }

// IsEOG says whether generation ends with this token.
func (t *Tokenizer) IsEOG(id int32) bool { return t.eog[id] }

// EOG returns the tokens that end generation, ascending.
func (t *Tokenizer) EOG() []int32 { return slices.Sorted(maps.Keys(t.eog)) }

// Suppressed returns the tokens that the file says never come.
func (t *Tokenizer) Suppressed() []int32 { return t.suppressed }

// ID returns the token with this text as the vocabulary writes it.
func (t *Tokenizer) ID(text string) (id int32, ok bool) {
	id, ok = t.byText[text]
	return id, ok
}

// Encode returns the tokens of s. User-defined tokens are recognised always,
// other special ones if ParseSpecial is set.
func (t *Tokenizer) Encode(s string, o EncodeOptions) []int32 {
	ids, _ := t.EncodeContext(context.Background(), s, o)
	return ids
}

// EncodeContext is Encode for a text of anybody, which may be long: it ends with the error of ctx.
func (t *Tokenizer) EncodeContext(ctx context.Context, s string, o EncodeOptions) ([]int32, error) {
	var ids []int32
	if o.AddSpecial && t.addBOS {
		ids = append(ids, t.bos)
	}
	ids, err := t.encode(ctx, ids, s, func(tok *token, _ int) bool {
		return o.ParseSpecial || tok.attr&(attrControl|attrUnknown) == 0
	})
	if o.AddSpecial && t.addEOS {
		ids = append(ids, t.eos)
	}
	return ids, err
}

// encode appends the tokens of s, with special ones where may allows them.
func (t *Tokenizer) encode(ctx context.Context, ids []int32, s string, may func(tok *token, at int) bool) ([]int32, error) {
	frags, err := t.partition(ctx, s, may)
	if err != nil {
		return nil, err
	}
	first := true
	for _, f := range frags {
		if f.id >= 0 {
			ids = append(ids, f.id)
			first = true
			continue
		}
		if ids, err = t.encodeText(ctx, ids, f.text, first); err != nil {
			return nil, err
		}
		first = false
	}
	return ids, nil
}

// Longest is the number of bytes of the longest token: a text of n times as many has more than n tokens.
func (t *Tokenizer) Longest() int { return t.longest }

// Piece returns the text of one token, which need not be whole UTF-8. Control
// tokens and ids outside the vocabulary have none, unless special is set: then
// control tokens give their name.
func (t *Tokenizer) Piece(id int32, special bool) string {
	if id < 0 || int(id) >= len(t.tokens) {
		return ""
	}
	tok := &t.tokens[id]
	if !special && tok.attr&(attrUnknown|attrControl) != 0 {
		return ""
	}
	return tok.piece
}

// Decode returns the pieces of ids put together.
func (t *Tokenizer) Decode(ids []int32, special bool) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(t.Piece(id, special))
	}
	return b.String()
}

// render returns what a token stands for.
func (t *Tokenizer) render(tok token) string {
	switch {
	case tok.attr&(attrUnknown|attrControl|attrUserDefined) != 0:
		return tok.text
	case tok.attr&attrNormal != 0:
		return t.model.piece(tok.text)
	case tok.attr&attrByte != 0:
		return byteOf(tok.text)
	}
	return ""
}
