package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestOffer holds that what is served may change: models that stay keep loaded, those that go are unloaded when nobody
// uses them.
func TestOffer(t *testing.T) {
	var x *fixture
	closed := make(chan string, 4)
	model := func(name string) *Served {
		return &Served{Names: []string{name}, Open: func(context.Context) (*Model, error) {
			m, err := x.model()
			if err == nil {
				m.Engine = newFake(x.tok)
				m.Close = func() error { closed <- name; return nil }
			}
			return m, err
		}}
	}
	a, b := model("a"), model("b")
	x = newFixture(t, func(o *Options) { o.Served, o.Folder = []*Served{a}, true })
	ask := func(name string, want int) {
		t.Helper()
		if status, reply := x.do("POST", "/v1/chat/completions", strings.Replace(body(""), "gopher", name, 1)); status != want {
			t.Errorf("%s: %d %s", name, status, reply)
		}
	}
	ask("a", 200)
	ask("b", 404)
	x.server.Offer([]*Served{a, b})
	ask("b", 200)
	x.server.Offer([]*Served{b})
	ask("a", 404)
	select {
	case name := <-closed:
		if name != "a" {
			t.Errorf("%s was unloaded", name)
		}
	case <-time.After(5 * time.Second):
		t.Error("a stays loaded")
	}
	ask("b", 200)
	x.server.Offer(nil)
	if status, reply := x.do("POST", "/v1/chat/completions", body("")); status != 404 || !strings.Contains(reply, "there is no model yet") {
		t.Errorf("%d %s", status, reply)
	}
	if status, _ := x.do("GET", "/health", ""); status != 200 {
		t.Errorf("an empty folder is not ready: %d", status)
	}
}

func TestBrokenModels(t *testing.T) {
	x := newFixture(t, func(o *Options) {
		o.Served = append(o.Served, &Served{Names: []string{"half"}, Broken: "part 2 of 3 is missing"},
			&Served{Names: []string{"odd"}, Open: func(context.Context) (*Model, error) { return nil, errors.New("no such op") }})
	})
	ask := func(name, want string) {
		t.Helper()
		status, reply := x.do("POST", "/v1/chat/completions", strings.Replace(body(""), "gopher", name, 1))
		if status < 500 || !strings.Contains(reply, want) {
			t.Errorf("%s: %d %s", name, status, reply)
		}
	}
	ask("half", "part 2 of 3 is missing")
	ask("odd", "internal error")
	_, b := x.do("GET", "/v1/models", "")
	for i, want := range []struct{ state, why any }{{"unloaded", nil}, {"broken", "part 2 of 3 is missing"}, {"broken", "no such op"}} {
		row := get(t, b, "data", i).(map[string]any)
		if row["state"] != want.state || row["error"] != want.why {
			t.Errorf("%v, want %v", row, want)
		}
	}
}
