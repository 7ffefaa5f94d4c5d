package table

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func sample() *Table {
	t := &Table{Title: "memory", Columns: []string{"name", "bytes", "share"}}
	t.Add("weights", Bytes(3<<20), 99.95)
	t.Add("größe\n", Bytes(12), 0.0)
	return t
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := WriteText(&b, sample(), &Table{Title: "empty", Columns: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	want := `memory
  name        bytes  share
  weights  3.00 MiB  100.0
  größe        12 B    0.0

empty
  a
`
	if b.String() != want {
		t.Errorf("have\n%swant\n%s", b.String(), want)
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	if err := WriteJSON(&b, sample()); err != nil {
		t.Fatal(err)
	}
	var v map[string][]struct {
		Name  string
		Bytes int64
		Share float64
	}
	if err := json.Unmarshal([]byte(b.String()), &v); err != nil {
		t.Fatal(err)
	}
	if rows := v["memory"]; len(rows) != 2 || rows[0].Bytes != 3<<20 || rows[1].Name != "größe\n" || rows[0].Share != 99.95 {
		t.Errorf("%+v", v)
	}
	if strings.Index(b.String(), `"name"`) > strings.Index(b.String(), `"bytes"`) {
		t.Error("keys are not in the order of the columns")
	}
}

func TestUnits(t *testing.T) {
	for have, want := range map[string]string{
		Bytes(1023).String(): "1023 B", Bytes(1536).String(): "1.50 KiB", Bytes(5 << 30).String(): "5.00 GiB",
		List(nil).String(): "none", List{"a"}.String(): "a", List{"a", "b", "c"}.String(): "a +2",
		Count(999).String(): "999", Count(1234567).String(): "1.23 M",
	} {
		if have != want {
			t.Errorf("%s, want %s", have, want)
		}
	}
}

// TestNarrow has a table that is too wide: its longest texts follow below, short ones on one line, and what the
// row before has is not said again.
func TestNarrow(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("a kernel's name ", 12))
	n := &Table{Title: "kernels", Columns: []string{"site", "entry", "n", "a", "b"}}
	n.Add("attn_q", "decode/1", 1, long, "short")
	n.Add("attn_q", "decode/1", 2, "130x1x1", "34x1x1")
	n.Add("attn_q", "decode/2", 3, "", strings.Repeat("x", 130))
	n.Add("sum", "", 6, "", "")
	var b strings.Builder
	if err := n.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `kernels
  site    entry     n
  attn_q  decode/1  1
      a  a kernel's name a kernel's name a kernel's name a kernel's name a kernel's name a kernel's name a kernel's name
         a kernel's name a kernel's name a kernel's name a kernel's name a kernel's name
      b  short
                    2
      a  130x1x1  b  34x1x1
          decode/2  3
      b  `
	if have := b.String(); have != want+strings.Repeat("x", 130)+"\n  sum               6\n" {
		t.Errorf("have\n%s", have)
	}
}

// TestPair compares values that are too long: they stay beside each other, below what they are of.
func TestPair(t *testing.T) {
	p := &Table{Title: "kernels", Columns: []string{"site", "entries", "what", "a", "b"}, Pair: true}
	long := strings.TrimSpace(strings.Repeat("a kernel's name ", 5))
	p.Add("attn_q", strings.Repeat("decode/1 ", 5), "kernel", long, "short")
	p.Add("attn_q", strings.Repeat("decode/1 ", 5), "types", "8", strings.Repeat("q4_k*fixed,", 10))
	p.Add("sum", "", "size", "", strings.Repeat("x", 130))
	var b strings.Builder
	if err := p.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `kernels
  site  entries
      what    a                                                     b
  attn_q  decode/1 decode/1 decode/1 decode/1 decode/1
      kernel  a kernel's name a kernel's name a kernel's name a     short
              kernel's name a kernel's name
      types   8                                                     q4_k*fixed,q4_k*fixed,q4_k*fixed,q4_k*fixed,
                                                                    q4_k*fixed,q4_k*fixed,q4_k*fixed,q4_k*fixed,
                                                                    q4_k*fixed,q4_k*fixed,
  sum
      size                                                          `
	x := strings.Repeat(" ", 68)
	rest := strings.Repeat("x", 52) + "\n" + x + strings.Repeat("x", 52) + "\n" + x + strings.Repeat("x", 26) + "\n"
	if have := b.String(); have != want+rest {
		t.Errorf("have\n%swant\n%s", have, want+rest)
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > LineWidth+1 {
			t.Errorf("too wide: %q", line)
		}
	}
}

// TestNone: a number that there is none of is null, and does not move its column to the left.
func TestNone(t *testing.T) {
	n := &Table{Title: "n", Columns: []string{"entry", "steps"}}
	n.Add("decode/1", 12)
	n.Add("prefill/16", None)
	var text, json strings.Builder
	if err := errors.Join(n.WriteText(&text), WriteJSON(&json, n)); err != nil {
		t.Fatal(err)
	}
	if want := "n\n  entry       steps\n  decode/1       12\n  prefill/16      -\n"; text.String() != want || !strings.Contains(json.String(), `"steps": null`) {
		t.Errorf("%s%s", text.String(), json.String())
	}
}
