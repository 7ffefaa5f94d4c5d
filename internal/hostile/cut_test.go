package hostile

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/trust"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/model"
)

// ownModel copies gopher, and writes its plan beside it; with embedded weights the plan has them.
func ownModel(t *testing.T, on string, embed bool) (file, plan string) {
	t.Helper()
	data, err := os.ReadFile(modelPath(t, "gopher"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, plan = filepath.Join(dir, "gopher.gguf"), filepath.Join(dir, "gopher.bin")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	to, err := target.Lookup(on)
	if err != nil {
		t.Fatal(err)
	}
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f},
		codegen.Options{Target: to, Import: frontend.Options{Ctx: 64, KV: ir.F16, MaxRows: 1}, Embed: embed})
	if err != nil {
		t.Fatal(err)
	}
	d, err := plans.WriteFile(plan, r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	trust.Accept(d)
	return file, plan
}

// cut leaves the first part of a file.
func cut(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/4); err != nil {
		t.Fatal(err)
	}
}

// TestCutWhileLoading cuts the file with the weights behind the header that was read, before a device gets them.
func TestCutWhileLoading(t *testing.T) {
	for _, c := range []struct {
		on, device string
		embed      bool
	}{{"cpu", "cpu", false}, {"cpu", "cpu", true}, {"llvmpipe", "vulkan", false}, {"host", "host", true}} {
		file, path := ownModel(t, c.on, c.embed)
		plan, err := plans.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		src, err := plans.OpenSource(plan, path, "")
		if err != nil {
			t.Fatal(err)
		}
		holds := file
		if c.embed {
			holds = path
		}
		cut(t, holds)
		x, err := device.Open(t.Context(), c.device, plan, src, device.Options{})
		if err == nil {
			x.Close()
		}
		if !errors.Is(err, mapped.ErrCut) || !strings.Contains(err.Error(), holds) {
			t.Errorf("%s, embedded %v: %v", c.on, c.embed, err)
		}
		if err := errors.Join(src.Close(), plan.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestCutBehindServer cuts the file of a model that the oracle serves, which reads weights as it needs them: requests
// fail, the server lives, and the model is served again when its file is whole.
func TestCutBehindServer(t *testing.T) {
	file, path := ownModel(t, "host", false)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	open := func(ctx context.Context) (*api.Model, error) {
		o, err := model.Open(ctx, path, model.Options{})
		if err != nil {
			return nil, err
		}
		tok, err := o.Tokenizer()
		if err != nil {
			return nil, err
		}
		e, err := engine.New(o.Plan, o.Exec, tok, engine.Options{})
		if err != nil {
			return nil, err
		}
		return &api.Model{Header: o.Plan.Header, Tokenizer: tok, Engine: e, NoChat: "no template", Hash: strings.Repeat("0", 64),
			Close: func() error { o.Close(); return nil }}, nil
	}
	s := api.New(api.Options{Served: []*api.Served{{Names: []string{"gopher"}, Path: path, Ctx: 64, Open: open}}})
	defer func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "http://localhost/v1/completions", strings.NewReader(`{"prompt": "func", "max_tokens": 2}`))
		r.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if err := s.Load(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	cut(t, file)
	if code, body := ask(); code < 500 {
		t.Errorf("behind a file that was cut: %d %s", code, body)
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	code, body := ask() // until the model is unloaded; then its file is opened again
	for until := time.Now().Add(10 * time.Second); code != 200 && time.Now().Before(until); code, body = ask() {
		time.Sleep(10 * time.Millisecond)
	}
	if code != 200 {
		t.Errorf("with a whole file: %d %s", code, body)
	}
	select {
	case err := <-s.Lost():
		t.Errorf("the server ends: %v", err)
	default:
	}
}
