package talk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/text"
)

// BenchmarkTurn makes the requests of an agent's conversation, each of which has a call and what came of it behind all
// that was said before.
func BenchmarkTurn(b *testing.B) {
	f, err := gguf.Open("../../testdata/models/gopher-chat-q4_k_m.gguf")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	v, err := plans.ReadVocab(f)
	if err != nil {
		b.Fatal(err)
	}
	m := &Model{Ctx: 1 << 20}
	if m.Tokenizer, err = text.New(v); err != nil {
		b.Fatal(err)
	}
	if m.Template, err = chat.New(v); err != nil {
		b.Fatal(err)
	}
	said := []chat.Message{{Role: "user", Content: strings.Repeat("Where does the program read the file, and who closes it? ", 500)}}
	for _, turns := range []int{10, 100, 200} {
		for len(said) < 2*turns {
			said = next(said, 0)
		}
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			ctx, tokens := text.Remember(b.Context(), ""), 0
			for i := 0; b.Loop(); i++ {
				t, err := m.Turn(ctx, chat.Conversation{Messages: next(said, i)}, Options{})
				if err != nil {
					b.Fatal(err)
				}
				tokens = len(t.Request.Prompt)
			}
			b.ReportMetric(float64(tokens), "tokens")
		})
	}
}

// next adds a call and what came of it, which differs by i.
func next(said []chat.Message, i int) []chat.Message {
	id := fmt.Sprintf("call%05d", len(said))
	call := chat.Call{ID: id, Name: "read", Arguments: fmt.Sprintf(`{"from": %d}`, i)}
	return append(said[:len(said):len(said)],
		chat.Message{Role: "assistant", Content: fmt.Sprintf("I look at it from line %d on, where it is opened.", len(said)), Calls: []chat.Call{call}},
		chat.Message{Role: "tool", ToolCallID: id, Content: strings.Repeat(fmt.Sprintf("\tif err := f.close(%d); err != nil {\n\t\treturn %d, err\n\t}\n", i, len(said)), 20)})
}
