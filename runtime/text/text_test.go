package text

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// gopherVocab is the vocabulary of the gopher test model: one control token,
// the 256 bytes, and the result of each merge.
func gopherVocab(t testing.TB, pre string) Vocab {
	t.Helper()
	raw := readFile(t, "gopher.merges")
	v := Vocab{
		Model:  "gpt2",
		Pre:    pre,
		Tokens: []string{"<|endoftext|>"},
		Types:  []int32{typeControl},
		Merges: strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n"),
		BOS:    new(int32(0)),
		EOS:    new(int32(0)),
		AddBOS: new(false),
	}
	sorted := byteRunes
	slices.Sort(sorted[:])
	for _, r := range sorted {
		v.Tokens = append(v.Tokens, string(r))
	}
	for _, m := range v.Merges {
		left, right, _ := strings.Cut(m, " ")
		v.Tokens = append(v.Tokens, left+right)
	}
	for range v.Tokens[1:] {
		v.Types = append(v.Types, typeNormal)
	}
	return v
}

// pairVocab is gopherVocab with a merge of every two bytes that stand beside each other in the texts, so that
// ids tell where words end, also between digits and in scripts that gopher has seen nothing of.
func pairVocab(t testing.TB, pre string, rows []goldenRow) Vocab {
	t.Helper()
	v := gopherVocab(t, pre)
	has := map[string]bool{}
	for _, token := range v.Tokens {
		has[token] = true
	}
	for _, r := range rows {
		for i := range len(r.text) - 1 {
			left, right := string(byteRunes[r.text[i]]), string(byteRunes[r.text[i+1]])
			if has[left+right] {
				continue
			}
			has[left+right] = true
			v.Tokens, v.Types = append(v.Tokens, left+right), append(v.Types, typeNormal)
			v.Merges = append(v.Merges, left+" "+right)
		}
	}
	return v
}

func newGopher(t testing.TB) *Tokenizer {
	t.Helper()
	return mustNew(t, gopherVocab(t, "qwen2"))
}

