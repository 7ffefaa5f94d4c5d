package api

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// A replyWriter writes a reply in parts, each of which the client must take in time, or the connection is given up.
type replyWriter struct {
	http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	code  int // of the reply; 0: it has not begun
	mu    sync.Mutex
	given bool // up
}

// replyPart is how much of a reply a client must take at a time, in bytes.
const replyPart = 64 << 10

func newReplyWriter(w http.ResponseWriter, stall time.Duration) *replyWriter {
	r := &replyWriter{ResponseWriter: w, rc: http.NewResponseController(w), stall: stall}
	r.hurry() // reading a body may write, too: 100 Continue
	return r
}

// hurry gives the next write its time. A recorder of a test has no deadlines.
func (w *replyWriter) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.given {
		w.rc.SetWriteDeadline(time.Now().Add(w.stall))
	}
}

func (w *replyWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *replyWriter) Write(p []byte) (n int, err error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	for {
		part := p[n:min(len(p), n+replyPart)]
		w.hurry()
		m, err := w.ResponseWriter.Write(part)
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// FlushError is for http.ResponseController.
func (w *replyWriter) FlushError() error {
	w.hurry()
	return w.rc.Flush()
}

// give gives the connection up: a read or a write that waits ends, and none begins. It may be called while others use
// w.
func (w *replyWriter) give() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given = true
	w.rc.SetReadDeadline(time.Unix(1, 0))
	w.rc.SetWriteDeadline(time.Unix(1, 0))
}

// Unwrap is for http.ResponseController.
func (w *replyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// writeJSON sends v. Text is not escaped for HTML: the media type says what it is.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.Encode(v)
}
