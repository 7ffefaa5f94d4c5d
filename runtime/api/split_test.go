package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// jsonValue draws a value as text, with white space where it may be.
func jsonValue(t *rapid.T, depth int) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	kinds := 4
	if depth > 3 {
		kinds = 2
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"1", "-2.5e3", "true", "null"}).Draw(t, "scalar")
	case 1:
		b, _ := json.Marshal(rapid.StringMatching(`[a"\\,:{}\[\] é]{0,6}`).Draw(t, "string"))
		return string(b)
	case 2:
		var all []string
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			all = append(all, space()+jsonValue(t, depth+1)+space())
		}
		return "[" + strings.Join(all, ",") + space() + "]"
	}
	var all []string
	for range rapid.IntRange(0, 4).Draw(t, "length") {
		name, _ := json.Marshal(rapid.StringMatching(`[a"\\,:{é]{0,4}`).Draw(t, "name"))
		all = append(all, space()+string(name)+space()+":"+space()+jsonValue(t, depth+1)+space())
	}
	return "{" + strings.Join(all, ",") + space() + "}"
}

// TestSplit: elements and members are those of encoding/json.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(jsonValue(t, 0))
		switch raw[0] {
		case '[':
			var want []json.RawMessage
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			have := []json.RawMessage{}
			for i, e := range elements(raw) {
				if i != len(have) {
					t.Fatalf("element %d is the %dth", i, len(have))
				}
				have = append(have, e)
			}
			if !reflect.DeepEqual(have, want) {
				t.Errorf("%s: %s, want %s", raw, have, want)
			}
		case '{':
			var want map[string]json.RawMessage
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			have := map[string]json.RawMessage{}
			for name, v := range members(raw) {
				have[name] = v
			}
			if !maps.EqualFunc(have, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
				t.Errorf("%s: %s, want %s", raw, have, want)
			}
		}
	})
}

// TestGiantBodies: what is too much is refused before it is decoded, and what is passed over is not decoded at all.
func TestGiantBodies(t *testing.T) {
	many := func(one string, n int) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"x%d":1,`, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		body, param string // of the error
		ok          bool
		bytes       int // that it may take
	}{
		{`{"prompt": [` + many("1", 1_000_000) + `]}`, "", true, 40 << 20},
		{`{"prompt": [` + many("1", 4_000_000) + `]}`, "", false, 1 << 20},
		{`{"prompt": [` + many("[]", 1_000_000) + `]}`, "prompt", false, 1 << 20},
		{`{"prompt": ["` + strings.Repeat("a", 4<<20) + `"]}`, "", true, 20 << 20},
		{`{"messages": [` + many("{}", 1_000_000) + `]}`, "messages", false, 16 << 20},
		{`{"messages": [{"role": "user", "content": [` + many("{}", 1_000_000) + `]}]}`, "messages[0].content", false, 16 << 20},
		{`{"tools": [` + many("{}", 1_000_000) + `]}`, "tools", false, 16 << 20},
		{`{"chat_template_kwargs": {` + names(200_000) + `"y": 1}}`, "chat_template_kwargs", false, 16 << 20},
		{`{"logit_bias": {` + names(200_000) + `"y": 1}}`, "logit_bias", false, 16 << 20},
		{`{"logit_bias": [` + many("[1,2]", 400_000) + `]}`, "logit_bias", false, 16 << 20},
		{`{"stop": [` + many(`"a"`, 800_000) + `]}`, "stop", false, 16 << 20},
		{`{"stop_token_ids": [` + many(`1`, 1_000_000) + `]}`, "", true, 40 << 20},
		{`{"nobody": [` + many(`{"a": "b"}`, 400_000) + `]}`, "", true, 1 << 20},
		{`{` + names(300_000) + `"y": 1}`, "", true, 32 << 20},
	} {
		for _, into := range []any{&chatRequest{}, &completionRequest{}} {
			raw := []byte(c.body)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := decode(raw, into, nil)
			runtime.ReadMemStats(&after)
			if took := int(after.TotalAlloc - before.TotalAlloc); took > c.bytes {
				t.Errorf("%.40s takes %d bytes", c.body, took)
			}
			if _, chat := into.(*chatRequest); err == nil && !c.ok && chat != strings.HasPrefix(c.body, `{"prompt`) {
				t.Errorf("%.40s is taken by %T", c.body, into)
			}
			if err != nil && (c.ok || !strings.HasPrefix(errorOf(err).Param, c.param)) {
				t.Errorf("%.40s: %q of %v", c.body, errorOf(err).Param, err)
			}
		}
	}
}

// TestUnquote compares strings with what encoding/json makes of them.
func TestUnquote(t *testing.T) {
	pieces := []string{"a", "é", "日", "😀", `\n`, `\"`, `\\`, `\/`, `\b\f\r\t`, `\u0041`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\u0041`, `\ud83d\n`, `\u0000`, "\u2028", " "}
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(`"` + strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "") + `"`)
		var want string
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if got := unquote(raw); got != want {
			t.Fatalf("%s is %q, want %q", raw, got, want)
		}
		if end := stringEnd(append(slices.Clone(raw), `, "b"`...), 0); end != len(raw) {
			t.Fatalf("%s ends at %d, want %d", raw, end, len(raw))
		}
	})
	for raw, want := range map[string]int{`"`: 1, `"\`: 2, `"\"`: 3, `"a`: 2, `"\\"x`: 4} { // mostly of no valid JSON
		if end := stringEnd([]byte(raw), 0); end != want {
			t.Errorf("%s ends at %d, want %d", raw, end, want)
		}
	}
}
