// Package ui is the page at which people talk to a server: four files, with nothing
// from elsewhere.
package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"time"
)

//go:embed page
var files embed.FS

// Policy is what the page may do: nothing but with what comes from its own server.
const Policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var pages = map[string]struct{ file, media string }{
	"/":          {"page/index.html", "text/html; charset=utf-8"},
	"/app.js":    {"page/app.js", "text/javascript; charset=utf-8"},
	"/style.css": {"page/style.css", "text/css; charset=utf-8"},
	"/icon.svg":  {"page/icon.svg", "image/svg+xml"},
}

// Handler serves the page: /, /app.js, /style.css and /icon.svg.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		content, err := files.ReadFile(page.file)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		sum := sha256.Sum256(content)
		h := w.Header()
		h.Set("Content-Type", page.media)
		h.Set("Content-Security-Policy", Policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
}
