package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// testTools have parameters of all types.
var testTools = []json.RawMessage{
	json.RawMessage(`{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {
		"word": {"type": "string"}, "n": {"type": "integer"}, "deep": {"type": ["boolean", "null"]}, "list": {"type": "array"}, "any": {}, "one": {"anyOf": [{"type": "number"}, {"type": "null"}]}}}}}`),
	json.RawMessage(`{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "object"}}}}}`),
	json.RawMessage(`{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}`),
}

// argumentsOf has the values that a parameter may have, by tool.
var argumentsOf = map[string]map[string]*rapid.Generator[string]{
	"look_up": {"word": texts, "n": integers, "deep": rapid.SampledFrom([]string{"true", "false", "null"}), "list": lists, "any": texts, "one": rapid.SampledFrom([]string{"null", "2.5", "-3e-07"})},
	"add":     {"a": integers, "b": objects},
	"now":     {},
}

var (
	words    = rapid.StringMatching(`[a-zé🌞 <>{}\[\]"'\\/|=:,\n\t-]{0,20}`)
	texts    = rapid.Map(words, pyString)
	integers = rapid.Map(rapid.IntRange(-1000, 1000), func(i int) string { return fmt.Sprint(i) })
	lists    = rapid.Map(rapid.SliceOfN(rapid.OneOf(texts, integers), 0, 3), func(s []string) string { return "[" + strings.Join(s, ", ") + "]" })
	objects  = rapid.Map(rapid.SliceOfN(lists, 0, 2), func(s []string) string {
		for i := range s {
			s[i] = fmt.Sprintf(`"k%d": %s`, i, s[i])
		}
		return "{" + strings.Join(s, ", ") + "}"
	})
)

// pyString writes a string as Python's json.dumps does.
func pyString(s string) string { return `"` + quoted(s) + `"` }

// message draws an answer that the form can write: parts without white space
// around and without the marks of the form.
func message(t *rapid.T, d Dialect) Message {
	m := Message{Role: "assistant"}
	clean := func(s string) string {
		s = strings.TrimSpace(s)
		for _, mark := range append(d.Markers(), "{", "[") {
			s = strings.ReplaceAll(s, mark, "")
		}
		return strings.TrimSpace(strings.TrimRight(strings.TrimSpace(s), "<[{|"))
	}
	if d.ReasoningOpen != "" && rapid.Bool().Draw(t, "reasons") {
		m.Reasoning = clean(words.Draw(t, "reasoning"))
	}
	calls := 0
	if d.Calls != "" {
		calls = rapid.IntRange(0, 3).Draw(t, "calls")
	}
	if d.OneCall {
		calls = min(calls, 1)
	}
	if calls == 0 || d.Calls != bareName && !(d.Calls == harmonyName && m.Reasoning != "") {
		m.Content = clean(words.Draw(t, "content"))
	}
	for i := range calls {
		name := rapid.SampledFrom([]string{"look_up", "add", "now"}).Draw(t, "tool")
		c := Call{ID: fmt.Sprintf("call0000%d", i), Name: name}
		var args []string
		for _, key := range []string{"word", "n", "deep", "list", "any", "one", "a", "b"} {
			if g := argumentsOf[name][key]; g != nil && rapid.Bool().Draw(t, key) {
				args = append(args, pyString(key)+": "+g.Draw(t, key))
			}
		}
		c.Arguments = "{" + strings.Join(args, ", ") + "}"
		m.Calls = append(m.Calls, c)
	}
	return m
}

// written returns what the model would have written for the template to render
// m so: the text behind the prompt, up to the end of the answer.
func written(t testing.TB, tmpl *Template, m Message) (text string, opened bool) {
	question := Message{Role: "user", Content: "Q"}
	on := true
	prompt, err := tmpl.Render(context.Background(), Conversation{Messages: []Message{question}, Tools: testTools, Generate: true, Thinking: &on})
	if err != nil {
		t.Fatal(err)
	}
	spans, err := tmpl.Render(context.Background(), Conversation{Messages: []Message{question, m}, Tools: testTools, Thinking: &on})
	if err != nil {
		t.Fatal(err)
	}
	d := tmpl.Dialect()
	before, out := Text(prompt), Text(spans)
	out, ok := strings.CutPrefix(out, before)
	opened = d.Thinks(before)
	if !ok { // the prompt opens what this message does not have
		head := strings.TrimRight(strings.TrimSuffix(strings.TrimSpace(before), d.ReasoningOpen), white)
		if out, ok = strings.CutPrefix(Text(spans), head); !ok {
			t.Fatalf("%q does not begin with %q", Text(spans), head)
		}
		out = strings.TrimPrefix(out, "\n")
		opened = m.Reasoning != "" && !strings.HasPrefix(strings.TrimLeft(out, white), d.ReasoningOpen)
	}
	out = strings.TrimRight(out, "\n")
	for _, end := range append(d.Ends, "[e~[") {
		out = strings.TrimSuffix(out, end)
	}
	return strings.TrimRight(out, "\n"), opened
}

