package text

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestLongBlanks holds that splitting takes time in proportion to runs of white space, also where \s+$ finds no end
// behind them: were each blank tried, 5e11 steps would be needed.
func TestLongBlanks(t *testing.T) {
	const n = 1 << 20
	for _, name := range []string{"deepseek-llm", "qwen35"} {
		p, err := newPreTokenizer(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, blank := range []string{" ", "\u00a0"} {
			run := strings.Repeat(blank, n/len(blank))
			for _, s := range []string{run + "1", "x" + run} {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				stop := cancelWith(ctx)
				stop.asked = 1023 // each further look asks
				r := newRunes(s)
				ends, _ := p.split(r, stop)
				if cancel(); ctx.Err() == context.DeadlineExceeded || int(ends[len(ends)-1]) != len(r.cps) {
					t.Errorf("%s: %.3q: not split in 10 s", name, s)
				}
			}
		}
	}
}
