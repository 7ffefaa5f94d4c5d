package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// readTokenizer makes the vocabulary of a tokenizer.json, and says how long the tables take.
func readTokenizer(path string) (*grammar.Vocabulary, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Model struct {
			Vocab map[string]int
		}
		Added []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	n := 0
	for _, id := range file.Model.Vocab {
		n = max(n, id+1)
	}
	for _, a := range file.Added {
		n = max(n, a.ID+1)
	}
	_, pieceByte := file.Model.Vocab["<0x00>"] // of SentencePiece; gemma's text has the Ġ of byte-level BPE, too
	byteLevel := !pieceByte
	pieces := make([]string, n)
	for t, id := range file.Model.Vocab {
		if byteLevel {
			pieces[id] = bytesOf(t)
		} else {
			pieces[id] = spaced(t)
		}
	}
	var ends []int32
	for _, a := range file.Added {
		pieces[a.ID] = a.Content
		if a.Special {
			pieces[a.ID] = string([]byte{grammar.Mark}) + a.Content
		}
		if !a.Special { // as the </s> of HTML in gemma's
			continue
		}
		switch a.Content {
		case "<|im_end|>", "<|endoftext|>", "</s>", "<eos>", "<end_of_turn>":
			ends = append(ends, int32(a.ID))
		}
	}
	began := time.Now()
	v := grammar.NewVocabulary(pieces, ends)
	fmt.Printf("%s: %d tokens, tables in %d ms\n", path, v.Len(), time.Since(began).Milliseconds())
	return v, nil
}

// spaced is a piece of SentencePiece as text.
func spaced(t string) string {
	if strings.HasPrefix(t, "<0x") && len(t) == 6 {
		if b, err := strconv.ParseUint(t[3:5], 16, 8); err == nil {
			return string([]byte{byte(b)})
		}
	}
	return strings.ReplaceAll(t, "▁", " ")
}

// bytesOf is a piece of a byte-level BPE as text: printable bytes stand for themselves, the others are counted from
// U+0100.
func bytesOf(t string) string {
	var out []byte
	for _, r := range t {
		b, ok := byteOf[r]
		if !ok {
			out = utf8.AppendRune(out, r)
			continue
		}
		out = append(out, b)
	}
	return string(out)
}

var byteOf = func() map[rune]byte {
	m := map[rune]byte{}
	next := rune(0x100)
	for b := range 256 {
		if '!' <= b && b <= '~' || 0xa1 <= b && b <= 0xac || 0xae <= b {
			m[rune(b)] = byte(b)
			continue
		}
		m[next] = byte(b)
		next++
	}
	return m
}()