func mustNew(t testing.TB, v Vocab) *Tokenizer {
	t.Helper()
	tok, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// A goldenRow is a text and the ids that llama-tokenize gives for it. Files
// have one a line: the text as a Go string, then the ids.
type goldenRow struct {
	text string
	ids  []int32
}

func parseGolden(t testing.TB, name string, data []byte) []goldenRow {
	t.Helper()
	var rows []goldenRow
	for line := range strings.Lines(string(data)) {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			t.Fatalf("%s: %q: %v", name, line, err)
		}
		s, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatal(err)
		}
		r := goldenRow{text: s}
		for field := range strings.FieldsSeq(line[len(quoted):]) {
			id, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			r.ids = append(r.ids, int32(id))
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return rows
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// sections reads a txtar file of golden rows.
func sections(t testing.TB, name string) map[string][]goldenRow {
	t.Helper()
	m := map[string][]goldenRow{}
	for _, f := range txtar.Parse(readFile(t, name)).Files {
		m[f.Name] = parseGolden(t, name+": "+f.Name, f.Data)
	}
	return m
}

func check(t *testing.T, tok *Tokenizer, rows []goldenRow, o EncodeOptions) {
	t.Helper()
	for _, r := range rows {
		if got := tok.Encode(r.text, o); !slices.Equal(got, r.ids) {
			t.Errorf("Encode(%.80q)\n got %v\nwant %v", r.text, got, r.ids)
		}
	}
}

// asPeer is what llama-tokenize does unless told otherwise.
var asPeer = EncodeOptions{AddSpecial: true, ParseSpecial: true}

func TestEncodeAwkward(t *testing.T) {
	check(t, newGopher(t), parseGolden(t, "qwen2.golden", readFile(t, "qwen2.golden")), asPeer)
}

var peer = flag.String("peer", "", "also write the vocabularies of TestPreTokenizers to this directory, for llama-tokenize")

// writeVocab writes a model file with nothing but this vocabulary.
func writeVocab(t *testing.T, path string, v Vocab) {
	t.Helper()
	var b bytes.Buffer
	err := gguf.Write(&b, []gguf.KV{
		{Key: "general.architecture", Value: "llama"}, {Key: "llama.block_count", Value: uint32(1)}, {Key: "llama.context_length", Value: uint32(64)},
		{Key: "llama.embedding_length", Value: uint32(32)}, {Key: "llama.feed_forward_length", Value: uint32(32)},
		{Key: "llama.attention.head_count", Value: uint32(1)}, {Key: "llama.attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
		{Key: "tokenizer.ggml.model", Value: v.Model}, {Key: "tokenizer.ggml.pre", Value: v.Pre}, {Key: "tokenizer.ggml.tokens", Value: v.Tokens},
		{Key: "tokenizer.ggml.token_type", Value: v.Types}, {Key: "tokenizer.ggml.merges", Value: v.Merges},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(0)}, {Key: "tokenizer.ggml.eos_token_id", Value: uint32(0)},
	}, []gguf.TensorData{{Name: "none", Type: ir.F32, Shape: []int64{1}, Data: make([]byte, 4)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Every rule is checked by the first of its names; the other names must load. The ids of pre.txtar are those of
// llama-tokenize: -m DIR/RULE.gguf -f TEXT --ids --no-escape, with what -peer DIR writes.
func TestPreTokenizers(t *testing.T) {
	golden := sections(t, "pre.txtar")
	for _, rule := range preRules {
		names := strings.Fields(rule.names)
		t.Run(names[0], func(t *testing.T) {
			v := pairVocab(t, names[0], golden["qwen2"])
			v.AddBOS = nil
			if *peer != "" {
				writeVocab(t, filepath.Join(*peer, names[0]+".gguf"), v)
			}
			rows, ok := golden[names[0]]
			if !ok {
				t.Fatal("no golden rows")
			}
			check(t, mustNew(t, v), rows, asPeer)
			for _, alias := range names[1:] {
				if _, err := newPreTokenizer(alias); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// One hundred files of the Go source tree. A row has the path, the first 16
// digits of the SHA-256 of the file, the number of ids, and the same digits for
// the ids as little-endian 32-bit words. Other versions of Go have other
// contents in some of the files; those are left out.
func TestEncodeGoTree(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(strings.TrimSpace(string(out)), "src")
	tok := newGopher(t)
	same := 0
	for line := range strings.Lines(string(readFile(t, "gotree.golden"))) {
		var path, fileSum, idSum string
		var count int
		if _, err := fmt.Sscan(line, &path, &fileSum, &count, &idSum); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(src, path))
		if errors.Is(err, fs.ErrNotExist) || err == nil && sum(data) != fileSum {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		same++
		var raw []byte
		ids := tok.Encode(string(data), asPeer)
		for _, id := range ids {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(id))
		}
		if len(ids) != count || sum(raw) != idSum {
			t.Errorf("%s: %d ids with sum %s, want %d with %s", path, len(ids), sum(raw), count, idSum)
		}
		if got := tok.Decode(ids, true); got != string(data) && utf8.Valid(data) {
			t.Errorf("%s: decodes to something else", path)
		}
	}
	if same < 50 {
		t.Errorf("only %d of the files are those the golden ids are for", same)
	}
}

func sum(b []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(b))[:16]
}

func TestSpecialTokens(t *testing.T) {
	golden := sections(t, "special.txtar")
	v := gopherVocab(t, "qwen2")
	add := func(text string, typ int32) {
		v.Tokens = append(v.Tokens, text)
		v.Types = append(v.Types, typ)
	}
	add("<|im_start|>", typeControl)
	imEnd := int32(len(v.Tokens))
	add("<|im_end|>", typeControl)
	add("<tool>", typeUserDefined)
	add("<too", typeUserDefined)
	add("l>", typeUserDefined)
	add("  <pad>", typeUserDefined)
	add("<unk>", typeUnknown)
	add("<|end|>", typeNormal)
	add("", typeNormal)
	add("<0x0A>", typeByte)
	plain := EncodeOptions{AddSpecial: true}
	check(t, mustNew(t, v), golden["parse"], asPeer)
	check(t, mustNew(t, v), golden["plain"], plain)

	v.AddBOS, v.AddEOS, v.EOS = new(true), new(true), &imEnd
	tok := mustNew(t, v)
	check(t, tok, golden["bos-eos"], asPeer)
	for text, want := range map[string]bool{
		"<|endoftext|>": true, "<|im_end|>": true, "<|end|>": true, "<|im_start|>": false, "<tool>": false, "!": false,
	} {
		if id, ok := tok.ID(text); !ok || tok.IsEOG(id) != want {
			t.Errorf("IsEOG(%s) = %v, want %v", text, !want, want)
		}
	}
	if tok.IsEOG(-1) {
		t.Error("IsEOG(-1)")
	}
	for text, want := range map[string][2]string{
		"<|im_end|>": {"", "<|im_end|>"}, "<tool>": {"<tool>", "<tool>"}, "<unk>": {"", "<unk>"},
		"<0x0A>": {"\n", "\n"}, "Ġ": {" ", " "}, "[EMPTY_4104]": {"[EMPTY_4104]", "[EMPTY_4104]"},
	} {
		id, _ := tok.ID(text)
		if got := [2]string{tok.Piece(id, false), tok.Piece(id, true)}; got != want {
			t.Errorf("Piece(%s) = %q, want %q", text, got, want)
		}
	}

	check(t, tok, golden["no-bos"], EncodeOptions{ParseSpecial: true})
	v.Name = "Phi-3 mini"
	add("</s>", typeControl)
	add("<s>", typeControl)
	check(t, mustNew(t, v), golden["phi-3"], asPeer)
}

func spmVocab(t testing.TB) Vocab {
	t.Helper()
	v := Vocab{Model: "llama", BOS: new(int32(1)), EOS: new(int32(2)), UNK: new(int32(0))}
	for line := range strings.Lines(string(readFile(t, "spm.vocab"))) {
		var text string
		var score float32
		var typ int32
		if _, err := fmt.Sscanf(line, "%q %g %d", &text, &score, &typ); err != nil {
			t.Fatal(err)
		}
		v.Tokens = append(v.Tokens, text)
		v.Scores = append(v.Scores, score)
		v.Types = append(v.Types, typ)
	}
	return v
}

func TestSentencePiece(t *testing.T) {
	golden := sections(t, "spm.txtar")
	v := spmVocab(t)
	tok := mustNew(t, v)
	check(t, tok, golden["parse"], asPeer)
	check(t, tok, golden["plain"], EncodeOptions{})
	ids := tok.Encode("hello  \u4e16\t\xff", asPeer)
	if got, want := tok.Decode(ids, false), " hello  \u4e16\t\xff"; got != want {
		t.Errorf("Decode = %q, want %q", got, want)
	}
	v.AddSpacePrefix, v.AddEOS = new(false), new(true)
	check(t, mustNew(t, v), golden["no-prefix"], asPeer)
}

func TestIgnoreMerges(t *testing.T) {
	v := gopherVocab(t, "llama-bpe")
	whole := int32(len(v.Tokens))
	v.Tokens = append(v.Tokens, "Ġzqxzq")
	v.Types = append(v.Types, typeNormal)
	if got := mustNew(t, v).Encode(" zqxzq", EncodeOptions{}); !slices.Equal(got, []int32{whole}) {
		t.Errorf("Encode = %v, want the whole word %d", got, whole)
	}
	v.Pre = "qwen2"
	if got := mustNew(t, v).Encode(" zqxzq", EncodeOptions{}); slices.Contains(got, whole) {
		t.Errorf("Encode = %v has a token that no merge makes", got)
	}
}

func TestNewErrors(t *testing.T) {
	for want, change := range map[string]func(*Vocab){
		`tokenizer: model "bert" is not supported`:                      func(v *Vocab) { v.Model, v.Tokens[7] = "bert", v.Tokens[5] },
		`tokenizer: model "" is not supported`:                          func(v *Vocab) { v.Model = "" },
		`the model has no tokenizer`:                                    func(v *Vocab) { v.Model, v.Tokens = "", nil },
		`tokenizer: pre-tokenizer "klingon" is not supported`:           func(v *Vocab) { v.Pre = "klingon" },
		`tokenizer: vocabulary has no tokens`:                           func(v *Vocab) { v.Tokens = nil },
		`tokenizer: 2 token types for 4096 tokens`:                      func(v *Vocab) { v.Types = v.Types[:2] },
		`tokenizer: suppress_tokens names token 4096 of 4096`:           func(v *Vocab) { v.Suppress = []int32{7, 4096} },
		`tokenizer: suppress_tokens names token -1 of 4096`:             func(v *Vocab) { v.Suppress = []int32{-1} },
		`tokenizer: 1 scores for 4096 tokens`:                           func(v *Vocab) { v.Scores = []float32{0} },
		`tokenizer: tokens 5 and 7 are both "%"`:                        func(v *Vocab) { v.Tokens[7] = v.Tokens[5] },
		`tokenizer: add_bos_token is set, but there is no bos_token_id`: func(v *Vocab) { v.BOS, v.AddBOS, v.Pre = nil, new(true), "glm4" },
		`tokenizer: add_eos_token is set, but there is no eos_token_id`: func(v *Vocab) { v.Tokens, v.EOS, v.AddEOS = v.Tokens[:9], nil, new(true) },
	} {
		v := gopherVocab(t, "qwen2")
		change(&v)
		_, err := New(v)
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if unsupported := errors.Is(err, errors.ErrUnsupported); unsupported != strings.Contains(want, "not supported") {
			t.Errorf("%v: unsupported is %t", err, unsupported)
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for _, expr := range []string{"(", "(?:a", "[a", "[^", "a)", "(?!a", `\q`, `\`, "a{2", "a{x,y}"} {
		if _, err := compile(expr); err == nil {
			t.Errorf("compile(%q) succeeds", expr)
		}
	}
}

func TestStream(t *testing.T) {
	tok := newGopher(t)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.Int32Range(-1, int32(tok.Len()))).Draw(t, "ids")
		if rapid.Bool().Draw(t, "text") {
			ids = tok.Encode(rapid.String().Draw(t, "s"), EncodeOptions{})
		}
		want := tok.Decode(ids, false)
		s := tok.Stream(false)
		var got strings.Builder
		for _, id := range ids {
			part := s.Next(id)
			if utf8.ValidString(want) && !utf8.ValidString(part) {
				t.Fatalf("Next returns %q, which cuts a code point", part)
			}
			got.WriteString(part)
		}
		got.WriteString(s.Flush())
		if got.String() != want {
			t.Fatalf("stream gives %q, Decode gives %q", got.String(), want)
		}
		if s.Flush() != "" {
			t.Fatal("text is left after Flush")
		}
	})
}

func FuzzEncode(f *testing.F) {
	var bpes []*Tokenizer
	for _, rule := range preRules {
		bpes = append(bpes, mustNew(f, gopherVocab(f, strings.Fields(rule.names)[0])))
	}
	sp := mustNew(f, spmVocab(f))
	for _, r := range parseGolden(f, "qwen2.golden", readFile(f, "qwen2.golden")) {
		f.Add(r.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for i, tok := range bpes {
			tok.Encode(s, asPeer)
			if got := tok.Decode(tok.Encode(s, EncodeOptions{}), true); got != s && utf8.ValidString(s) {
				t.Errorf("rule %s: %q decodes to %q", preRules[i].names, s, got)
			}
		}
		sp.Encode(s, asPeer)
	})
}

// FuzzNew: any vocabulary is refused in one line or gives ids that it has.
func FuzzNew(f *testing.F) {
	for _, rule := range preRules {
		f.Add("gpt2", strings.Fields(rule.names)[0], "a\x00b\x00ab\x00<|x|>\x00Ġ", "a b\x00ab c", []byte{1, 1, 1, 3, 4}, int32(3), int32(9), uint8(0x55), "ab <|x|> a")
	}
	f.Add("llama", "", "<unk>\x00<s>\x00</s>\x00<0x0A>\x00\u2581a\x00a\x00b\x00ab", "", []byte{2, 3, 3, 6, 1, 1, 1, 1}, int32(1), int32(2), uint8(0xff), " ab\n\xff")
	f.Add("llama", "", "a\x00\x00b", "", []byte{}, int32(-1), int32(1<<30), uint8(0), "ab")
	f.Fuzz(func(t *testing.T, model, pre, tokens, merges string, types []byte, bos, eos int32, flags uint8, s string) {
		v := Vocab{Model: model, Pre: pre, BOS: &bos, EOS: &eos}
		if tokens != "" {
			v.Tokens = strings.Split(tokens, "\x00")
		}
		if merges != "" {
			v.Merges = strings.Split(merges, "\x00")
		}
		for i, b := range types {
			v.Types = append(v.Types, int32(int8(b)))
			v.Scores = append(v.Scores, float32(int8(b))/float32(i+1))
		}
		for i, at := range []**bool{&v.AddBOS, &v.AddEOS, &v.AddSpacePrefix} {
			if on := flags>>(2*i)&1 != 0; flags>>(2*i+1)&1 != 0 {
				*at = &on
			}
		}
		tok, err := New(v)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %v", err)
			}
			return
		}
		for _, o := range []EncodeOptions{{}, asPeer} {
			ids := tok.Encode(s, o)
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Len() {
					t.Errorf("%q has token %d of %d", s, id, tok.Len())
				}
			}
			tok.Decode(ids, true)
		}
	})
}

// One word of 50 KB is the worst case for merging.
func BenchmarkEncode(b *testing.B) {
	tok := newGopher(b)
	code := strings.Repeat("func (s *Set) Add(x int) { s.m[x] = true } // adds x\n", 1000)
	for name, text := range map[string]string{"code": code, "word": strings.Repeat("abcdefghij", 5000), "spaces": strings.Repeat(" ", 50000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Encode(text, EncodeOptions{})
			}
		})
	}
}

// linesVocab is one of gemma4: bytes, code points, some merges.
func linesVocab() Vocab {
	v := Vocab{Model: "gemma4", AddBOS: new(false)}
	add := func(kind int32, texts ...string) {
		for _, s := range texts {
			v.Tokens, v.Types, v.Scores = append(v.Tokens, s), append(v.Types, kind), append(v.Scores, 0)
		}
	}
	add(typeControl, "<pad>", "<eos>", "<bos>")
	add(typeUnknown, "<unk>")
	add(typeControl, "<turn|>")
	add(typeUserDefined, "</s>")
	for b := range 256 {
		add(typeByte, fmt.Sprintf("<0x%02X>", b))
	}
	add(typeNormal, "\n", "\n\n", "\n\n\n", "a", "b", "c", "▁", "▁▁", "▁a", "ab", "bc", "▁ab", "é", "éa", "abc", "▁▁▁")
	v.Merges = []string{"b c", "▁ a", "▁ ▁", "a b", "▁a b", "a bc", "é a", "▁▁ ▁"}
	return v
}

// TestLines has ids that llama.cpp gives.
func TestLines(t *testing.T) {
	v := linesVocab()
	tok := mustNew(t, v)
	for text, want := range linesGolden {
		if got := tok.Encode(text, EncodeOptions{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, want) {
			t.Errorf("%q: ids %v, want %v", text, got, want)
		}
	}
	if ends := tok.EOG(); !slices.Equal(ends, []int32{1, 4}) {
		t.Errorf("ends are %v", ends)
	}
	if got := tok.Decode([]int32{263, 274, 195, 270}, true); got != "\n\né\xbd a" {
		t.Errorf("decoded %q", got)
	}
}

var linesGolden = map[string][]int32{
	"abc":                   {2, 276},
	"a b\n\nc ab":           {2, 265, 268, 266, 263, 267, 273},
	"  abc\n\n\n\na":        {2, 268, 270, 272, 262, 262, 262, 262, 265},
	"éa ébc\n":              {2, 275, 268, 274, 272, 262},
	"   a<turn|>\n\n b</s>": {2, 269, 270, 4, 263, 268, 266, 5},
	"\n日 a":                 {2, 262, 236, 157, 171, 270},
	"":                      {2},
	"\t ab   abc\r\n\n\nbc": {2, 15, 273, 269, 270, 272, 19, 264, 272},
}
