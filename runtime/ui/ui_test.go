package ui

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Four files, small, with nothing from elsewhere and nothing inline.
func TestPage(t *testing.T) {
	size := 0
	for path, page := range pages {
		w := httptest.NewRecorder()
		Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		body := w.Body.String()
		size += len(body)
		h := w.Result().Header
		if w.Code != 200 || h.Get("Content-Type") != page.media || h.Get("Content-Security-Policy") != Policy || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "src=\"http", "href=\"http", "@import", "url(", " style=", "onclick=\""} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
		again := httptest.NewRequest("GET", path, nil)
		again.Header.Set("If-None-Match", h.Get("ETag"))
		w = httptest.NewRecorder()
		Handler().ServeHTTP(w, again)
		if w.Code != 304 {
			t.Errorf("%s is sent again: %d", path, w.Code)
		}
	}
	if len(pages) != 4 || size > 90_000 {
		t.Errorf("%d files of %d bytes, want 4 of at most 90,000 together", len(pages), size)
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest("GET", "/other", nil))
	if w.Code != 404 {
		t.Errorf("/other: %d", w.Code)
	}
}
