package tuning_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// rows generates rows of few keys, so that files share some.
var rows = rapid.Custom(func(t *rapid.T) []tuning.Row {
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) tuning.Row {
		r := tuning.Row{
			Site:   "decode/1: linear " + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "site"),
			Device: rapid.SampledFrom([]string{"H100", "H200"}).Draw(t, "device"),
			Driver: rapid.SampledFrom([]string{"580", "590"}).Draw(t, "driver"),
			Best:   rapid.StringMatching(`gemv [0-9]x32/[0-9] of [0-9]`).Draw(t, "best"),
			Micros: float64(rapid.IntRange(1, 1e6).Draw(t, "ns")) / 1e3,
			Of:     rapid.IntRange(1, 20).Draw(t, "of"),
			When:   time.Unix(rapid.Int64Range(1, 1000).Draw(t, "when"), 0).UTC(),
		}
		if rapid.Bool().Draw(t, "two") {
			r.Next, r.NextMicros = "gemv 1x32/<&>", 2*r.Micros
		}
		return r
	}), 0, 6).Draw(t, "rows")
	return tuning.Merge(nil, list) // of the same key, one
})

func TestRowsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rows.Draw(t, "rows")
		var b bytes.Buffer
		if err := tuning.Encode(&b, want); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n != len(want) {
			t.Fatalf("%d lines for %d rows", n, len(want))
		}
		got, err := tuning.Decode(bytes.NewReader(b.Bytes()))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, want %v: %v", got, want, err)
		}
	})
}

// TestMerge: every key of either file is there once, in order, with its newest row; merging
// again changes nothing; and the order of merging does not matter but between equally old rows.
func TestMerge(t *testing.T) {
	key := func(r tuning.Row) string { return r.Site + r.Device + r.Driver }
	rapid.Check(t, func(t *rapid.T) {
		a, b := rows.Draw(t, "a"), rows.Draw(t, "b")
		newest, tie := map[string]tuning.Row{}, false
		for _, r := range slices.Concat(a, b) {
			old, ok := newest[key(r)]
			tie = tie || ok && old.When.Equal(r.When)
			if !ok || !r.When.Before(old.When) {
				newest[key(r)] = r
			}
		}
		got := tuning.Merge(a, b)
		if len(got) != len(newest) {
			t.Fatalf("%d rows, want %d", len(got), len(newest))
		}
		for _, r := range got {
			if r != newest[key(r)] {
				t.Fatalf("%v, want %v", r, newest[key(r)])
			}
		}
		if !slices.IsSortedFunc(got, func(x, y tuning.Row) int {
			return slices.Compare([]string{x.Site, x.Device, x.Driver}, []string{y.Site, y.Device, y.Driver})
		}) {
			t.Fatalf("not in order: %v", got)
		}
		if again := tuning.Merge(got, b); !reflect.DeepEqual(again, got) {
			t.Fatalf("merged again: %v, want %v", again, got)
		}
		if swapped := tuning.Merge(b, a); !tie && !reflect.DeepEqual(swapped, got) {
			t.Fatalf("merged the other way: %v, want %v", swapped, got)
		}
	})
}

const good = `{"site":"decode/1: linear","device":"d","driver":"1","best":"gemv 1x32/","us":1.5,"of":2,"when":"2026-01-01T00:00:00Z"}`

func TestHostileFiles(t *testing.T) {
	for want, text := range map[string]string{
		"line 1: unexpected EOF":              `{"site":"x`,
		"line 1: invalid character":           "zinccpln",
		`line 1: json: unknown field "speed"`: `{"speed":1}`,
		"line 1: site, device, driver":        `{"us":1}`,
		"line 2: site, device, driver":        good + "\n{}",
		"line 2: the key of an earlier":       good + "\n" + good,
		"line 1: more than one value":         good + good,
		"line 1: us: 0 is no time":            strings.Replace(good, "1.5", "0", 1),
		"line 1: us: -1 is no time":           strings.Replace(good, "1.5", "-1", 1),
		"line 1: next_us: 0 is no time":       strings.Replace(good, `"of"`, `"next":"x","of"`, 1),
		"line 1: of: 0 candidates":            strings.Replace(good, `"of":2`, `"of":0`, 1),
		"line 1: when is missing":             strings.Replace(good, `,"when":"2026-01-01T00:00:00Z"`, "", 1),
		"line 1: parsing time":                strings.Replace(good, "2026", "soon", 1),
		"line 1: a control character":         strings.Replace(good, "linear", `\u001b[31m`, 1),
		"line 1: bufio.Scanner: token too":    `{"site":"` + strings.Repeat("x", 1<<17),
		"line 2: EOF":                         good + "\n\n" + good,
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := tuning.Read(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := tuning.Decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := tuning.Encode(&b, rows); err != nil {
			t.Fatal(err)
		}
		again, err := tuning.Decode(&b)
		if err != nil || len(again) != len(rows) {
			t.Fatalf("%d rows became %d: %v", len(rows), len(again), err)
		}
	})
}

