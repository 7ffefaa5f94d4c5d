package talk

import (
	"encoding/json"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/grammar"
)

const schema = `{"type": "object", "properties": {"zone": {"type": "string", "enum": ["utc", "a<b"]}, "hour": {"type": "integer", "minimum": 3, "maximum": 40},
	"note": {"type": "string", "maxLength": 3}, "at": {"$ref": "#/$defs/at"}}, "required": ["zone", "hour"], "additionalProperties": false,
	"$defs": {"at": {"type": "object", "properties": {"x": {"enum": [1, "y"]}}, "required": ["x"], "additionalProperties": false}}}`

// models are those of the templates of package chat's testdata, by their dialect.
func models(t *testing.T) map[string]*Model {
	archive, err := txtar.ParseFile(filepath.Join("..", "chat", "testdata", "templates.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Model{}
	for _, f := range archive.Files {
		tmpl, err := chat.New(plans.Vocab{ChatTemplate: string(f.Data), Tokens: []string{"<s>", "</s>"}, Types: []int32{3, 3}, BOS: new(int32(0)), EOS: new(int32(1))})
		if err != nil {
			t.Fatal(err)
		}
		if d := tmpl.Dialect(); d.Calls != "" {
			all[d.Calls] = &Model{Template: tmpl}
		}
	}
	return all
}

// TestCalls writes calls along masks in each dialect, and holds that they are read as calls whose arguments are valid.
func TestCalls(t *testing.T) {
	var pieces []string
	for b := range 256 {
		pieces = append(pieces, string([]byte{byte(b)}))
	}
	v := grammar.NewVocabulary(append(pieces, "\xff<end>"), []int32{256})
	valid, _, err := grammar.Schema([]byte(schema), grammar.SchemaOptions{Documents: true})
	if err != nil {
		t.Fatal(err)
	}
	raw := []json.RawMessage{json.RawMessage(`{"type": "function", "function": {"name": "get_time", "parameters": ` + schema + `}}`)}
	tools := []Tool{{Name: "get_time", Schema: json.RawMessage(schema), Strict: true}}
	for name, m := range models(t) {
		g, err := m.format(&Options{Tools: tools, Call: []string{"get_time"}, Single: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := rand.New(rand.NewPCG(3, 3))
		ended := 0
		for range 40 {
			answer := g.Match(v)
			for step := 0; step < 800 && !answer.Over(); step++ {
				mask := answer.Mask()
				if answer.Done() && mask.Has(256) {
					break
				}
				if mask.Count() == 0 {
					t.Fatalf("%s: %q: nothing follows: %v", name, answer.Text(), answer.Err())
				}
				answer.Accept(draw(r, mask))
			}
			if !answer.Done() {
				continue
			}
			ended++
			out := chat.Collect(m.Template.Dialect().Parser(false, raw), answer.Text())
			if len(out.Calls) != 1 || out.Calls[0].Name != "get_time" {
				t.Fatalf("%s: %q: read as %+v", name, answer.Text(), out)
			}
			if at, ok, _ := valid.Check([]byte(out.Calls[0].Arguments)); !ok {
				t.Fatalf("%s: %q: arguments %q are not valid at %d", name, answer.Text(), out.Calls[0].Arguments, at)
			}
		}
		if ended < 20 {
			t.Errorf("%s: %d of 40 calls ended", name, ended)
		}
	}
}

// draw takes a token of a mask, printable ones rather.
func draw(r *rand.Rand, mask grammar.Mask) int32 {
	for try := 0; ; try++ {
		k := r.IntN(mask.Count())
		for w, word := range mask {
			if c := bits.OnesCount64(word); k >= c {
				k -= c
				continue
			}
			for ; k > 0; k-- {
				word &= word - 1
			}
			if id := int32(w*64 + bits.TrailingZeros64(word)); try > 20 || id >= 'a' && id <= 'z' || strings.ContainsRune(`"{}:,<>_=`, id) {
				return id
			}
			break
		}
	}
}

// TestStrictBesideText holds that an answer with strict tools may be text, and that what begins a call is one.
func TestStrictBesideText(t *testing.T) {
	tools := []Tool{{Name: "get_time", Schema: json.RawMessage(schema), Strict: true}, {Name: "other", Schema: json.RawMessage(`{"unevaluatedItems": false}`)}}
	for name, m := range models(t) {
		g, err := m.format(&Options{Tools: tools})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, call := "It is four.", `{"name": "get_time", "parameters": {"zone": "x`
		switch name {
		case "harmony":
			text, call = "<|channel|>final<|message|>It is four.", `<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>{"zone": "x`
		case "function-tag":
			call = "Well.\n\n<tool_call>\n<function=get_time>\n<parameter=zone>\nx"
		case "mistral-list":
			call = `[TOOL_CALLS][{"name": "get_time", "arguments": {"zone": "x`
		}
		if _, ok, _ := g.Check([]byte(text)); !ok {
			t.Errorf("%s: %q is refused", name, text)
		}
		if name == "harmony" || name == "function-tag" || name == "mistral-list" || name == "json-bare" {
			if at, _, _ := g.Check([]byte(call)); at != len(call)-1 {
				t.Errorf("%s: %q is refused at %d", name, call, at)
			}
		}
	}
}
