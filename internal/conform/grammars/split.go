package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// split takes documents apart into tokens, at random, and holds that none of these is refused: the valid documents of
// the JSON-Schema-Test-Suite, and texts that walks have written.
func split(o *options, args []string) error {
	vocabularies, err := o.vocabularies()
	if err != nil {
		return err
	}
	var texts []valid
	for _, dir := range args {
		err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) != ".json" {
				return err
			}
			list, err := textsOf(file)
			texts = append(texts, list...)
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(texts) == 0 {
		return fmt.Errorf("no document that is valid")
	}
	pieces := make([]map[string]int32, len(vocabularies))
	for i, v := range vocabularies {
		pieces[i] = map[string]int32{}
		for id := range int32(v.Len()) {
			if p := v.Piece(id); p != "" {
				pieces[i][p] = id
			}
		}
	}
	r := rand.New(rand.NewPCG(o.seed, 2))
	refused, tokens := 0, 0
	for range o.walks {
		t, at := texts[r.IntN(len(texts))], r.IntN(len(vocabularies))
		m := t.g.Match(vocabularies[at])
		for rest := string(t.doc); rest != ""; {
			id, n := cut(r, pieces[at], rest)
			if n == 0 {
				return fmt.Errorf("%s: no token begins %q", o.tokenizers[at], rest)
			}
			tokens++
			inMask := tokens%16 != 0 || m.Mask().Has(id)
			if !m.Allows(id) || !inMask || !m.Accept(id) {
				refused++
				fmt.Printf("%s: %s: token %q is refused before %q: %v\n", t.name, t.doc, rest[:n], rest[n:], m.Err())
				break
			}
			rest = rest[n:]
		}
		if !m.Done() {
			refused++
			fmt.Printf("%s: %s is not complete\n", t.name, t.doc)
		}
	}
	fmt.Printf("%d texts, of %d documents, in %d tokens: %d are refused; seed %d\n", o.walks, len(texts), tokens, refused, o.seed)
	if refused > 0 {
		return fmt.Errorf("%d texts are refused", refused)
	}
	return nil
}

// valid is a text that is valid by its schema.
type valid struct {
	name string
	g    *grammar.Grammar
	doc  []byte
}

// textsOf are the valid documents of a file of the suite, as they are and indented.
func textsOf(file string) (texts []valid, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []group
	if json.Unmarshal(data, &list) != nil {
		return nil, nil
	}
	options := grammar.SchemaOptions{Documents: true, AnyFormat: !strings.Contains(filepath.ToSlash(file), "optional/format")}
	for _, s := range list {
		g, _, err := grammar.Schema(inDraft(file, s.Schema), options)
		if err != nil {
			continue
		}
		for _, t := range s.Tests {
			var spaced bytes.Buffer
			if json.Indent(&spaced, t.Data, "", "  ") != nil {
				continue
			}
			for _, doc := range [][]byte{t.Data, spaced.Bytes()} {
				if _, ok, err := g.Check(doc); ok && err == nil {
					texts = append(texts, valid{file + ": " + s.Description, g, doc})
				}
			}
		}
	}
	return texts, nil
}

// cut draws one of the tokens that a text begins with.
func cut(r *rand.Rand, pieces map[string]int32, text string) (id int32, n int) {
	found := 0
	for k := 1; k <= len(text) && k <= 24; k++ {
		if p, ok := pieces[text[:k]]; ok {
			if found++; r.IntN(found) == 0 {
				id, n = p, k
			}
		}
	}
	return id, n
}
