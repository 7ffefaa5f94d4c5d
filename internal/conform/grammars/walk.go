package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// walk writes texts along masks, token by token, and has them validated.
func walk(o *options, args []string) error {
	vocabularies, err := o.vocabularies()
	if err != nil {
		return err
	}
	list, err := find(args)
	if err != nil {
		return err
	}
	type pair struct {
		name  string
		g     *grammar.Grammar
		judge *jsonschema.Schema
	}
	var pairs []pair
	for _, s := range list {
		if strings.Contains(s.name, "ecmascript-regex") || bytes.Contains(s.text, []byte(`"uri-template"`)) {
			continue // the judge reads patterns as Go does, for which \s is ASCII's white space alone, and templates as URLs
		}
		text := inDraft(s.name, s.text)
		g, _, err := grammar.Schema(text, grammar.SchemaOptions{})
		if err != nil {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			continue
		}
		c := jsonschema.NewCompiler()
		if c.AddResource("file:///s.json", doc) != nil {
			continue
		}
		if judge, err := c.Compile("file:///s.json"); err == nil {
			pairs = append(pairs, pair{s.name, g, judge})
		}
	}
	if len(pairs) == 0 {
		return fmt.Errorf("no schema that both take")
	}
	closing := map[*grammar.Vocabulary][]int32{}
	for _, v := range vocabularies {
		for id := range int32(v.Len()) {
			if p := v.Piece(id); p == `"` || p == "}" || p == "]" || p == ":" { // a scheme of a URI goes on up to its colon
				closing[v] = append(closing[v], id)
			}
		}
	}
	r := rand.New(rand.NewPCG(o.seed, 1))
	ended, open, bad := 0, 0, 0
	for n := 0; ended < o.walks && n < 4*o.walks; n++ {
		p := pairs[r.IntN(len(pairs))]
		v := vocabularies[r.IntN(len(vocabularies))]
		m := p.g.Match(v)
		for step := range 40 * o.steps {
			mask := m.Mask()
			if err := m.Err(); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			id, ok := pick(r, v, mask)
			if !ok {
				return fmt.Errorf("%s: %.500q: no token is allowed", p.name, m.Text())
			}
			often := 6
			if step > 10*o.steps {
				often = 2
			}
			if ends := closing[v]; r.IntN(often) == 0 { // so that texts come to an end
				if end := ends[r.IntN(len(ends))]; mask.Has(end) {
					id = end
				}
			}
			m.Accept(id)
			if m.Over() || m.Done() && r.IntN(4) == 0 {
				break
			}
		}
		if !m.Done() {
			open++
			if o.verbose {
				fmt.Printf("%s: %d bytes, no end: %.200q ... %q\n", p.name, len(m.Text()), m.Text(), tail(m.Text()))
			}
			continue
		}
		ended++
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(m.Text()))
		if err == nil {
			err = p.judge.Validate(doc)
		}
		if err != nil {
			bad++
			fmt.Printf("%s: %.500q: %.500v\n", p.name, m.Text(), err)
		}
	}
	fmt.Printf("%d texts of %d schemas ended, %d did not; %d are not valid; seed %d\n", ended, len(pairs), open, bad, o.seed)
	if bad > 0 {
		return fmt.Errorf("%d texts are not valid", bad)
	}
	return nil
}

// tail is the end of a text.
func tail(text string) string { return text[max(0, len(text)-200):] }