// TestLookup: files that are named count more than what comes behind them, newer rows more
// than older ones of other devices.
func TestLookup(t *testing.T) {
	row := func(site, device, best string, day int) tuning.Row {
		return tuning.Row{Site: site, Device: device, Driver: "1", Best: best, Micros: 1, Of: 2, When: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)}
	}
	table := tuning.NewTable(
		[]tuning.Row{row("a", "d", "mine", 1)},
		[]tuning.Row{row("a", "d", "theirs", 9), row("b", "d", "new", 5), row("b", "e", "old", 4)},
	)
	for site, want := range map[string]string{"a": "mine", "b": "new", "c": ""} {
		if r, ok := table.Lookup(site); r.Best != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", site, r.Best, want)
		}
	}
	if _, ok := (*tuning.Table)(nil).Lookup("a"); ok {
		t.Error("no table has a row")
	}
}

func TestDecide(t *testing.T) {
	type times map[string][]any // by entry, candidate and us by turns
	for _, c := range []struct {
		name  string
		times times
		want  map[string]string
	}{
		{"fastest", times{"decode/1": {"a/1", 9.0, "a/2", 5.0, "a/3", 7.0}}, map[string]string{"decode/1": "a/2 then a/3"}},
		{"within the margin", times{"decode/1": {"a/1", 9.0, "a/2", 8.95}}, map[string]string{"decode/1": "a/1 then a/2"}},
		{"only one", times{"decode/1": {"a/", 9.0}}, map[string]string{"decode/1": "a/ then "}},
		{"one order for all widths", times{
			"decode/1": {"a/1", 9.0, "b/1", 5.0},
			"decode/8": {"a/1", 1.0, "b/1", 30.0, "b/2", 20.0},
		}, map[string]string{"decode/1": "b/1 then a/1", "decode/8": "b/2 then b/1"}},
		{"prompts are free", times{
			"decode/1":   {"a/1", 9.0, "b/1", 5.0},
			"prefill/48": {"a/1", 1.0, "b/1", 30.0},
		}, map[string]string{"decode/1": "b/1 then a/1", "prefill/48": "a/1 then b/1"}},
	} {
		var list []tuning.Timing
		for _, entry := range []string{"prefill/48", "decode/8", "decode/1"} { // whatever the order
			for i := 0; i < len(c.times[entry]); i += 2 {
				list = append(list, tuning.Timing{Site: entry + ": linear", Candidate: c.times[entry][i].(string), Micros: c.times[entry][i+1].(float64)})
			}
		}
		got := tuning.Decide(list, 0.01)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d rows", c.name, len(got))
		}
		for _, r := range got {
			entry, _, _ := strings.Cut(r.Site, ": ")
			if have := fmt.Sprintf("%s then %s", r.Best, r.Next); have != c.want[entry] || r.Of != len(c.times[entry])/2 {
				t.Errorf("%s: %s has %s of %d, want %s", c.name, entry, have, r.Of, c.want[entry])
			}
		}
	}
}

// TestDecideByCycles: of candidates that are equally fast the least busy one is best, if it is so by the margin.
func TestDecideByCycles(t *testing.T) {
	of := func(candidate string, us, busy float64) tuning.Timing {
		return tuning.Timing{Site: "decode/1: linear", Candidate: candidate, Micros: us, Busy: busy}
	}
	rows := tuning.Decide([]tuning.Timing{of("a/1", 9, 8), of("a/2", 9, 5), of("a/3", 9, 4.1), of("a/4", 9.01, 1)}, 0.03)
	if len(rows) != 1 || rows[0].Best != "a/2" || rows[0].Next != "a/1" {
		t.Errorf("%+v, want a/2, then a/1", rows)
	}
}

// TestSiteOfStrips: slices of other rows are alike wherever they begin, those of what the group makes are not.
func TestSiteOfStrips(t *testing.T) {
	site := func(first int, group string) string {
		p, err := ir.Parse(fmt.Sprintf(`zir 1
stage fuse
model arch="toy" name="" path="" source="" target="" ctx=64 slots=1 layers=1

weight @w : f16[24, 32]
step @a : f32[T, 32]
step @b : f32[T, 96]

func "decode/1" rows=1 sequences=many run=1 class=exact {
  group "g" stage=0 waits=0 {
    %%0 = linear @a, @w : f32[T, 24]
    %%1 = slice %s {first=%d, width=12} : f32[T, 12]
    %%2 = mul %%1, %%1 : io f32[T, 12]
  }
}
`, group, first))
		if err != nil {
			t.Fatal(err)
		}
		return tuning.SiteOf(p.Funcs[0], p.Funcs[0].Groups[0])
	}
	if a, b := site(0, "@b"), site(48, "@b"); a != b || !strings.Contains(a, "slice f32[T, 96] width=12") {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := site(0, "%0"), site(12, "%0"); a == b {
		t.Errorf("%q", a)
	}
}
