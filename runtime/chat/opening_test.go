package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCallOpening: what the template writes of a call begins with its opening, behind reasoning, too.
func TestCallOpening(t *testing.T) {
	for name, tmpl := range own(t) {
		d := tmpl.Dialect()
		o, ok := tmpl.CallOpening("look_up")
		if d.Calls == "" {
			if ok {
				t.Errorf("%s: calls open with %q", name, o.Plain)
			}
			continue
		}
		if !ok || !strings.Contains(o.Plain, "look_up") || (o.Behind != "") != (d.ReasoningClose != "") {
			t.Errorf("%s: %+v, %v", name, o, ok)
			continue
		}
		rapid.Check(t, func(rt *rapid.T) {
			m := message(rt, d)
			m.Content, m.Calls = "", nil
			for range 5 {
				if m.Calls = message(rt, d).Calls; len(m.Calls) > 0 {
					break
				}
			}
			if len(m.Calls) == 0 {
				rt.Skip()
			}
			o, _ := tmpl.CallOpening(m.Calls[0].Name)
			text, opened := written(t, tmpl, m)
			begin := strings.TrimSpace(o.Plain)
			if m.Reasoning != "" {
				_, rest, closed := strings.Cut(text, d.ReasoningClose)
				if !closed {
					return // the template leaves out reasoning
				}
				text, begin = rest, strings.TrimSpace(o.Behind)
			} else if opened {
				return
			}
			if _, rest, closed := strings.Cut(text, d.ReasoningClose); m.Reasoning == "" && closed && d.ReasoningClose != "" {
				text = rest // the end of reasoning that is none
				begin = strings.TrimPrefix(begin, d.ReasoningOpen+d.ReasoningClose)
			}
			if !strings.HasPrefix(strings.TrimSpace(text), begin) {
				rt.Fatalf("%s: %q does not begin with %q", name, text, begin)
			}
		})
	}
	tmpl := own(t)["json-tag"]
	for _, name := range []string{"", "a b", `a"`, "a<b", "<|im_end|>", strings.Repeat("a", 200)} {
		if o, ok := tmpl.CallOpening(name); ok {
			t.Errorf("a call of %q opens with %q", name, o.Plain)
		}
	}
}
