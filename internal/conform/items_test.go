package conform

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// A description is OpenAI's, as it is read.
type description struct{ schemas map[string]any }

// open follows references and joins what must hold together.
func (d description) open(s map[string]any) map[string]any {
	for s["$ref"] != nil {
		name := s["$ref"].(string)
		s = d.schemas[name[strings.LastIndexByte(name, '/')+1:]].(map[string]any)
	}
	all, _ := s["allOf"].([]any)
	if len(all) == 0 {
		return s
	}
	joined := map[string]any{"type": "object", "properties": map[string]any{}, "required": []any{}}
	for _, part := range append(all, map[string]any{"properties": s["properties"], "required": s["required"]}) {
		part := d.open(part.(map[string]any))
		if p, ok := part["properties"].(map[string]any); ok {
			maps.Copy(joined["properties"].(map[string]any), p)
		}
		if r, ok := part["required"].([]any); ok {
			joined["required"] = append(joined["required"].([]any), r...)
		}
	}
	return joined
}

// wide are the properties of which every form is wanted; of others one will do.
var wide = map[string]bool{"content": true, "output": true, "summary": true, "tools": true}

// samples returns a value of each form that a schema allows, with what it requires.
func (d description) samples(s map[string]any, name string, depth int) (list []any) {
	if s = d.open(s); depth > 12 {
		return nil
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if forms, ok := s[key].([]any); ok {
			for _, f := range forms {
				list = append(list, d.samples(f.(map[string]any), name, depth+1)...)
			}
			return list
		}
	}
	if values, ok := s["enum"].([]any); ok {
		return values[:1]
	}
	if v, ok := s["const"]; ok {
		return []any{v}
	}
	switch s["type"] {
	case "string":
		if name == "arguments" {
			return []any{"{}"}
		}
		return []any{"a"}
	case "integer", "number":
		return []any{1}
	case "boolean":
		return []any{true}
	case "array":
		items, ok := s["items"].(map[string]any)
		if !ok {
			return []any{[]any{}}
		}
		for _, one := range d.samples(items, name, depth+1) {
			list = append(list, []any{one})
		}
		return list
	case "null":
		return nil
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	base := map[string]any{}
	forms := map[string][]any{}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, any(key)) && !wide[key] && key != "type" {
			continue
		}
		if all := d.samples(properties[key].(map[string]any), key, depth+1); len(all) > 0 {
			base[key] = all[0]
			forms[key] = all
		}
	}
	list = append(list, base)
	for key, all := range forms {
		for _, v := range all[1:] {
			if wide[key] {
				one := maps.Clone(base)
				one[key] = v
				list = append(list, one)
			}
		}
	}
	return list
}

// TestInput sends every item, every content and every tool that the published description has, each as the description
// requires it: the server takes it, or names it.
func TestInput(t *testing.T) {
	if *openapi == "" {
		t.Skip("-openapi names the description")
	}
	raw, err := os.ReadFile(*openapi)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	d := description{doc.Components.Schemas}
	taken, refused, types := 0, 0, map[string]bool{}
	ask := func(body map[string]any, kind, what string, sample any) {
		t.Helper()
		types[what+" "+kind] = true
		body["model"], body["max_output_tokens"], body["temperature"] = model, 1, 0
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post(server+"/v1/responses", "application/json", strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		reply, _ := io.ReadAll(resp.Body)
		switch {
		case resp.StatusCode == 200:
			taken++
		case kind == "item_reference" && resp.StatusCode == 404:
			refused++
		case resp.StatusCode == 400 && names(sample, string(reply)):
			refused++
		default:
			one, _ := json.Marshal(sample)
			t.Errorf("%s %s: %d %s\nfor %s", what, kind, resp.StatusCode, reply, one)
		}
	}
	for _, item := range d.samples(map[string]any{"$ref": "#/components/schemas/InputItem"}, "", 0) {
		m := item.(map[string]any)
		kind, _ := m["type"].(string)
		ask(map[string]any{"input": []any{map[string]any{"role": "user", "content": "a"}, item, map[string]any{"role": "user", "content": "b"}}}, kind, "item", item)
	}
	for _, tool := range d.samples(map[string]any{"$ref": "#/components/schemas/Tool"}, "", 0) {
		kind, _ := tool.(map[string]any)["type"].(string)
		ask(map[string]any{"input": "a", "tools": []any{tool}}, kind, "tool", tool)
	}
	for _, choice := range d.samples(map[string]any{"$ref": "#/components/schemas/ToolChoiceParam"}, "", 0) {
		kind := fmt.Sprint(choice)
		if m, ok := choice.(map[string]any); ok {
			kind, _ = m["type"].(string)
		}
		ask(map[string]any{"input": "a", "tools": []any{map[string]any{"type": "function", "name": "a", "parameters": map[string]any{"type": "object"}}}, "tool_choice": choice}, kind, "choice", map[string]any{"type": "tool_choice"})
	}
	t.Logf("%d kinds of items, tools and choices: %d forms taken, %d refused by name", len(types), taken, refused)
	if len(types) < 50 {
		t.Errorf("%d kinds: %v", len(types), slices.Sorted(maps.Keys(types)))
	}
}

// names says whether a refusal names a type that stands in the sample.
func names(sample any, reply string) bool {
	switch v := sample.(type) {
	case map[string]any:
		if kind, ok := v["type"].(string); ok && strings.Contains(reply, kind) {
			return true
		}
		for _, x := range v {
			if names(x, reply) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return names(x, reply) })
	}
	return false
}
