package grammar

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// listOf writes n texts, with the number of each in them, as a list of JSON.
func listOf(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "%d", fmt.Sprint(i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// TestHostileComplements: schemas whose complements are made to take long do not, nor much memory. Those that are
// refused are so for a keyword at a path.
func TestHostileComplements(t *testing.T) {
	var twice, deep strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&twice, `"d%d":{"not":{"anyOf":[{"$ref":"#/$defs/d%d"},{"properties":{"a":{"$ref":"#/$defs/d%d"}}}]}},`, i, i+1, i+1)
	}
	deep.WriteString(strings.Repeat(`{"not":{"properties":{"a":`, 120) + `{"type":"string"}` + strings.Repeat(`}}}`, 120))
	large := strings.Repeat("x", 40)
	slow := map[string]bool{"oneOf of patterns": true, "oneOf of 1,000 objects": true, "oneOf of 1,000 numbers": true, "contains": true}
	for _, c := range []struct{ name, schema string }{
		{"pattern", `{"type":"string","not":{"pattern":"^(([ab]*a[ab]{300})|([ab]*b[ab]{300}))$"},"minLength":1000}`},
		{"patterns", `{"type":"string","allOf":` + listOf(20, `{"not":{"pattern":"^[ab]*a[ab]{%d}$"}}`) + `}`},
		{"oneOf of patterns", `{"type":"string","oneOf":` + listOf(24, `{"pattern":"a.{%d}b"}`) + `}`},
		{"oneOf of 1,000 objects", `{"oneOf":` + listOf(1000, `{"type":"object","properties":{"k":{"pattern":"^x%d.*y"}},"required":["a%d"]}`) + `}`},
		{"oneOf of 1,000 numbers", `{"oneOf":` + listOf(1000, `{"type":"integer","minimum":%d}`) + `}`},
		{"anyOf of 1,000 complements", `{"anyOf":` + listOf(1000, `{"not":{"required":["a%d"],"properties":{"b%d":{"type":"string"}}}}`) + `}`},
		{"allOf of 1,000 complements", `{"type":"object","allOf":` + listOf(1000, `{"not":{"required":["a%d"],"properties":{"b%d":{"type":"string"}}}}`) + `}`},
		{"product", `{"not":{"anyOf":` + listOf(40, `{"allOf":[{"minLength":%d},{"pattern":"a{%d}"},{"required":["a%d"]}]}`) + `}}`},
		{"references", `{"$ref":"#/$defs/d0","$defs":{` + twice.String() + `"d2000":{"type":"string"}}}`},
		{"itself", `{"$ref":"#/$defs/a","$defs":{"a":{"not":{"properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/a"}},"required":["x"]}}}}`},
		{"deep", deep.String()},
		{"conditions", `{"allOf":` + listOf(60, `{"if":{"properties":{"a%d":{"pattern":"^x"}}},"then":{"required":["b%d"]},"else":{"not":{"required":["c%d"]}}}`) + `}`},
		{"contains", `{"type":"array","allOf":` + listOf(8, `{"contains":{"pattern":"a.{%d}b"},"maxContains":3}`) + `}`},
		{"many contains", `{"type":"array","allOf":` + listOf(100, `{"not":{"contains":{"const":%d}}}`) + `}`},
		{"contains of counts", `{"type":"array","contains":{"type":"integer"},"minContains":100000,"not":{"contains":{"type":"string"},"minContains":99999}}`},
		{"1 MiB of enum", `{"not":{"enum":` + listOf(20000, `"`+large+`%d"`) + `}}`},
		{"1 MiB of oneOf", `{"oneOf":` + listOf(15000, `{"const":"`+large+`%d"}`) + `}`},
		{"1 MiB of properties", `{"not":{"type":"object","properties":{` + strings.Trim(listOf(12000, `"`+large+`%d":{"type":"integer"}`), "[]") + `}}}`},
	} {
		if testing.Short() && slow[c.name] {
			continue
		}
		runtime.GC()
		began, before := time.Now(), heap()
		most := before
		stop, sampled := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(sampled)
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					most = max(most, heap())
				}
			}
		}()
		g, _, err := Schema([]byte(c.schema), SchemaOptions{})
		read := time.Since(began)
		if err == nil {
			m := g.Match(tiny())
			m.Mask()
			g.Check([]byte(`{"a1":3,"b1":4,"k":"x1abababababababababy1"}`))
			g.Check([]byte(`["` + strings.Repeat("ab", 2000) + `",1,2,3]`))
			g.Check([]byte(`"` + strings.Repeat("ab", 2000) + `"`))
			t.Logf("%s, first token: %v", c.name, m.Err())
		}
		took := time.Since(began)
		close(stop)
		<-sampled
		var e *SchemaError
		if err != nil && (!errors.As(err, &e) || e.Keyword == "") {
			t.Errorf("%s: no keyword in %v", c.name, err)
		}
		if took > 20*time.Second { // 5 s on a machine that does nothing else
			t.Errorf("%s took %v: %v", c.name, took, err)
		}
		if used := most - before; used > 256<<20 {
			t.Errorf("%s took %d MiB: %v", c.name, used>>20, err)
		}
		t.Logf("%s, %d kB: %d MiB, %v and %v: %.200s", c.name, len(c.schema)>>10, (most-before)>>20, read.Round(time.Millisecond), (took - read).Round(time.Millisecond), fmt.Sprint(err))
	}
}
