package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// group is a schema of the suite with documents.
type group struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// suite decides every document of the JSON-Schema-Test-Suite, written compactly and with white space.
func suite(o *options, args []string) error {
	refused := map[string]int{}
	groups, right, wrong := 0, 0, 0
	for _, dir := range args {
		err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) != ".json" {
				return err
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			var list []group
			if err := json.Unmarshal(data, &list); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			// Outside of optional/format, the suite takes format for a remark.
			options := grammar.SchemaOptions{Documents: true, AnyFormat: !strings.Contains(filepath.ToSlash(file), "optional/format")}
			for _, g := range list {
				groups++
				gr, _, err := grammar.Schema(inDraft(file, g.Schema), options)
				if key, ok := refusal(err); ok {
					refused[key]++
					if o.verbose {
						fmt.Printf("%s: %s: %v\n", file, g.Description, err)
					}
					continue
				}
				if err != nil && !strings.Contains(err.Error(), grammar.NothingValid) {
					return fmt.Errorf("%s: %s: %w", file, g.Description, err)
				}
				for _, t := range g.Tests {
					if decided(gr, t.Data, t.Valid) {
						right++
						continue
					}
					wrong++
					fmt.Printf("%s: %s: %s: want %v: %s\n", file, g.Description, t.Description, t.Valid, t.Data)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("%d schemas, %d documents decided right, %d wrong\n", groups, right, wrong)
	printCounts("refused", refused)
	if wrong > 0 {
		return fmt.Errorf("%d documents are decided wrongly", wrong)
	}
	return nil
}

// inDraft adds what draft a schema is written in, where its folder says it.
func inDraft(file string, text []byte) []byte {
	if strings.Contains(file, "draft7") && text[0] == '{' && !bytes.Contains(text, []byte(`"$schema"`)) {
		comma := ","
		if bytes.Equal(bytes.TrimSpace(text[1:]), []byte("}")) {
			comma = ""
		}
		return append([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#"`+comma), text[1:]...)
	}
	return text
}

// decided says whether a document is taken or not as it should be, in both ways to write it. Where nothing is valid
// there is no grammar.
func decided(g *grammar.Grammar, doc []byte, valid bool) bool {
	if g == nil {
		return !valid
	}
	var compact, spaced bytes.Buffer
	if json.Compact(&compact, doc) != nil || json.Indent(&spaced, doc, "", " ") != nil {
		return false
	}
	for _, text := range [][]byte{compact.Bytes(), spaced.Bytes()} {
		if _, ok, err := g.Check(text); err != nil || ok != valid {
			return false
		}
	}
	return true
}

// refusal returns the keyword for which a schema is refused.
func refusal(err error) (string, bool) {
	var e *grammar.SchemaError
	if errors.As(err, &e) && errors.Is(err, errors.ErrUnsupported) {
		return e.Keyword, true
	}
	return "", false
}

func printCounts(what string, counts map[string]int) {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for _, k := range keys {
		fmt.Printf("%s: %5d %s\n", what, counts[k], k)
	}
}
