package grammar

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestNumbersEnd writes digits at random, as long as they may come: each number has at most 20 before the point, unless
// it needs more, and can always be completed.
func TestNumbersEnd(t *testing.T) {
	vocabulary := tiny()
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		schema string
		most   int
	}{
		{`{"type":"integer","multipleOf":0.123456789}`, 20},
		{`{"type":"integer","multipleOf":987654321}`, 20},
		{`{"type":"integer","multipleOf":12345678901,"maximum":-5}`, 20},
		{`{"type":"number","multipleOf":123456789.25}`, 20},
		{`{"type":"integer","multipleOf":7}`, 20},
		{`{"type":"integer","multipleOf":7,"minimum":1e24}`, 25},
		{`{"type":"integer"}`, 20},
	} {
		g, _, err := Schema([]byte(c.schema), SchemaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for range 40 {
			m := g.Match(vocabulary)
			if !m.Clone().AcceptText("1") || r.IntN(2) == 0 {
				m.AcceptText("-")
			}
			for range c.most + 2 {
				var digits []string
				for b := range 10 {
					if d := string(rune('0' + b)); m.Clone().AcceptText(d) {
						digits = append(digits, d)
					}
				}
				if len(digits) == 0 {
					break
				}
				m.AcceptText(digits[r.IntN(len(digits))])
			}
			if n := len(strings.TrimPrefix(m.Text(), "-")); n > c.most {
				t.Errorf("%s: %s has %d digits", c.schema, m.Text(), n)
			}
			if m.Done() {
				ended++
			} else if m.Mask().Count() == 0 {
				t.Errorf("%s: nothing may follow %q", c.schema, m.Text())
			}
		}
		if ended == 0 {
			t.Errorf("%s: no number has ended", c.schema)
		}
	}
	long := "1" + strings.Repeat("0", 25)
	for _, schema := range []string{`{"enum":[1e20,1e25]}`, `{"type":"integer","multipleOf":1e25}`, `{"type":"integer","minimum":1e25,"maximum":1e25}`} {
		g, _, err := Schema([]byte(schema), SchemaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if at, ok, _ := g.Check([]byte(long)); !ok {
			t.Errorf("%s refuses %s at %d", schema, long, at)
		}
	}
}
