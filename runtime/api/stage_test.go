package api

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/progress"
)

// TestStage: while a model is compiled and loaded, health, load and requests that waited long enough say so, and how
// far it is.
func TestStage(t *testing.T) {
	compiling, load, begun := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	var x *fixture
	x = newFixture(t, func(o *Options) {
		o.QueueTimeout = 50 * time.Millisecond
		o.Served = []*Served{{Names: []string{"gopher"}, Ctx: 2048, Open: func(ctx context.Context) (*Model, error) {
			task := progress.From(ctx).Begin("compiling")
			task.At(progress.Report{Part: "building kernels", Done: 45, Total: 100})
			begun <- struct{}{}
			<-compiling
			task.Done()
			progress.From(ctx).Begin("loading")
			begun <- struct{}{}
			<-load
			return x.model()
		}}}
	})
	health := func(want int, message any) {
		t.Helper()
		w := httptest.NewRecorder()
		x.server.ServeHTTP(w, httptest.NewRequest("GET", "/health", nil))
		if w.Code != want {
			t.Fatalf("health is %d, want %d: %s", w.Code, want, w.Body)
		}
		if want != 200 && (get(t, w.Body.String(), "error", "message") != message || w.Header().Get("Retry-After") != "1") {
			t.Errorf("%v, want %v; to be asked again in %q s", get(t, w.Body.String(), "error", "message"), message, w.Header().Get("Retry-After"))
		}
	}
	health(503, "the model is loading")
	const far = "compiling, 45 %, building kernels"
	go x.server.Load(t.Context(), "")
	<-begun
	h, status, b := x.head("/v1/chat/completions", body(""))
	if status != 503 || get(t, b, "error", "code") != "loading" || get(t, b, "error", "message") != "the model gopher is not loaded yet: "+far || h.Get("Retry-After") != "1" {
		t.Errorf("a request: %d %s, Retry-After %q", status, b, h.Get("Retry-After"))
	}
	health(503, "the model gopher is not loaded yet: "+far)
	if _, b := x.do("GET", "/load", ""); get(t, b, "models", 0, "status") != "loading" || get(t, b, "models", 0, "stage") != far || get(t, b, "models", 0, "progress") != 0.45 {
		t.Error(b)
	}
	close(compiling)
	<-begun
	health(503, "the model gopher is not loaded yet: loading")
	if _, b := x.do("GET", "/load", ""); get(t, b, "models", 0, "stage") != "loading" || get(t, b, "models", 0, "progress") != nil {
		t.Error(b)
	}
	close(load)
	x.settled()
	for end := time.Now().Add(time.Minute); x.server.ready() != nil && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	health(200, nil)
	if _, b := x.do("GET", "/load", ""); get(t, b, "models", 0, "stage") != nil {
		t.Error(b)
	}
}
