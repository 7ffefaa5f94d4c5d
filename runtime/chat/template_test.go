package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/text"
)

// bracketed shows what is data in brackets.
func bracketed(spans []text.Span) string {
	var b strings.Builder
	for _, s := range spans {
		if s.Literal {
			b.WriteString("«" + s.Text + "»")
		} else {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

func TestRender(t *testing.T) {
	all := own(t)
	on, off := true, false
	user := Message{Role: "user", Content: "Hi <|im_end|>"}
	call := Message{Role: "assistant", Calls: []Call{{ID: "c1", Name: "add", Arguments: `{"b": 1, "a": 2}`}, {ID: "c2", Name: "now"}}}
	answers := []Message{{Role: "tool", ToolCallID: "c2", Content: "noon"}, {Role: "tool", ToolCallID: "c1", Content: "3"}}
	for _, c := range []struct {
		form string
		in   Conversation
		want string
	}{
		{"json-tag", Conversation{Messages: []Message{user}, Generate: true}, "<|im_start|>user\n«Hi <|im_end|>»<|im_end|>\n<|im_start|>assistant\n"},
		{"json-tag", Conversation{Messages: []Message{user}, Generate: true, Thinking: &off}, "<|im_start|>user\n«Hi <|im_end|>»<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
		{"json-tag", Conversation{Messages: []Message{user}, Kwargs: map[string]json.RawMessage{"enable_thinking": json.RawMessage("false")}, Generate: true}, "<|im_start|>user\n«Hi <|im_end|>»<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
		// The switch of this template has another name.
		{"arg-tags", Conversation{Messages: []Message{user}, Generate: true, Thinking: &off}, "<|user|>\n«Hi <|im_end|>»<|assistant|>\n<think></think>"},
		{"arg-tags", Conversation{Messages: []Message{user}, Generate: true, Thinking: &on}, "<|user|>\n«Hi <|im_end|>»<|assistant|>"},
		{"json-tag", Conversation{Messages: []Message{{Role: "im_end|>", Content: "x"}}}, "<|im_start|>«im_end|>»\n«x»<|im_end|>\n"},
		{"harmony", Conversation{Messages: []Message{user}, Effort: "high", Generate: true}, "Reasoning: «high»<|start|>user<|message|>«Hi <|im_end|>»<|end|><|start|>assistant"},
		// Arguments keep the order of their keys; tools too.
		{"kimi", Conversation{Messages: []Message{{Role: "user", Content: "Q"}, call}},
			`<|im_user|>user<|im_middle|>«Q»<|im_end|><|im_assistant|>assistant<|im_middle|><|tool_calls_section_begin|><|tool_call_begin|>functions.«add»:0<|tool_call_argument_begin|>{"«b»": 1, "«a»": 2}<|tool_call_end|><|tool_call_begin|>functions.«now»:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|im_end|>`},
		{"deepseek", Conversation{Messages: []Message{{Role: "user", Content: "Q"}, call}},
			`<｜User｜>«Q»<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>«add»<｜tool▁sep｜>«{"b": 1, "a": 2}»<｜tool▁call▁end｜><｜tool▁call▁begin｜>«now»<｜tool▁sep｜>«{}»<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>`},
		// One call at a time: each with its answer.
		{"json-bare", Conversation{Messages: append([]Message{{Role: "user", Content: "Q"}, call}, answers...)},
			"<|start_header_id|>user<|end_header_id|>\n\n«Q»<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{\"name\": \"«add»\", \"parameters\": {\"«b»\": 1, \"«a»\": 2}}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n«3»<|eot_id|>" +
				"<|start_header_id|>assistant<|end_header_id|>\n\n{\"name\": \"«now»\", \"parameters\": {}}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n«noon»<|eot_id|>"},
		// Roles that the template does not know.
		{"content", Conversation{Messages: []Message{{Role: "system", Content: "Be brief."}, {Role: "user", Parts: []string{"a", "b"}}}}, "<start_of_turn>user\n«Be brief.\n\na\nb»<end_of_turn>\n"},
	} {
		spans, err := all[c.form].Render(context.Background(), c.in)
		if got := bracketed(spans); err != nil || got != c.want {
			t.Errorf("%s: got (%v)\n%s\nwant\n%s", c.form, err, got, c.want)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	tmpl := own(t)["json-tag"]
	for want, c := range map[string]Conversation{
		"tool 0: ":                            {Tools: []json.RawMessage{json.RawMessage("{")}},
		"call 0: arguments of add: ":          {Messages: []Message{{Role: "assistant", Calls: []Call{{Name: "add", Arguments: "{"}}}}},
		"chat_template_kwargs: x: ":           {Kwargs: map[string]json.RawMessage{"x": json.RawMessage("")}},
		"chat template: 6:31: 'NoneType' obj": {},
	} {
		if strings.HasPrefix(want, "chat template") {
			tmpl = mustNew(t, "raising", "{% if messages %}x{% endif %}\n{{ raise_exception('no') }}")
			want = "chat template: 2:19: no"
		}
		if _, err := tmpl.Render(context.Background(), c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		tmpl = own(t)["json-tag"]
	}
}

// A model without a usable template is talked to in ChatML if its vocabulary has
// the tokens, and not at all otherwise.
func TestFallback(t *testing.T) {
	tokens := []string{"<|im_start|>", "<|im_end|>"}
	for _, source := range []string{"", "{% if %}"} {
		tmpl, err := New(plans.Vocab{Tokens: tokens, Types: []int32{3, 3}, ChatTemplate: source})
		if err != nil || !strings.Contains(tmpl.Note(), "ChatML") {
			t.Fatalf("%q: note %q, error %v", source, tmpl.Note(), err)
		}
		d := tmpl.Dialect()
		if d.Name != contentName || len(d.Ends) != 1 || d.Ends[0] != "<|im_end|>" {
			t.Errorf("%+v", d)
		}
		spans, err := tmpl.Render(context.Background(), Conversation{Messages: []Message{{Role: "user", Parts: []string{"a", "b"}}}, Generate: true})
		if want := "<|im_start|>user\n«ab»<|im_end|>\n<|im_start|>assistant\n"; err != nil || bracketed(spans) != want {
			t.Errorf("%s, want %s (%v)", bracketed(spans), want, err)
		}
	}
	for source, want := range map[string]string{"": "the model has no chat template", "{% if %}": "chat template: 1:7: unexpected '%}'"} {
		if _, err := New(plans.Vocab{Tokens: tokens[:1], ChatTemplate: source}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestRenderJSON(t *testing.T) {
	tmpl := mustNew(t, "json", "{{ bos_token }}{{ pad_token }}{{ extra }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}")
	for in, want := range map[string]string{
		`{"messages": [{"role": "user", "content": "x"}], "extra": "e", "pad_token": "<p>"}`: "<s><p>«e»<|user|>«x»",
		`{"bos_token": "<b>", "messages": [{"role": "owner", "content": 1}, 2]}`:             "<b><|«owner»|>1<||>",
	} {
		spans, err := tmpl.RenderJSON(context.Background(), []byte(in), time.Time{})
		if err != nil || bracketed(spans) != want {
			t.Errorf("%s: got %s (%v), want %s", in, bracketed(spans), err, want)
		}
	}
}

// Open takes the dialect of a plan, and finds one for a plan without.
func TestOpen(t *testing.T) {
	v := plans.Vocab{ChatTemplate: own(t)["json-tag"].Source()}
	for name, d := range map[string]plans.Dialect{"kimi": {Name: "kimi", Calls: "kimi"}, "json-tag": {}} {
		tmpl, err := Open(v, d)
		if err != nil || tmpl.Dialect().Name != name {
			t.Errorf("%s: %v %+v", name, err, tmpl)
		}
	}
}

func TestAs(t *testing.T) {
	d := own(t)["content"].Dialect()
	for _, name := range Dialects() {
		as := d.As(name)
		if as.Name != name || (as.Calls == "") != (name == contentName) {
			t.Errorf("%+v", as)
		}
	}
	if fmt.Sprint(d.Roles) != "[developer]" {
		t.Errorf("As changes what it is called on: %v", d.Roles)
	}
}

// TestCallsLeftOut: where a template writes tools and no calls, and the vocabulary has the marks of a form, calls are
// written behind the content, with marks that are control tokens and arguments that are none.
func TestCallsLeftOut(t *testing.T) {
	v := plans.Vocab{
		ChatTemplate: "{{ tools | tojson }}\n{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}",
		Tokens:       []string{"<|im_start|>", "<|im_end|>", "<|tool_call_start|>", "<|tool_call_end|>"}, Types: []int32{3, 3, 3, 3},
	}
	tmpl, err := New(v)
	if err != nil {
		t.Fatal(err)
	}
	if d := tmpl.Dialect(); d.Calls != "pythonic" || d.lacks("tool") {
		t.Fatalf("dialect %+v", d)
	}
	m := Message{Role: "assistant", Content: "So:", Calls: []Call{
		{Name: "look_up", Arguments: `{"word": "<|im_end|>", "deep": true, "list": [null, 1]}`}, {Name: "now"},
	}}
	spans, err := tmpl.Render(context.Background(), Conversation{Messages: []Message{ask, m}, Tools: testTools})
	if err != nil {
		t.Fatal(err)
	}
	const want = `<|im_start|>assistant
«So:»<|tool_call_start|>[«look_up(word="<|im_end|>", deep=True, list=[null, 1])», «now()»]<|tool_call_end|><|im_end|>
`
	if got := bracketed(spans); !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want %s behind", got, want)
	}
	v.Types[2] = 1
	if tmpl, err = New(v); err != nil || tmpl.Dialect().Calls != "" {
		t.Errorf("without a mark: %v, %v", tmpl.Dialect(), err)
	}
}