// What a template writes of a message is read back as that message, however the
// text is cut.
func TestRoundTrip(t *testing.T) {
	for name, tmpl := range own(t) {
		t.Run(name, func(t *testing.T) {
			d := tmpl.Dialect()
			rapid.Check(t, func(rt *rapid.T) {
				m := message(rt, d)
				text, opened := written(t, tmpl, m)
				got := Collect(d.Parser(opened, testTools), text)
				for i := range got.Calls {
					switch {
					case d.Calls == "kimi" && got.Calls[i].ID != "":
						got.Calls[i].ID = m.Calls[min(i, len(m.Calls)-1)].ID
					case got.Calls[i].ID == "" && i < len(m.Calls):
						got.Calls[i].ID = m.Calls[i].ID
					}
				}
				if !reflect.DeepEqual(got, m) {
					rt.Fatalf("%q\n got %+v\nwant %+v", text, got, m)
				}
				checkSplits(rt, d, opened, text, rapid.Uint64().Draw(rt, "cut"))
			})
		})
	}
}

// tester is what checkSplits fails.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkSplits holds that a text gives the same message in one piece, byte by byte
// and in pieces that cut chooses, and no field twice.
func checkSplits(t tester, d Dialect, opened bool, text string, cut uint64) {
	t.Helper()
	want := Collect(d.Parser(opened, testTools), text)
	for name, size := range map[string]func() int{
		"bytes":  func() int { return 1 },
		"pieces": func() int { cut = cut*6364136223846793005 + 1442695040888963407; return 1 + int(cut>>60) },
	} {
		p := d.Parser(opened, testTools)
		got := Message{Role: "assistant"}
		named := map[int]int{}
		add := func(deltas []Delta) {
			for _, delta := range deltas {
				if c := delta.Call; c != nil {
					if c.Name != "" {
						named[c.Index]++
					}
					if named[c.Index] != 1 {
						t.Fatalf("%q in %s: call %d has %d names", text, name, c.Index, named[c.Index])
					}
				}
				got.Add(delta)
			}
		}
		for rest := text; rest != ""; {
			n := min(size(), len(rest))
			add(p.Push(rest[:n]))
			rest = rest[n:]
		}
		add(p.Close())
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q in %s:\n got %+v\nwant %+v", text, name, got, want)
		}
	}
}

// Deltas come as soon as they are certain.
func TestEarly(t *testing.T) {
	all := own(t)
	for _, c := range []struct{ form, text, want string }{
		{"json-tag", "Hello wor", "Hello wor"},
		{"json-tag", "Hello <tool", "Hello"},
		{"json-tag", "<think>a b", "(a b)"},
		{"json-tag", "<think>a b</thi", "(a b)"},
		{"json-tag", `<tool_call>{"name": "add"`, "add["},
		{"json-tag", `<tool_call>{"name": "add", "arguments": {"a": 1, "b`, `add[{"a": 1, "b`},
		{"function-tag", "<tool_call>\n<function=look_up>\n<parameter=word>\nhel", `look_up[{"word": "hel`},
		{"function-tag", "<tool_call>\n<function=look_up>\n<parameter=word>\nhel\n</para", `look_up[{"word": "hel`},
		{"arg-tags", "<tool_call>look_up\n<arg_key>word</arg_key><arg_value>hel", `look_up[{"word": "hel`},
		{"mistral", `[TOOL_CALLS]add[ARGS]{"a": 1`, `add[{"a": 1`},
		{"gemma", `<|tool_call>call:look_up{word:<|"|>he<|`, `look_up[{"word": "he`},
		{"harmony", "<|channel|>analysis<|message|>I th", "(I th)"},
		{"harmony", "<|channel|>final<|message|>Sunny<|ret", "Sunny"},
		{"harmony", ` to=functions.add<|channel|>commentary json<|message|>{"a`, `add[{"a`},
		{"json-bare", `{"name": "add", "parameters": {"a": 1`, `add[{"a": 1`},
		{"json-bare", `{"city": "Paris"`, `{"city": "Paris"`},
		{"content", "Any <tool_call>", "Any <tool_call>"},
	} {
		var m Message
		for _, d := range all[c.form].Dialect().Parser(false, testTools).Push(c.text) {
			m.Add(d)
		}
		got := m.Content
		if m.Reasoning != "" {
			got = "(" + m.Reasoning + ")" + got
		}
		for _, call := range m.Calls {
			got += call.Name + "[" + call.Arguments
		}
		if got != c.want {
			t.Errorf("%s: %q gives %s, want %s", c.form, c.text, got, c.want)
		}
	}
}

