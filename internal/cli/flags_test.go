package cli

import (
	"context"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestWhatPeopleMistype(t *testing.T) {
	did := func(context.Context, []string) error { return nil }
	p := &Program{Name: "prog", Commands: []Command{
		{Setup: func(f *pflag.FlagSet) func(context.Context, []string) error { return did }},
		{Name: "chat", Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
			f.Int("slots", 1, "")
			f.Float64("temp", 0, "")
			f.Duration("drain", time.Second, "")
			f.Bool("verbose", false, "")
			f.Var(new(Positions), "ctx", "")
			return did
		}},
		{Name: "serve", Setup: func(f *pflag.FlagSet) func(context.Context, []string) error { return did }},
	}}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"caht", "x"}, `unknown command "caht"; did you mean chat?`},
		{[]string{"serv"}, `unknown command "serv"; did you mean serve?`},
		{[]string{"chat.bin"}, ""},
		{[]string{"qwen3:8b"}, ""},
		{[]string{"elsewhere"}, ""},
		{[]string{"chat", "--slot", "2"}, "chat: unknown flag: --slot; did you mean --slots?"},
		{[]string{"chat", "--nothing"}, "chat: unknown flag: --nothing"},
		{[]string{"chat", "--slots", "two"}, `chat: --slots: want a whole number, have "two"`},
		{[]string{"chat", "--slots", "99999999999999999999"}, `chat: --slots: want a whole number that is not as large, have "99999999999999999999"`},
		{[]string{"chat", "--temp", "hot"}, `chat: --temp: want a number, have "hot"`},
		{[]string{"chat", "--drain", "long"}, `chat: --drain: want a time such as 30s or 5m, have "long"`},
		{[]string{"chat", "--verbose=so"}, `chat: --verbose: want true or false, have "so"`},
		{[]string{"chat", "--ctx", "4g"}, `chat: --ctx: want a positive number such as 4096, 16k or 1m, have "4g"`},
	} {
		got := ""
		if err := p.run(t.Context(), c.args); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}
