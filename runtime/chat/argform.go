package chat

import "strings"

// ArgForm is how an argument is written that stands between marks:
//
//	Open KEY Text TEXT Close, or Open KEY Other JSON Close
//
// A text is a string as it is, where End must not be in.
type ArgForm struct{ Open, Text, Other, Close, End string }

// write writes an argument that is text.
func (a *ArgForm) write(key, text string) string { return a.Open + key + a.Text + text + a.Close }

// argForm returns how the template writes arguments; nil if it does not show it.
func (p *probe) argForm(tags *params) *ArgForm {
	render := func(arguments string) string {
		out, _ := p.render(Conversation{Tools: probeTools, Messages: []Message{ask,
			{Role: "assistant", Calls: []Call{{ID: formCalls[0].ID, Name: probeCall + "a", Arguments: arguments}}}}})
		_, out, _ = strings.Cut(out, probeAsk)
		if i := strings.LastIndex(out, probeCall+"a"); i >= 0 {
			return out[i+len(probeCall)+1:]
		}
		return ""
	}
	before, rest, ok := strings.Cut(render(`{"ka": "zqargs"}`), "ka")
	text, tail, ok2 := strings.Cut(rest, "zqargs")
	two, ok3 := strings.CutPrefix(render(`{"ka": "zqargs", "kb": 77777}`), before+"ka"+text+"zqargs")
	between, rest, ok4 := strings.Cut(two, "kb")
	other, tail2, ok5 := strings.Cut(rest, "77777")
	if !ok || !ok2 || !ok3 || !ok4 || !ok5 || tail2 != tail || !strings.Contains(between, tags.value) {
		return nil
	}
	a := &ArgForm{Text: text, Other: other, End: tags.value}
	a.Close = between[:common(between, tail)]
	a.Close = a.Close[:strings.LastIndexAny(a.Close, ">\n")+1] // not within a mark
	open := strings.LastIndex(between, tags.param)
	if open < len(a.Close) || !strings.HasSuffix(before, between[open:]) {
		return nil
	}
	a.Close, a.Open = between[:open], between[open:]
	if !strings.HasPrefix(tail, a.Close) {
		return nil
	}
	return a
}
