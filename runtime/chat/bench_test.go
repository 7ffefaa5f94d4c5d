package chat

import (
	"strings"
	"testing"
)

// BenchmarkLongArgument reads a call that writes a file of 20 kB, four bytes at a
// time, as tokens come.
func BenchmarkLongArgument(b *testing.B) {
	file := strings.Repeat("\tif x := f(y); x != \"z\" { // <b> & é\n", 550)
	for form, around := range map[string][2]string{
		"json-tag":     {`<tool_call>{"name": "look_up", "arguments": {"word": "`, `"}}</tool_call>`},
		"function-tag": {"<tool_call>\n<function=look_up>\n<parameter=word>\n", "\n</parameter>\n</function>\n</tool_call>"},
		"gemma":        {`<|tool_call>call:look_up{word:` + gemmaQuote, gemmaQuote + `}<tool_call|>`},
	} {
		text := around[0] + file + around[1]
		if form == "json-tag" {
			text = around[0] + quoted(file) + around[1]
		}
		d := own(b)[form].Dialect()
		b.Run(form, func(b *testing.B) {
			pushes := 0
			for b.Loop() {
				p := d.Parser(false, testTools)
				for rest := text; rest != ""; pushes++ {
					n := min(4, len(rest))
					p.Push(rest[:n])
					rest = rest[n:]
				}
				p.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(pushes), "us/push")
		})
	}
}
