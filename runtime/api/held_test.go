package api

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// TestHeld: what a value has behind it counts where it is short in JSON, too, and where an entry before it has it.
func TestHeld(t *testing.T) {
	type node struct {
		name string
		next *node
		list []any
		ids  map[string][]int32
	}
	const own, str, word = int64(unsafe.Sizeof(node{})), int64(unsafe.Sizeof("")), int64(unsafe.Sizeof(uintptr(0)))
	for _, c := range []struct {
		what string
		of   any
		want int64
	}{
		{"nothing", node{}, 0},
		{"a string", node{name: "four"}, 4},
		{"another", node{next: &node{name: "four"}}, own + 4},
		{"room of a slice", node{list: make([]any, 0, 3)}, 3 * 2 * word},
		{"what is in it", node{list: []any{"four", nil, 1.0}}, 3*2*word + str + 4 + 8},
		{"a map", node{ids: map[string][]int32{"k": {1, 2}}}, 16 + str + 1 + 3*word + 8},
	} {
		if got := held(reflect.ValueOf(c.of)); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.what, got, c.want)
		}
	}
	raw := []byte(`{"type":"additional_tools","role":"developer","tools":[` + strings.TrimSuffix(strings.Repeat(`{"type":"x"},`, 1000), ",") + `]}`)
	var item inputItem
	if err := decode(raw, &item, nil); err != nil {
		t.Fatal(err)
	}
	least := 1000 * int64(reflect.TypeFor[responseTool]().Size())
	if got := held(reflect.ValueOf(item)); got < least {
		t.Errorf("%d bytes of JSON hold %d, want %d at least", len(raw), got, least)
	}
}

// TestOneExpiry: a model that is used again and again has one timer.
func TestOneExpiry(t *testing.T) {
	p, l := &pool{}, &loaded{model: &Model{}, keep: new(time.Hour), used: time.Now()}
	p.expire(l)
	first := l.expiry
	if first == nil {
		t.Fatal("nothing looks whether the model's time is over")
	}
	defer first.Stop()
	if p.expire(l); l.expiry != first {
		t.Error("a second timer")
	}
}
