package zincc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"path/filepath"
	"sync"

	"github.com/zincc-dev/zincc"
	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/trust"
)

// The plan of this model was compiled by `zincc compile`; a model file does as well where the program
// zincc is beside this one or in PATH.
func ExampleModel_Chat() {
	ctx := context.Background()
	m, err := zincc.Open(ctx, chatPlan(), zincc.Options{Device: "host"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	talk := []zincc.Message{{Role: "user", Content: "What does strings.Cut do?"}}
	for part, err := range m.Chat(ctx, talk, zincc.Temperature(0), zincc.Thinking(false)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(part.Content)
		if part.Usage != nil {
			fmt.Printf("\n%d tokens, then %s\n", part.Usage.Completion, part.Usage.Stopped)
		}
	}
	// Output:
	// Cut slices s around the first instance of sep, returning the text before and after sep.
	// 23 tokens, then stop
}

func ExampleModel_Chat_tools() {
	ctx := context.Background()
	m, err := zincc.Open(ctx, chatPlan(), zincc.Options{Device: "host"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	add := json.RawMessage(`{"type": "function", "function": {"name": "add", "description": "Adds two numbers.",
		"parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}}`)
	talk := []zincc.Message{{Role: "user", Content: "Add 12 and 30.5."}}
	for part, err := range m.Chat(ctx, talk, zincc.Tools(add), zincc.Temperature(0), zincc.Thinking(false)) {
		if err != nil {
			log.Fatal(err)
		}
		if part.Call != nil {
			fmt.Print(part.Call.Name, part.Call.Arguments)
		}
	}
	fmt.Println()
	// Output: add{"a": 12, "b": 30.5}
}

func ExampleModel_Generate() {
	ctx := context.Background()
	m, err := zincc.Open(ctx, chatPlan(), zincc.Options{Device: "host"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for part, err := range m.Generate(ctx, "// path: sort/search.go\npackage", zincc.Temperature(0), zincc.MaxTokens(1)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(part.Content)
	}
	fmt.Println()
	// Output:
	// sort
}

// chatPlan makes the plan of the examples, once.
var chatPlan = sync.OnceValue(func() string {
	path := filepath.Join(*modelsDir, "gopher-chat.bin")
	f, err := gguf.Open("testdata/models/gopher-chat-q4_k_m.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	on, err := target.Lookup("host")
	if err != nil {
		log.Fatal(err)
	}
	r, err := codegen.Compile(context.Background(), codegen.Source{Model: f}, codegen.Options{Target: on, Import: frontend.Options{KV: ir.F16}})
	if err != nil {
		log.Fatal(err)
	}
	digest, err := plans.WriteFile(path, r.Plan)
	if err != nil {
		log.Fatal(err)
	}
	trust.Accept(digest) // zincc compile records it
	return path
})
