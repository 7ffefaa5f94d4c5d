package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// crowded is a conversation with messages at all places that templates may not have.
func crowded() Conversation {
	say := func(role, text string) Message { return Message{Role: role, Content: text} }
	return Conversation{Tools: probeTools, Generate: true, Messages: []Message{
		say("developer", "zxa"), say("developer", "zxb"), say("user", "zxc"), say("system", "zxd"), say("user", "zxe"), say("assistant", "zxf"),
		say("system", "zxg"), say("user", "zxh"), {Role: "assistant", Calls: probeCalls[:1]}, {Role: "tool", ToolCallID: probeCalls[0].ID, Content: "zxi"},
		say("user", "zxj"), say("assistant", "zxk"), say("assistant", "zxl"), say("user", "zxm"), say("developer", "zxn"),
	}}
}

// TestFold: whatever places a template has, the text of every message is there once and in order. With
// -templates DIR it is tried on those of a folder, too.
func TestFold(t *testing.T) {
	all := own(t)
	all["strict"] = mustNew(t, "strict", strict)
	paths, _ := filepath.Glob(filepath.Join(*templates, "*.jinja"))
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = mustNew(t, path, string(source))
	}
	for name, tmpl := range all {
		c := crowded()
		if tmpl.Dialect().Calls == "" {
			c.Tools = nil
			c.Messages = append(c.Messages[:8:8], c.Messages[10:]...)
		}
		spans, err := tmpl.Render(t.Context(), c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		all := Text(spans)
		rest := all
		for i, m := range c.Messages {
			_, behind, ok := strings.Cut(rest, m.Content)
			if i < 2 { // what leads all may stand where the template likes
				behind, ok = rest, strings.Contains(all, m.Content)
			}
			if !ok || m.Content != "" && strings.Count(all, m.Content) != 1 {
				t.Errorf("%s: %q is not there once, in its place: %s", name, m.Content, all)
				break
			}
			rest = behind
		}
	}
}

// strict takes a system message at the beginning, then users and assistants by turns.
const strict = `{%- if messages[0].role == 'system' %}{{ '[S]' + messages[0].content + '\n' }}{% set messages = messages[1:] %}{% endif -%}
{%- for m in messages -%}
    {%- if m.role == 'system' %}{{ raise_exception('system must be first') }}{% endif -%}
    {%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif -%}
    {{- '[' + m.role + ']' + m.content + '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '[assistant]' }}{% endif -%}`

// TestFoldStrict: what a template that takes turns only gets, and that one that takes all gets what there was.
func TestFoldStrict(t *testing.T) {
	say := func(role, text string) Message { return Message{Role: role, Content: text} }
	c := Conversation{Generate: true, Messages: []Message{say("system", "S"), say("user", "a"), say("system", "b"), say("assistant", "c"), say("system", "d"), say("user", "e")}}
	for _, x := range []struct{ name, source, want string }{
		{"strict", strict, "[S]S\n[user]a\n\nb\n[assistant]c\n[user]d\n\ne\n[assistant]"},
		{"loose", "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}", "[system]S\n[user]a\n[system]b\n[assistant]c\n[system]d\n[user]e\n"},
	} {
		spans, err := mustNew(t, x.name, x.source).Render(t.Context(), c)
		if err != nil || Text(spans) != x.want {
			t.Errorf("%s: %q, %v; want %q", x.name, Text(spans), err, x.want)
		}
	}
}
