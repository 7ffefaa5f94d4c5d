package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestModelEvents: what an editor reads that follows llama-server's router: states as objects, what the template can
// do, and changes as they come.
func TestModelEvents(t *testing.T) {
	x := newFixture(t, func(o *Options) {
		o.Served = append(o.Served, &Served{Names: []string{"odd"}, Open: func(context.Context) (*Model, error) { return nil, errors.New("no such op") }})
	})
	resp, err := http.Get(x.http.URL + "/models/sse")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	next := func() (e modelEvent) {
		t.Helper()
		for in.Scan() {
			if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				return e
			}
		}
		t.Fatal("the stream has ended")
		return e
	}
	ends := func(model string) modelEvent { // loading may be over before anybody looks
		t.Helper()
		e := next()
		if e.Data != nil && e.Data.Status == "loading" {
			e = next()
		}
		if e.Model != model {
			t.Errorf("%+v, want one of %s", e, model)
		}
		return e
	}
	x.do("POST", "/v1/chat/completions", body(""))
	if e := ends("gopher"); e.Event != "status_change" || e.Data.Status != "loaded" || e.Data.Exit != 0 {
		t.Errorf("%+v", e)
	}
	x.do("POST", "/v1/chat/completions", strings.Replace(body(""), "gopher", "odd", 1))
	if e := ends("odd"); e.Data.Status != "unloaded" || e.Data.Exit == 0 {
		t.Errorf("%+v %+v", e, e.Data)
	}
	_, b := x.do("GET", "/v1/models", "")
	if get(t, b, "data", 0, "status", "value") != "loaded" || get(t, b, "data", 1, "status", "value") != "unloaded" || get(t, b, "data", 1, "status", "failed") != true {
		t.Error(b)
	}
	if _, b := x.do("GET", "/props?model=gopher", ""); get(t, b, "chat_template_caps", "supports_tools") != true || get(t, b, "default_generation_settings", "n_ctx") != 2048.0 {
		t.Error(b)
	}
	x.server.Offer(x.server.pool.all()[:1])
	if e := ends("*"); e.Event != "models_reload" {
		t.Errorf("%+v", e)
	}
}

// TestAnthropicModels: a client of Anthropic's API gets the list in its form.
func TestAnthropicModels(t *testing.T) {
	x := newFixture(t, nil)
	_, b := x.do("GET", "/v1/models", "", "anthropic-version", "2023-06-01")
	if get(t, b, "data", 0, "type") != "model" || get(t, b, "data", 0, "created_at") != "2023-11-14T22:13:20Z" || get(t, b, "first_id") != "gopher" || get(t, b, "has_more") != false {
		t.Error(b)
	}
	if _, b = x.do("GET", "/v1/models/gopher", "", "anthropic-version", "2023-06-01"); get(t, b, "display_name") != "gopher" {
		t.Error(b)
	}
	if _, b = x.do("GET", "/v1/models/gopher", ""); get(t, b, "object") != "model" {
		t.Error(b)
	}
}
