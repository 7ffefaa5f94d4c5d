package jinja

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostile are templates that want much for little; each loop runs as long as it may.
var hostile = map[string]string{
	"slices of a long text":      `{% set s = 'x' * 8000000 %}{% for i in range(100000) %}{% set y = s[1:2] %}{% endfor %}`,
	"white space as a number":    `{% set s = ' ' * 8000000 %}{% for i in range(100000) %}{{ s | int }}{{ s | float }}{% endfor %}`,
	"upper case":                 `{% set s = 'x' * 8000000 %}{% for i in range(100000) %}{% set y = s.isupper() %}{% endfor %}`,
	"a prefix":                   `{% set s = 'x' * 8000000 %}{% for i in range(100000) %}{% set y = s.removeprefix('x') %}{% endfor %}`,
	"ascii":                      `{% set s = 'x' * 8000000 %}{% for i in range(100000) %}{% set y = s.isascii() %}{% endfor %}`,
	"many origins":               `{% set ns = namespace(s='') %}{% for i in range(20000) %}{% set ns.s = ns.s ~ 'a' ~ d %}{% endfor %}{% for i in range(100000) %}{% set y = ns.s[1:] %}{% endfor %}`,
	"a list of texts":            `{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = ns.l + [('x' * 100000) ~ i] %}{% endfor %}`,
	"a text that doubles":        `{% set ns = namespace(s='x') %}{% for i in range(1000) %}{% set ns.s = ns.s + ns.s %}{% endfor %}`,
	"characters":                 `{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = ('ab' * 400000) | list %}{% endfor %}`,
	"a value in itself":          `{% set ns = namespace(l=['x']) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l == (ns.l | list) }}{{ ns.l }}`,
	"calls in deep expressions":  `{% macro m() %}{{ ` + strings.Repeat("((", 20) + "m()" + strings.Repeat("|string|string|string)|string|string)", 20) + ` }}{% endmacro %}{{ m() }}`,
	"a long name":                `{% for i in range(100000) %}{{ ` + strings.Repeat("n", 200_000) + ` }}{% endfor %}`,
	"a dotted name":              `{{ 1 | ` + strings.Repeat("a.", 100_000) + `a }}`,
	"sorting":                    `{% set l = range(100000) | list %}{% for i in range(100000) %}{% set y = l | sort(reverse=true) %}{% endfor %}`,
	"keys":                       `{% set ns = namespace(d={}) %}{% for i in range(1000) %}{% set ns.d = dict(range(100000) | batch(2)) %}{% endfor %}`,
	"numbers of JSON":            `{% for i in range(1000) %}{% set y = ('[' ~ '0,' * 400000 ~ '0]') | from_json %}{% endfor %}`,
	"nested loops":               `{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}`,
	"escapes":                    `{% set s = '<' * 1000000 %}{% for i in range(1000) %}{% set y = s | escape %}{% endfor %}`,
	"a text searched for itself": `{% set s = 'a' * 4000000 %}{% set t = 'a' * 2000000 ~ 'b' %}{% for i in range(100000) %}{% set y = t in s %}{{ s.count(t) }}{{ s.find(t) }}{% endfor %}`,
}

// TestHostile: a template is refused in time and memory that its budget bounds, here a part of what little data is
// given.
func TestHostile(t *testing.T) {
	small := Limit(0)
	for name, source := range hostile {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Parse(source)
			if err != nil {
				return
			}
			vars := NewDict()
			vars.Set("d", Data("user"))
			most, stop := watchHeap()
			began := processor()
			_, err = tmpl.Render(t.Context(), vars, time.Time{}, &Budget{Steps: small.Steps / 8, Bytes: small.Bytes / 2})
			took := processor() - began
			stop()
			var refused *Error
			if !errors.As(err, &refused) {
				t.Errorf("%v", err)
			}
			if took > 2*time.Second || most() > 100<<20 {
				t.Errorf("%s, %d MiB: %v", took, most()>>20, err)
			}
		})
	}
}

// processor is the time that this process has had of processors: others of the computer do not count.
func processor() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano())
}

// watchHeap looks how large the heap becomes.
func watchHeap() (most func() uint64, stop func()) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, largest := m.HeapAlloc, uint64(0)
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&m)
				largest = max(largest, m.HeapAlloc)
			}
		}
	}()
	return func() uint64 { return max(largest, before) - before }, func() { close(end); <-ended }
}

// TestCancel: a render whose context has ended ends, long before it has taken its steps.
func TestCancel(t *testing.T) {
	for _, name := range []string{"slices of a long text", "nested loops", "a list of texts", "keys"} {
		tmpl, err := Parse(hostile[name])
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		_, err = tmpl.Render(ctx, NewDict(), time.Time{}, Limit(1<<40))
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 10*time.Second {
			t.Errorf("%s: %v in %s", name, err, took)
		}
	}
}

// TestSharedBudget: renders that share a budget take from the same.
func TestSharedBudget(t *testing.T) {
	tmpl, err := Parse(`{% for i in range(1000) %}{{ i }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	b, renders := &Budget{Steps: 20_000, Bytes: 1 << 20}, 0
	for err == nil && renders < 100 {
		_, err = tmpl.Render(t.Context(), NewDict(), time.Time{}, b)
		renders++
	}
	if want := "too many steps"; renders > 20 || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("render %d: %v", renders, err)
	}
}

// TestLongSource: what Parse takes is bounded, too.
func TestLongSource(t *testing.T) {
	for _, source := range []string{
		strings.Repeat("{{ a }}", 30_000), strings.Repeat("{", 200_000), "{{" + strings.Repeat("a.", 90_000), "{{ 'a'" + strings.Repeat(" 'a'", 50_000) + " }}",
		"{% raw %}" + strings.Repeat("{%  ", 50_000), "{{ a" + strings.Repeat(" ~ a", 50_000) + " }}", "{{ [" + strings.Repeat("1,", 100_000) + "] }}",
		"{#" + strings.Repeat("{#", 100_000), strings.Repeat("\n", 200_000) + "{%-", fmt.Sprintf("{{ %s }}", strings.Repeat("1", 200_000)), strings.Repeat("{% if a %}", 25_000),
	} {
		most, stop := watchHeap()
		began := processor()
		Parse(source)
		took := processor() - began
		stop()
		if took > time.Second || most() > 200<<20 {
			t.Errorf("%.20s...: %s, %d MiB", source, took, most()>>20)
		}
	}
	if _, err := Parse(strings.Repeat(" ", maxSource+1)); err == nil {
		t.Error("a template of any size is read")
	}
}