// What only looks like a call is content, and nothing is lost.
func TestNoCall(t *testing.T) {
	all := own(t)
	for _, c := range []struct{ form, text string }{
		{"json-tag", "The tag <tool_call> begins a call."},
		{"json-tag", "<tool_call>"},
		{"json-tag", "<tool_call>\n</tool_call>"},
		{"json-tag", `<tool_call>{"title": 1}</tool_call>`},
		{"json-tag", "a <tool_cal"},
		{"function-tag", "<function=not a call\n>"},
		{"arg-tags", "<tool_call>some words here\nand more"},
		{"mistral", "[TOOL_CALLS] is a token"},
		{"gemma", "<|tool_call>hello"},
		{"json-bare", `{"name": "Ann", "age": 7}`},
		{"json-bare", `{"name": "unknown_tool", "parameters": {}}`},
		{"kimi", "<|tool_calls_section_begin|>words"},
		{"harmony", "Just text."},
	} {
		m := Collect(all[c.form].Dialect().Parser(false, testTools), c.text)
		if m.Content != c.text || len(m.Calls) > 0 || m.Reasoning != "" {
			t.Errorf("%s: %q gives %+v", c.form, c.text, m)
		}
	}
	// Without tools nothing is a call.
	text := `<tool_call>{"name": "add", "arguments": {}}</tool_call>`
	if m := Collect(all["json-tag"].Dialect().Parser(false, nil), text); m.Content != text {
		t.Errorf("without tools: %+v", m)
	}
}

