package plans

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir/gguf"
)

// Vocab is what a GGUF file says about its tokenizer. A nil pointer means that
// the file has no such key; New then takes the default of the family.
type Vocab struct {
	Name  string // general.name
	Model string // tokenizer.ggml.model: "gpt2" or "llama"
	Pre   string // tokenizer.ggml.pre, for "gpt2" only

	Tokens []string
	Scores []float32 // one a token, for "llama" only
	Types  []int32   // one a token, or none: all normal
	Merges []string  // "left right" in the order of their rank, for "gpt2" only

	// tokenizer.ggml.*_token_id
	BOS, EOS, EOT, EOM, UNK, PAD *int32
	FIMPad, FIMRep, FIMSep       *int32

	Suppress []int32 // tokenizer.ggml.suppress_tokens: they never come

	// tokenizer.ggml.add_bos_token, add_eos_token, add_space_prefix
	AddBOS, AddEOS, AddSpacePrefix *bool

	ChatTemplate string // tokenizer.chat_template
	// RankTemplate is tokenizer.chat_template.rerank of a model that ranks texts: what it reads of {query} and
	// {document}; "" of others.
	RankTemplate string

	Sampling []Setting // general.sampling.*, ascending by name
}

// Setting is a number that the file names.
type Setting struct {
	Name  string // behind general.sampling., such as "top_k"
	Value float32
}

// ReadVocab reads the tokenizer's data from the metadata of f.
func ReadVocab(f *gguf.File) (Vocab, error) {
	r := vocabReader{f: f}
	v := Vocab{
		Name:           r.str("general.name"),
		Model:          r.str("tokenizer.ggml.model"),
		Pre:            r.str("tokenizer.ggml.pre"),
		Tokens:         r.strs("tokenizer.ggml.tokens"),
		Types:          r.ints("tokenizer.ggml.token_type"),
		Scores:         r.floats("tokenizer.ggml.scores"),
		Merges:         r.strs("tokenizer.ggml.merges"),
		BOS:            r.id("bos"),
		EOS:            r.id("eos"),
		EOT:            r.id("eot"),
		EOM:            r.id("eom"),
		UNK:            r.id("unknown"),
		FIMPad:         r.id("fim_pad"),
		FIMRep:         r.id("fim_rep"),
		FIMSep:         r.id("fim_sep"),
		Suppress:       r.ints("tokenizer.ggml.suppress_tokens"),
		AddBOS:         r.flag("tokenizer.ggml.add_bos_token"),
		AddEOS:         r.flag("tokenizer.ggml.add_eos_token"),
		AddSpacePrefix: r.flag("tokenizer.ggml.add_space_prefix"),
		ChatTemplate:   r.str("tokenizer.chat_template"),
		Sampling:       r.settings("general.sampling."),
	}
	if arch := r.str("general.architecture"); r.count(arch+".pooling_type") == rankPooling {
		v.RankTemplate = r.str("tokenizer.chat_template.rerank")
	}
	return v, r.err
}

// rankPooling is the pooling_type of models that rank texts.
const rankPooling = 4

// vocabReader keeps the first error.
type vocabReader struct {
	f   *gguf.File
	err error
}

func (r *vocabReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *vocabReader) str(key string) string {
	s, _, err := r.f.String(key)
	r.fail(err)
	return s
}

func (r *vocabReader) count(key string) uint64 {
	n, _, err := r.f.Uint(key)
	r.fail(err)
	return n
}

func (r *vocabReader) strs(key string) []string {
	s, _, err := r.f.Strings(key)
	r.fail(err)
	return s
}

func (r *vocabReader) ints(key string) []int32 {
	v, _, err := r.f.Ints(key)
	r.fail(err)
	var out []int32
	for _, x := range v {
		out = append(out, int32(x))
	}
	return out
}

func (r *vocabReader) floats(key string) []float32 {
	v, _, err := r.f.Floats(key)
	r.fail(err)
	var out []float32
	for _, x := range v {
		out = append(out, float32(x))
	}
	return out
}

func (r *vocabReader) flag(key string) *bool {
	v, ok, err := r.f.Bool(key)
	r.fail(err)
	if err != nil || !ok {
		return nil
	}
	return &v
}

// settings reads the numbers whose keys have the prefix; there are texts, too.
func (r *vocabReader) settings(prefix string) []Setting {
	var out []Setting
	for _, key := range r.f.Keys() {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		x, ok, err := r.f.Float(key)
		switch {
		case !ok || err != nil:
		case !(math.Abs(x) <= math.MaxFloat32):
			r.fail(fmt.Errorf("metadata %s: %g is no finite number", key, x))
		default:
			out = append(out, Setting{name, float32(x)})
		}
	}
	slices.SortFunc(out, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (r *vocabReader) id(name string) *int32 {
	key := "tokenizer.ggml." + name + "_token_id"
	v, ok, err := r.f.Uint(key)
	if err == nil && ok && v > 1<<31-1 {
		err = fmt.Errorf("metadata %s: %d is out of range", key, v)
	}
	r.fail(err)
	if err != nil || !ok {
		return nil
	}
	id := int32(v)
	return &id
}
