package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/hub"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/library"
)

// TestServeFolder holds that a folder is searched with all below it, that models may come and go, and that broken ones
// stop nobody.
func TestServeFolder(t *testing.T) {
	dir := t.TempDir()
	model, err := os.ReadFile("../../testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, b, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	put("a.gguf", model)
	put("deep/er/b.gguf", model)
	put("deep/a.gguf", model)
	put("bad.gguf", []byte("GGUF"))
	put("half.gguf", model[:len(model)/2])
	put("text.gguf", []byte("hello"))
	put("notes.txt", []byte("hello"))
	put("big-00001-of-00003.gguf", model)
	put("big-00003-of-00003.gguf", model)
	put("plan.bin", []byte("no plan"))
	put("hf.co/acme/Tiny/tiny-Q8_0.gguf", model)
	put("loading.gguf.part", model)
	var log bytes.Buffer
	s := &serveFlags{log: slog.New(slog.NewTextHandler(&log, nil))}
	sh, err := s.shelf(t.Context(), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	look := func(want ...string) []*api.Served {
		t.Helper()
		all := sh.look()
		var got []string
		for _, m := range all {
			state := strings.Join(m.Names, "|")
			if m.Broken != "" {
				state += ": " + strings.ReplaceAll(m.Broken, dir+"/", "")
			}
			got = append(got, state)
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("serves:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return all
	}
	broken := []string{
		"bad: bad.gguf: file ends inside the header: 4 bytes wanted at 4, file has 4", "big: big-00002-of-00003.gguf is missing", "text: text.gguf: not a zincc plan, nor a GGUF file, but a text",
		"plan: plan.bin: not a zincc plan, nor a GGUF file, but a text",
	}
	first := look(append([]string{"a", "b", "deep/a", "hf.co/acme/Tiny:Q8_0|tiny-Q8_0",
		`half: half.gguf: tensor "blk.1.ffn_up.weight": data ends at 4364480, file has 4221280 bytes: the download or copy did not end`}, broken...)...)
	if n := strings.Count(log.String(), "level=WARN"); n != 5 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	log.Reset()
	put("half.gguf", model)
	put("later/c.gguf", model)
	if err := os.Remove(filepath.Join(dir, "deep/er/b.gguf")); err != nil {
		t.Fatal(err)
	}
	second := look(append([]string{"a", "half", "c", "deep/a", "hf.co/acme/Tiny:Q8_0|tiny-Q8_0"}, broken...)...)
	if first[0] != second[0] || first[0].Names[0] != "a" {
		t.Error("a model that did not change is another")
	}
	if strings.Contains(log.String(), "bad.gguf") || !strings.Contains(log.String(), "gone") {
		t.Errorf("log: %s", log.String())
	}
	put("a.gguf", model[:len(model)-1])
	if err := os.Chtimes(filepath.Join(dir, "a.gguf"), time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if third := sh.look(); third[0] == second[0] || third[0].Broken == "" {
		t.Error("a model that changed is the same")
	}

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{link}, {filepath.Join(dir, "half.gguf"), link}} {
		sh, err := (&serveFlags{log: slog.New(slog.NewTextHandler(io.Discard, nil))}).shelf(t.Context(), args)
		if err != nil || len(sh.look()) < 9 {
			t.Errorf("%v: %d models, %v", args, len(sh.look()), err)
		}
	}
	for args, want := range map[string]string{
		filepath.Join(dir, "bad.gguf"): "bad.gguf: file ends", filepath.Join(dir, "big-00001-of-00003.gguf"): "", filepath.Join(dir, "half.gguf") + " " + dir + "/deep/../half.gguf": "are both called half",
		filepath.Join(dir, "none.gguf"): "no such file",
	} {
		_, err := s.shelf(t.Context(), strings.Fields(args))
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestServeLibrary holds that what clients have fetched is served at once, and what they have deleted is not.
func TestServeLibrary(t *testing.T) {
	model, err := os.ReadFile("../../testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	models := &hub.Server{Tags: map[string][]byte{"library/gopher:latest": model}}
	models.Start()
	t.Cleanup(models.Close)
	t.Setenv("ZINCRUN_REGISTRY", models.URL)
	s := &serveFlags{log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	sh, err := s.shelf(t.Context(), []string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	sh.server = api.New(api.Options{Served: sh.look(), Folder: true, Library: sh.library(), Loopback: true})
	ask := func(method, path, body, want string) {
		t.Helper()
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		sh.server.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %d %s, want %s", method, path, w.Code, w.Body, want)
		}
	}
	ask("POST", "/api/pull", `{"model": "none"}`, "the registry has no model of this name")
	ask("POST", "/api/pull", `{"model": "../../etc/x"}`, "error")
	ask("POST", "/api/pull", `{"model": "gopher"}`, `"status":"success"`)
	ask("GET", "/api/tags", "", `"name":"gopher:latest"`)
	ask("GET", "/v1/models", "", `"id":"gopher:latest"`)
	ask("DELETE", "/api/delete", `{"model": "gopher:latest"}`, "")
	ask("GET", "/api/tags", "", `{"models":[]}`)
	if left := library.Folder(sh.folders[0].dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if only := (&shelf{}).library(); only != nil {
		t.Error("files alone are a library")
	}
}
