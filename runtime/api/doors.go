package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// doors keeps the connections of a server within a number. When one more comes, the one goes that has waited for
// longest: without a request, sending one, or not reading its reply. Those whose request is worked on stay.
type doors struct {
	most int
	mu   sync.Mutex
	all  map[net.Conn]*door
}

// A door is a connection.
type door struct {
	doors *doors
	since time.Time // its last change
	busy  bool
}

type doorKey struct{}

// HTTP returns a server for s that bounds connections and the time of headers.
func (s *Server) HTTP() *http.Server {
	d := &doors{most: s.o.Connections, all: map[net.Conn]*door{}}
	return &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug), ConnState: d.changed,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, doorKey{}, d.of(c))
		},
	}
}

func (d *doors) of(c net.Conn) *door {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all[c] == nil {
		d.all[c] = &door{doors: d, since: time.Now()}
	}
	return d.all[c]
}

func (d *doors) changed(c net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		d.mu.Lock()
		delete(d.all, c)
		d.mu.Unlock()
		return
	}
	d.of(c).touch()
	if state == http.StateNew {
		if waits := d.crowded(); waits != nil {
			waits.Close()
		}
	}
}

// crowded returns the connection that has to go, nil if there is room.
func (d *doors) crowded() (waits net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) <= d.most {
		return nil
	}
	for c, one := range d.all {
		if !one.busy && (waits == nil || one.since.Before(d.all[waits].since)) {
			waits = c
		}
	}
	delete(d.all, waits)
	return waits
}

func (o *door) touch() {
	o.doors.mu.Lock()
	defer o.doors.mu.Unlock()
	o.since = time.Now()
}

// busy says whether the request of a connection is worked on.
func (c *call) busy(on bool) {
	if o, ok := c.r.Context().Value(doorKey{}).(*door); ok {
		o.doors.mu.Lock()
		defer o.doors.mu.Unlock()
		o.busy = on
	}
}

// connections is how many connections a server has at most that may open so many files: others are for models and
// devices.
func connections(files uint64) int {
	const most, others = 4096, 64
	return int(min(most, max(16, int64(min(files, 1<<20))*3/4-others)))
}
