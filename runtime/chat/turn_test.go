package chat

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// asking are templates that ask for an answer at their end alone, or not.
var asking = map[string]struct {
	source string
	once   bool // one render is enough
}{
	"end":      {`{{ messages | length }}{% if add_generation_prompt %}{{ 'A' }}{% endif %}`, true},
	"data":     {"a{% if add_generation_prompt %}b{{ messages[0].content }}{% endif %} c\n d", true},
	"and":      {`{% if add_generation_prompt and messages %}b{% endif %}`, true},
	"never":    {`a{{ messages[0].content }}`, true},
	"string":   {`{{ 'add_generation_prompt' }}{% if add_generation_prompt %}b{% endif %}`, true},
	"or":       {`{% if add_generation_prompt or messages %}b{% endif %}`, false},
	"not":      {`{% if not add_generation_prompt %}b{% endif %}`, false},
	"else":     {`{% if add_generation_prompt %}b{% else %}c{% endif %}`, false},
	"elif":     {`{% if add_generation_prompt %}b{% elif messages %}c{% endif %}`, false},
	"behind":   {`{% if add_generation_prompt %}b{% set x = 1 %}{% endif %}{{ x }}`, false},
	"twice":    {`{{ add_generation_prompt }}{% if add_generation_prompt %}b{% endif %}`, false},
	"set":      {`{% set add_generation_prompt = true %}{% if add_generation_prompt %}b{% endif %}`, false},
	"loop":     {`{% for m in messages %}{{ m.content }}{% if loop.last and add_generation_prompt %}b{% endif %}{% endfor %}`, false},
	"inline":   {`a{{ 'b' if add_generation_prompt else '' }}`, false},
	"attr":     {`{% if messages.add_generation_prompt %}b{% endif %}`, false},
	"within":   {`{% if messages %}a{% if add_generation_prompt %}b{% endif %}{% endif %}`, false},
	"fails":    {`{% if not add_generation_prompt %}{{ raise_exception('no') }}{% endif %}`, false},
	"captured": {`{% set x %}{% if add_generation_prompt %}b{% endif %}{% endset %}{{ x }}`, false},
}

// TestRenderTurn: what a turn begins with is what its conversation is without asking for an answer, by one render or
// two. With -templates DIR it is tried on those of a folder, too.
func TestRenderTurn(t *testing.T) {
	all, once := own(t), map[string]bool{}
	for name, a := range asking {
		all[name] = mustNew(t, name, a.source)
	}
	paths, _ := filepath.Glob(filepath.Join(*templates, "*.jinja"))
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = mustNew(t, path, string(source))
	}
	now := time.Unix(1e9, 0)
	for name, tmpl := range all {
		rapid.Check(t, func(t *rapid.T) {
			c := Conversation{Messages: crowded().Messages, Now: now, Generate: true}
			c.Messages = c.Messages[:rapid.IntRange(1, len(c.Messages)).Draw(t, "messages")]
			if rapid.Bool().Draw(t, "tools") {
				c.Tools = testTools
			}
			if rapid.Bool().Draw(t, "answer") {
				c.Messages = append(c.Messages[:len(c.Messages):len(c.Messages)], message(t, tmpl.Dialect()))
			}
			if rapid.Bool().Draw(t, "switch") {
				c.Thinking = new(rapid.Bool().Draw(t, "thinking"))
			}
			if rapid.IntRange(0, 9).Draw(t, "given") == 0 {
				c.Kwargs = map[string]json.RawMessage{asks: json.RawMessage(rapid.SampledFrom([]string{"true", "false"}).Draw(t, "value"))}
			}
			ctx := context.Background()
			want, wantErr := tmpl.Render(ctx, c)
			have, begun, err := tmpl.RenderTurn(ctx, c)
			if (err == nil) != (wantErr == nil) || bracketed(have) != bracketed(want) {
				t.Fatalf("%s: %q, %v, want %q, %v", name, bracketed(have), err, bracketed(want), wantErr)
			}
			if err != nil {
				return
			}
			if c.Kwargs == nil {
				once[name] = begun != nil
			}
			if begun == nil {
				begun = tmpl.Begun(ctx, c)
			}
			c.Generate = false
			want, wantErr = tmpl.Render(ctx, c)
			if (begun == nil) != (wantErr != nil) || bracketed(begun) != bracketed(want) {
				t.Fatalf("%s: begins with %q, want %q, %v", name, bracketed(begun), bracketed(want), wantErr)
			}
		})
	}
	count := 0
	for name := range all {
		if a, ok := asking[name]; ok && once[name] != a.once {
			t.Errorf("%s: one render is enough: %t", name, once[name])
		}
		if once[name] {
			count++
		}
	}
	t.Logf("one render is enough of %d of %d templates", count, len(all))
}