// Forms of calls that models write and their templates do not.
func TestVariants(t *testing.T) {
	all := own(t)
	call := Call{Name: "add", Arguments: `{"a": 1}`}
	for _, c := range []struct {
		form, text string
		want       []Call
	}{
		{"json-tag", `<tool_call>{"arguments": {"a": 1}, "name": "add"}</tool_call>`, []Call{call}},
		{"json-tag", `<tool_call>{"name": "add", "arguments": "{\"a\": 1}"}</tool_call>`, []Call{call}},
		{"json-tag", `<tool_call>{"name": "add", "arguments": {"a": 1}}`, []Call{call}},
		{"json-tag", `<tool_call>{"name": "now"}</tool_call>`, []Call{{Name: "now", Arguments: "{}"}}},
		{"json-tag", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", []Call{call, {Name: "now", Arguments: "{}"}}},
		{"function-tag", "<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>", []Call{call}},
		{"function-tag", "<tool_call>\n<function=look_up>\n<parameter=deep>\nTrue\n</parameter>\n<parameter=n>\nmany\n</parameter>\n</function>\n</tool_call>", []Call{{Name: "look_up", Arguments: `{"deep": true, "n": "many"}`}}},
		{"arg-tags", "<tool_call>add<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>", []Call{call}},
		{"mistral", `[TOOL_CALLS]add[ARGS]{"a": 1}`, []Call{call}},
		{"mistral", `[TOOL_CALLS]add[CALL_ID]abc[ARGS]{"a": 1}`, []Call{{ID: "abc", Name: "add", Arguments: `{"a": 1}`}}},
		{"deepseek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", []Call{call}},
		{"kimi", `<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|><|tool_calls_section_end|>`, []Call{{ID: "functions.add:0", Name: "add", Arguments: `{"a": 1}`}}},
		{"harmony", `<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>`, []Call{call}},
		{"harmony", `<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>commentary to=functions.add<|message|>{"a": 1}`, []Call{call}},
		{"json-bare", `<|python_tag|>{"type": "function", "name": "add", "parameters": {"a": 1}}`, []Call{call}},
		{"json-bare", `{"name": "add", "parameters": {"a": 1}}; {"name": "now", "parameters": {}}`, []Call{call, {Name: "now", Arguments: "{}"}}},
		{"pythonic", `<|tool_call_start|>[add(a=1)]<|tool_call_end|>`, []Call{call}},
		{"pythonic", `<|tool_call_start|>[look_up(word='it\'s "so"', deep=True, list=('a', 2, [None])), now()]<|tool_call_end|>`,
			[]Call{{Name: "look_up", Arguments: `{"word": "it's \"so\"", "deep": true, "list": ["a", 2, [null]]}`}, {Name: "now", Arguments: "{}"}}},
		{"pythonic", `<|tool_call_start|>[look_up(word='it's so', list={'a': 'b'})`, []Call{{Name: "look_up", Arguments: `{"word": "it's so", "list": {"a": "b"}}`}}},
		{"pythonic", `<|tool_call_start|>[look_up(word="\u00e9\ud83c\udf1e\n")]<|tool_call_end|>`, []Call{{Name: "look_up", Arguments: `{"word": "é🌞\n"}`}}},
		{"list-tag", `<TOOLCALL>[{"name": "add", "arguments": {"a": 1}}]</TOOLCALL>`, []Call{call}},
	} {
		m := Collect(all[c.form].Dialect().Parser(false, testTools), c.text)
		if !reflect.DeepEqual(m.Calls, c.want) || m.Content != "" {
			t.Errorf("%s: %q gives %+v, want %+v", c.form, c.text, m, c.want)
		}
	}
}

func FuzzParser(f *testing.F) {
	all := own(f)
	names := Dialects()
	for i, name := range names {
		tmpl := all[name]
		for _, m := range []Message{
			{Role: "assistant", Reasoning: "why", Content: "Text."},
			{Role: "assistant", Calls: []Call{{ID: "a", Name: "look_up", Arguments: `{"word": "x\ny", "n": 1, "list": [1, "b"]}`}}},
		} {
			if len(m.Calls) > 0 && tmpl.Dialect().Calls == "" {
				continue
			}
			text, opened := written(f, tmpl, m)
			f.Add(uint8(i), opened, text, uint64(i))
		}
	}
	for _, text := range []string{`{"name": "add"`, "<tool_call><tool_call>{", "[TOOL_CALLS]a[CALL_ID]b[ARGS]tru", "<think></think>\n x", "to=functions.", `<tool_call>{"name": "a", "arguments": {"a": nul}}`, `<|tool_call_start|>[a(b='c', d={"e": (1, "\ud83c`} {
		for i := range names {
			f.Add(uint8(i), false, text, uint64(7))
		}
	}
	f.Fuzz(func(t *testing.T, form uint8, opened bool, text string, cut uint64) {
		d := all[names[int(form)%len(names)]].Dialect()
		checkSplits(t, d, opened, text, cut)
		if utf8.ValidString(text) {
			m := Collect(d.Parser(opened, testTools), text)
			for _, s := range []string{m.Content, m.Reasoning} {
				if !utf8.ValidString(s) {
					t.Errorf("%q is cut within a code point", s)
				}
			}
		}
	})
}

// TestInline: with reasoning in the content, and no tools, the content is what the model wrote, however it is cut.
func TestInline(t *testing.T) {
	d := Dialect{ReasoningOpen: "<think>", ReasoningClose: "</think>", Calls: "json-tag"}
	piece := rapid.SampledFrom([]string{"<think>", "</think>", "<thi", "nk>", "\n", " ", "Hm.", "</", "{", "<tool_call>", "é"})
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(piece).Draw(t, "pieces")
		opened := rapid.Bool().Draw(t, "opened")
		p := d.Parser(opened, nil).Inline()
		var m Message
		for _, s := range pieces {
			for _, delta := range p.Push(s) {
				m.Add(delta)
			}
		}
		for _, delta := range p.Close() {
			m.Add(delta)
		}
		want := strings.Join(pieces, "")
		if opened {
			want = d.ReasoningOpen + want
		}
		if m.Content != want || m.Reasoning != "" || m.Calls != nil {
			t.Errorf("%q became %+v", want, m)
		}
	})
	h := Dialect{}.As(harmonyName)
	m := Collect(h.Parser(false, nil).Inline(), "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.")
	if m.Content != h.ReasoningOpen+"Hm."+h.ReasoningClose+"Hello." || m.Reasoning != "" {
		t.Errorf("harmony: %+v", m)
	}
}
