package text

import (
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// A preTokenizer cuts a text into words, over which merges never reach. Each
// stage cuts the pieces of the stage before: every match is a piece, and so is
// what lies between two matches.
type preTokenizer struct {
	stages []*pattern
	preRule
}

// A preRule says how a family of byte-level BPE vocabularies splits text.
type preRule struct {
	names  string // values of tokenizer.ggml.pre, separated by spaces
	stages []string
	// ignoreMerges takes a word that is in the vocabulary as it stands,
	// whatever the merges would make of it.
	ignoreMerges bool
	addBOS       bool // when the file does not say
	noBOS        bool // no BOS unless the file names one
}

// Parts that several expressions share.
const (
	anyContraction = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	// A letter that may be upper case and one that may be lower case. llama.cpp
	// knows no case outside ASCII.
	upper      = `[\p{L}--a-z]`
	lower      = `[\p{L}--A-Z]`
	newlines   = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt2       = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	asciiPunct = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
	finnish    = ` ?[^(\s|.,!?…。，、।۔،)]+`
	ideographs = `[一-龥ࠀ-一가-퟿]+`
	kanaHan    = `[一-龥぀-ゟ゠-ヿ]+`
	han        = "\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\U00020000-\U0002A6DF\U0002A700-\U0002EBEF\U0002F800-\U0002FA1F"
	// cased lists the letters of scripts with case.
	cased = `A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼ` +
		"\u1FBE" + `ῂ-ῄῆ-ῌῐ-` + "\u1FD3" + `ῖ-` + "\u1FDB" + `ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ` + "\u2126" + `ℨ` + "\u212A" + `-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃`
)

// tiktoken is the expression of the OpenAI vocabularies since cl100k, with its
// two variables: what a number is, and what may follow a run of other symbols.
func tiktoken(number, tail string) string {
	return anyContraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|` + number + `| ?[^\s\p{L}\p{N}]+` + tail + newlines
}

// preRules are the expressions as the models' authors published them, with
// llama.cpp's simplifications of them where these give other words.
var preRules = []preRule{
	{
		names:  "qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan grok-2 solar-open kormo f2llmv2",
		stages: []string{tiktoken(`\p{N}`, `[\r\n]*`)},
	},
	{
		names: "qwen35",
		stages: []string{anyContraction +
			`|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + newlines},
	},
	{
		names:        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2",
		stages:       []string{tiktoken(`\p{N}{1,3}`, `[\r\n]*`)},
		ignoreMerges: true,
		addBOS:       true,
	},
	{
		names:        "minicpm5",
		stages:       []string{tiktoken(`\p{N}{1,3}`, `[\r\n]*`)},
		ignoreMerges: true,
	},
	{
		names:  "dbrx smaug-bpe",
		stages: []string{tiktoken(`\p{N}{1,3}`, `[\r\n]*`)},
	},
	{
		names:  "glm4 chatglm-bpe",
		stages: []string{tiktoken(`\p{N}{1,3}`, `[\r\n]*`)},
		noBOS:  true,
	},
	{
		names:  "gpt-2 phi-2 mpt olmo jais gigachat exaone4 trillion granite-docling a.x-4.0 mellum modern-bert",
		stages: []string{gpt2},
	},
	{
		names:  "starcoder refact command-r smollm codeshell exaone minerva-7b",
		stages: []string{`\p{N}`, gpt2},
	},
	{
		names:  "default",
		stages: []string{`[\p{P}$+<=>^~|]+`, gpt2, `\p{N}+`, `[0-9][0-9][0-9]`},
	},
	{
		names:  "falcon",
		stages: []string{"[\\p{P}$+<=>^~|`]+", gpt2, `[0-9][0-9][0-9]`},
	},
	{
		names: "deepseek-llm",
		stages: []string{`[\r\n]`, `\s?[` + cased + `]+`, "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+", `\s+$`,
			ideographs, `\p{N}+`},
	},
	{
		names:  "deepseek-coder",
		stages: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, ideographs, `\p{N}`},
	},
	{
		names: "deepseek-v3 hunyuan-dense joyai-llm",
		stages: []string{`\p{N}{1,3}`, kanaHan, asciiPunct +
			`[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*` + newlines},
	},
	{
		// The authors tell cases apart; llama.cpp does not.
		names:  "kimi-k2",
		stages: []string{`[` + han + `]+|[^\r\n\p{L}\p{N}]?[\p{L}--` + han + `]+` + anyContraction + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + newlines},
	},
	{
		// The authors tell cases apart; llama.cpp does not.
		names: "youtu",
		stages: []string{`[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|` + kanaHan,
			`[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+` + anyContraction + `?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + newlines},
		ignoreMerges: true,
	},
	{
		names:  "poro-chat bloom gpt3-finnish",
		stages: []string{finnish},
	},
	{
		names:  "viking",
		stages: []string{finnish, `\p{N}`},
	},
	{
		names: "tekken",
		stages: []string{`[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower +
			`*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + newlines},
		ignoreMerges: true,
		addBOS:       true,
	},
	{
		names: "gpt-4o llama4 kanana2 minimax-m2",
		stages: []string{`[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+` + anyContraction + `?|[^\r\n\p{L}\p{N}]?` +
			upper + `+` + lower + `*` + anyContraction + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + newlines},
	},
	{
		names:  "seed-coder",
		stages: []string{anyContraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+` + newlines},
	},
	{
		names: "bailingmoe bailingmoe2 llada-moe",
		stages: []string{`'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` +
			`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`},
	},
}

func newPreTokenizer(name string) (*preTokenizer, error) {
	if name == "" {
		name = "default"
	}
	for _, rule := range preRules {
		for n := range strings.FieldsSeq(rule.names) {
			if n == name {
				return compileRule(rule)
			}
		}
	}
	return nil, ir.Unsupported("tokenizer: pre-tokenizer %.80q is not supported", name)
}

func compileRule(rule preRule) (*preTokenizer, error) {
	p := &preTokenizer{preRule: rule}
	for _, expr := range rule.stages {
		stage, err := compile(expr)
		if err != nil {
			return nil, err
		}
		p.stages = append(p.stages, stage)
	}
	return p, nil
}

// split returns the ends of the words of t, in code points, in order; not all of them when stop says so. Where there is
// one stage, seen says of each word how many code points of the text it and those before follow from, whatever comes
// behind; more than there are: also from the end.
func (p *preTokenizer) split(t *runes, stop *cancel) (ends, seen []int32) {
	var m matching
	ends = []int32{int32(len(t.cps))}
	for _, stage := range p.stages {
		in := ends
		ends = make([]int32, 0, len(in)+len(t.cps)/4)
		add := func(end int) {
			if ends = append(ends, int32(end)); len(p.stages) == 1 {
				seen = append(seen, int32(m.seen))
			}
		}
		start := 0
		for _, end := range in {
			end := int(end)
			last := start // the end of the last piece
			for pos := start; pos < end && !stop.now(); {
				to := stage.match(t, pos, end, &m)
				if to <= pos {
					pos = stage.next(t, pos, end)
					m.seen = max(m.seen, pos+1)
					continue
				}
				if pos > last {
					add(pos)
				}
				add(to)
				pos, last = to, to
			}
			if last < end {
				m.seen = end + 1
				add(end)
			}
			start = end
		}
	}
	return ends, seen
}
