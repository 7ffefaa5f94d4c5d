package chat

import (
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/runtime/text"
)

func TestTokens(t *testing.T) {
	v := text.Vocab{Model: "gpt2", Pre: "qwen2", Tokens: []string{"<|im_end|>", "[TOOL_CALLS]", "<think>", "<end_of_tools>"}, Types: []int32{3, 3, 4, 3}, EOS: new(int32(0))}
	tok, err := text.New(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d     Dialect
		shows bool
		ends  []int32
	}{
		{Dialect{ReasoningOpen: "<think>", Ends: []string{"<|im_end|>"}}, false, nil}, // that one ends generation anyway
		{Dialect{Calls: "mistral", Ends: []string{"<end_of_tools>", "</none>"}}, true, []int32{3}},
	} {
		if got := c.d.ShowsControl(tok); got != c.shows {
			t.Errorf("%+v: ShowsControl %v", c.d, got)
		}
		if got := c.d.EndTokens(tok); !slices.Equal(got, c.ends) {
			t.Errorf("%+v: EndTokens %v, want %v", c.d, got, c.ends)
		}
	}
}
