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
	pairs := pairsOf(list)
	if len(pairs) == 0 {
		return fmt.Errorf("no schema that both take")
	}
	w := &walker{options: o, r: rand.New(rand.NewPCG(o.seed, 1)), closing: closingOf(vocabularies)}
	for n := 0; w.ended < o.walks && n < 4*o.walks; n++ {
		p := pairs[w.r.IntN(len(pairs))]
		if err := w.walk(p, vocabularies[w.r.IntN(len(vocabularies))]); err != nil {
			return err
		}
	}
	fmt.Printf("%d texts of %d schemas ended, %d did not; %d are not valid; seed %d\n", w.ended, len(pairs), w.open, w.bad, o.seed)
	if w.bad > 0 {
		return fmt.Errorf("%d texts are not valid", w.bad)
	}
	return nil
}

// pair is a schema as we read it and as the judge does.
type pair struct {
	name  string
	g     *grammar.Grammar
	judge *jsonschema.Schema
}

// pairsOf are the schemas that both take.
func pairsOf(list []schema) (pairs []pair) {
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
	return pairs
}

// closingOf are the tokens of each vocabulary by which texts come to an end.
func closingOf(vocabularies []*grammar.Vocabulary) map[*grammar.Vocabulary][]int32 {
	closing := map[*grammar.Vocabulary][]int32{}
	for _, v := range vocabularies {
		for id := range int32(v.Len()) {
			if p := v.Piece(id); p == `"` || p == "}" || p == "]" || p == ":" { // a scheme of a URI goes on up to its colon
				closing[v] = append(closing[v], id)
			}
		}
	}
	return closing
}

// walker takes tokens at random.
type walker struct {
	*options
	r                *rand.Rand
	closing          map[*grammar.Vocabulary][]int32
	ended, open, bad int // texts that ended, that did not, and that are not valid
}

// walk makes one text and has it judged.
func (w *walker) walk(p pair, v *grammar.Vocabulary) error {
	m := p.g.Match(v)
	for step := range 40 * walkTokens {
		mask := m.Mask()
		if err := m.Err(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		id, ok := pick(w.r, v, mask)
		if !ok {
			return fmt.Errorf("%s: %.500q: no token is allowed", p.name, m.Text())
		}
		often := 6
		if step > 10*walkTokens {
			often = 2
		}
		if ends := w.closing[v]; w.r.IntN(often) == 0 { // so that texts come to an end
			if end := ends[w.r.IntN(len(ends))]; mask.Has(end) {
				id = end
			}
		}
		m.Accept(id)
		if m.Over() || m.Done() && w.r.IntN(4) == 0 {
			break
		}
	}
	if !m.Done() {
		w.open++
		if w.verbose {
			fmt.Printf("%s: %d bytes, no end: %.200q ... %q\n", p.name, len(m.Text()), m.Text(), tail(m.Text()))
		}
		return nil
	}
	w.ended++
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(m.Text()))
	if err == nil {
		err = p.judge.Validate(doc)
	}
	if err != nil {
		w.bad++
		fmt.Printf("%s: %.500q: %.500v\n", p.name, m.Text(), err)
	}
	return nil
}

// tail is the end of a text.
func tail(text string) string { return text[max(0, len(text)-200):] }
