package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

var suite = flag.String("suite", "", "folder of the JSON-Schema-Test-Suite")

func TestSuite(t *testing.T) {
	if *suite == "" {
		t.Skip("no -suite")
	}
	var files []string
	filepath.Walk(*suite, func(path string, info os.FileInfo, err error) error {
		if strings.HasSuffix(path, ".json") {
			files = append(files, path)
		}
		return nil
	})
	refused := map[string]int{}
	right, wrong, groups := 0, 0, 0
	for _, f := range files {
		data, _ := os.ReadFile(f)
		var list []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		if err := json.Unmarshal(data, &list); err != nil {
			t.Error(f, err)
			continue
		}
		for _, g := range list {
			groups++
			text := g.Schema
			if strings.Contains(f, "draft7") && text[0] == '{' && !strings.Contains(string(text), "$schema") {
				text = append([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#",`), text[1:]...)
				text = []byte(strings.Replace(string(text), ",}", "}", 1))
				if !json.Valid(text) {
					text = g.Schema
				}
			}
			gr, _, err := Schema(text, SchemaOptions{AnyNumber: true, AnyFormat: !strings.Contains(f, "optional/format")})
			rel, _ := filepath.Rel(*suite, f)
			if err != nil {
				var e *SchemaError
				if errors.As(err, &e) && (e.Refused || e.Problem == "nothing is valid by it") {
					key := e.Keyword
					if !e.Refused {
						key = "(empty)"
						for _, c := range g.Tests {
							if c.Valid {
								t.Errorf("%s: %s: %s: empty", rel, g.Description, c.Description)
							}
						}
					}
					refused[key]++
					if testing.Verbose() && key != "(empty)" {
						fmt.Println("refused", rel, g.Description, err)
					}
					continue
				}
				t.Errorf("%s: %s: %v", rel, g.Description, err)
				continue
			}
			for _, c := range g.Tests {
				var b bytes.Buffer
				json.Compact(&b, c.Data)
				c.Data = b.Bytes()
				at, ok, err := gr.Check(c.Data)
				if err != nil || ok != c.Valid {
					wrong++
					t.Errorf("%s: %s: %s: want %v, have %v at %d %v\n\t%s\n\t%s", rel, g.Description, c.Description, c.Valid, ok, at, err, g.Schema, c.Data)
					continue
				}
				right++
			}
		}
	}
	var keys []string
	for k, n := range refused {
		keys = append(keys, fmt.Sprintf("%s %d", k, n))
	}
	sort.Strings(keys)
	t.Logf("%d groups, %d documents right, %d wrong; refused: %s", groups, right, wrong, strings.Join(keys, ", "))
}
