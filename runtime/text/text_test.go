package text

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// gopherVocab is the vocabulary of the gopher test model: one control token,
// the 256 bytes, and the result of each merge.
func gopherVocab(t testing.TB, pre string) Vocab {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "gopher.merges"))
	if err != nil {
		t.Fatal(err)
	}
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

// A golden row is a text and the ids that llama-tokenize gives for it. The
// file has one row a line: the text as a Go string, then the ids.
type goldenRow struct {
	text string
	ids  []int32
}

func readGolden(t testing.TB, name string) []goldenRow {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []goldenRow
	for sc := bufio.NewScanner(f); sc.Scan(); {
		quoted, err := strconv.QuotedPrefix(sc.Text())
		if err != nil {
			t.Fatalf("%s: %q: %v", name, sc.Text(), err)
		}
		s, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatal(err)
		}
		r := goldenRow{text: s}
		for field := range strings.FieldsSeq(sc.Text()[len(quoted):]) {
			id, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			r.ids = append(r.ids, int32(id))
		}
		rows = append(rows, r)
	}
	return rows
}

func checkGolden(t *testing.T, tok *Tokenizer, name string, o EncodeOptions) {
	t.Helper()
	rows := readGolden(t, name)
	if len(rows) == 0 {
		t.Fatalf("%s is empty", name)
	}
	for _, r := range rows {
		if got := tok.Encode(r.text, o); !slices.Equal(got, r.ids) {
			t.Errorf("Encode(%.80q)\n got %v\nwant %v", r.text, got, r.ids)
		}
	}
}

func TestEncodeAwkward(t *testing.T) {
	checkGolden(t, newGopher(t), "qwen2.golden", EncodeOptions{AddSpecial: true, ParseSpecial: true})
}
