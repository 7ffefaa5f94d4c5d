// Package api serves models over HTTP as OpenAI's and Anthropic's APIs do, with
// llama-server's endpoints beside them.
package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/runtime/kvevents"
)

// Options say what is served to whom. A zero limit takes the default.
type Options struct {
	Served []*Served
	// Folder: what is served may change (Offer), so that the server is ready with none of it loaded.
	Folder bool
	// AnyModel takes every name for the only model, or the only one that is loaded.
	AnyModel bool
	Library  Library // nil: models are neither fetched nor deleted
	System   string  // system prompt of conversations that have none
	Memory   int64   // bytes for all models that are loaded; 0: no limit is known
	Keys     []Key
	Origins  []string // of pages that may use the server, beside its own; "*" for all
	// Loopback: only this computer reaches the server, so its Host must name this computer.
	Loopback bool
	Hosts    []string     // other names of it, such as that of a proxy before it
	UI       http.Handler // the page; nil: none
	Version  string
	Compat   bool                // metrics under vLLM's names, too
	Events   *kvevents.Publisher // what routers are told, for the metrics; nil: nothing
	Log      *slog.Logger
	LogText  bool // prompts and answers, too

	MaxBody      int64         // bytes; 8 MiB
	Bodies       int64         // bytes of all bodies that are held at once; 16 times MaxBody
	BodyTime     time.Duration // for a body to come, and a second for each 64 KiB of it; 15 s
	Connections  int           // at once; as many as the process may have files, but for some
	Queue        int           // requests that wait, 256
	QueueTimeout time.Duration // until a model is loaded, 60 s
	Stall        time.Duration // of a client that does not read, 60 s
	KeepAlive    time.Duration // between comments in a stream without events, 15 s
}

// Server is the handler of all endpoints.
type Server struct {
	o        Options
	pool     *pool
	users    users
	mux      *http.ServeMux
	methods  map[string][]string // by path, for 405
	metrics  *metrics
	store    *store
	started  time.Time
	draining atomic.Bool
	drain    chan struct{} // closed when somebody asked for the drain
	once     sync.Once
	calls    calls // that a drain waits for
	inFlight atomic.Int64
	bodies   *semaphore.Weighted // bytes that requests hold
	texts    *semaphore.Weighted // bytes of text that are worked on
	long     *semaphore.Weighted // of these, texts that are long
	lost     chan error          // the first error of a device
}

var errDraining = &Error{Kind: unavailable, Code: "draining", Retry: 10 * time.Second, Message: "the server is shutting down"}

// New makes a server. Models are loaded when they are first asked for.
func New(o Options) *Server {
	setDefault(&o.MaxBody, 8<<20)
	setDefault(&o.Bodies, 16*o.MaxBody)
	setDefault(&o.BodyTime, 15*time.Second)
	setDefault(&o.Connections, connections(files()))
	setDefault(&o.Queue, 256)
	setDefault(&o.QueueTimeout, time.Minute)
	setDefault(&o.Stall, time.Minute)
	setDefault(&o.KeepAlive, 15*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, pool: newPool(o.Served, o.Memory), mux: http.NewServeMux(), methods: map[string][]string{}, started: time.Now(), drain: make(chan struct{}), lost: make(chan error, 1),
		store: newStore(storeBytes), bodies: semaphore.NewWeighted(o.Bodies), texts: semaphore.NewWeighted(2 * o.MaxBody), long: semaphore.NewWeighted(1)}
	for _, k := range o.Keys {
		s.users = append(s.users, newUser(k))
	}
	s.metrics = newMetrics(s)
	s.pool.loaded = func(l *loaded, took time.Duration) {
		if l.err != nil {
			o.Log.Error("load", "model", l.served.Names[0], "error", l.err.Error())
			return
		}
		go s.watch(l)
		o.Log.Info("load", "model", l.served.Names[0], "device", l.model.Device, "ms", took.Milliseconds())
	}
	for _, r := range routes() {
		s.handle(r)
	}
	if o.UI != nil {
		for _, path := range []string{"/{$}", "/app.js", "/style.css", "/icon.svg"} {
			s.mux.Handle("GET "+path, o.UI)
		}
	}
	s.mux.HandleFunc("/", s.unknown)
	return s
}

func setDefault[T int | int64 | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// A route is an endpoint.
type route struct {
	method, path string
	twin         bool // also without /v1
	open         bool // needs no key
	dialect      dialect
	handler      func(*call) error
}

func (s *Server) handle(r route) {
	paths := []string{r.path}
	if r.twin {
		paths = append(paths, strings.TrimPrefix(r.path, "/v1"))
	}
	for _, path := range paths {
		s.methods[path] = append(s.methods[path], r.method)
		s.mux.HandleFunc(r.method+" "+path, func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, r) })
	}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(client http.ResponseWriter, r *http.Request) {
	w := newReplyWriter(client, s.o.Stall)
	s.expectBody(w, r)
	id := r.Header.Get("X-Request-Id")
	if !goodID(id) {
		id = "req-" + random(12)
	}
	r.Header.Set("X-Request-Id", id)
	w.Header().Set("X-Request-Id", id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if s.o.Loopback && !loopbackHost(r.Host) && !slices.Contains(s.o.Hosts, hostName(r.Host)) {
		formOf(r.URL.Path).write(w, &Error{Kind: forbidden, Code: "foreign_host", Message: fmt.Sprintf(
			"the Host of the request, %q, is not a name of this computer: start the server with --allow-host %s, or with --host for an address that others reach", r.Host, hostName(r.Host))}, id)
		return
	}
	if s.cors(w, r) {
		return
	}
	if s.foreign(r) {
		formOf(r.URL.Path).write(w, &Error{Kind: forbidden, Message: "pages of this origin may not use the server: start it with --cors-origin"}, id)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// goodID says whether a client's id can be passed on and logged as it is.
func goodID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func itoa(n int) string { return strconv.Itoa(n) }

func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	form := formOf(r.URL.Path)
	methods := s.methods[r.URL.Path]
	if r.URL.Path == "/" && s.o.UI != nil {
		methods = []string{"GET"}
	}
	if len(methods) > 0 && !slices.Contains(methods, r.Method) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		form.write(w, &Error{Kind: badMethod, Message: r.Method + " is not for " + r.URL.Path + "; " + strings.Join(methods, ", ") + " is"}, id)
		return
	}
	form.write(w, &Error{Kind: notFound, Code: "not_found", Message: "there is no " + r.Method + " " + strconv.Quote(r.URL.Path)}, id)
}

// A call is a request on its way through a handler.
type call struct {
	s       *Server
	w       *replyWriter
	r       *http.Request
	cancel  context.CancelCauseFunc // ends the context of r
	id      string
	form    dialect
	user    *user
	read    bool   // all of the body
	raw     []byte // the body, until it is forgotten
	held    int64  // bytes that it counts
	size    int64  // of the body
	log     record
	asked   string  // the name of the model, as the request has it
	served  *Served // the model, once it is loaded
	loading time.Duration
	release []func()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt route) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	c := &call{s: s, w: w.(*replyWriter), r: r.WithContext(ctx), cancel: cancel, id: r.Header.Get("X-Request-Id"), form: rt.dialect}
	c.log = record{start: time.Now(), id: c.id, path: r.URL.Path}
	c.r.Body = http.MaxBytesReader(w, r.Body, s.o.MaxBody)
	err := s.handled(c, rt)
	c.forget()
	for _, f := range slices.Backward(c.release) {
		f()
	}
	if err != nil {
		e := errorOf(err)
		c.log.err = err
		c.log.status = e.Kind.status
		if c.w.code == 0 && e.Kind != clientGone {
			c.dropBody()
			c.form.write(c.w, e, c.id)
		}
	} else {
		c.log.status = c.w.code
	}
	s.calls.remove(c)
	if r.Method == http.MethodPost || err != nil {
		c.log.write(s.o.Log)
	}
}

// handled runs the handler, and turns its panic into an error.
func (s *Server) handled(c *call, rt route) (err error) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			s.o.Log.Error("panic", "id", c.id, "what", p, "stack", string(debug.Stack()))
			err = &Error{Kind: internal, Message: "panic"}
		}
	}()
	if !rt.open {
		var e *Error
		if c.user, e = s.users.of(c.r); e != nil {
			return e
		}
	}
	return rt.handler(c)
}

func (c *call) reply(v any) error {
	writeJSON(c.w, http.StatusOK, v)
	return nil
}

// admit admits a request that works with a model, within the limits of its key.
func (c *call) admit() error {
	s := c.s
	s.calls.add(c) // before the look at draining: a drain waits for it, or it is refused
	if s.draining.Load() {
		return errDraining
	}
	leave, e := c.user.admit(c.w.Header())
	if e != nil {
		return e
	}
	c.release = append(c.release, leave)
	// Some connections are left for probes and metrics.
	if n := s.inFlight.Add(1); n > int64(min(s.o.Queue+s.slots(), s.o.Connections*7/8)) {
		s.inFlight.Add(-1)
		return &Error{Kind: tooMany, Code: "queue_full", Retry: time.Second, Message: "the queue is full"}
	}
	c.busy(true)
	c.release = append(c.release, func() {
		s.inFlight.Add(-1)
		c.busy(false)
	})
	return nil
}

var errQueue = &Error{Kind: tooMany, Code: "queue_timeout", Retry: 5 * time.Second, Message: "the request waited for its model for too long"}

// slots is how many requests the loaded models answer at once.
func (s *Server) slots() int {
	n := 0
	s.pool.each(func(_ *Served, m *Model) { n += m.Header.Slots })
	return n
}

// model returns the model of that name, loaded, for as long as the call lasts.
func (c *call) model(name string) (*Model, error) {
	ctx, cancel := context.WithTimeoutCause(c.r.Context(), c.s.o.QueueTimeout, errQueue)
	defer cancel()
	served, err := c.s.find(name)
	if err != nil {
		return nil, err
	}
	c.log.model = served.Names[0]
	if c.asked = name; name == "" {
		c.asked = served.Names[0]
	}
	start := time.Now()
	m, release, err := c.s.pool.acquire(ctx, served)
	c.loading = time.Since(start)
	if at := c.s.pool.stage(served); errors.Is(err, errQueue) && at != nil {
		err = errLoading(served.Names[0], at) // it is not others' requests that it waited for
	}
	if err != nil {
		return nil, err
	}
	c.served = served
	c.release = append(c.release, release)
	return m, nil
}

// find returns the model of that name, which may have the tag of Ollama's that says nothing.
func (s *Server) find(name string) (*Served, error) {
	served, err := s.pool.find(name)
	if err == nil {
		return served, nil
	}
	if plain, ok := strings.CutSuffix(name, ":latest"); ok {
		if served, err := s.pool.find(plain); err == nil {
			return served, nil
		}
	}
	if !s.o.AnyModel || errorOf(err).Kind != notFound {
		return nil, err
	}
	if served, err := s.pool.find(""); err == nil {
		return served, nil
	}
	var loaded []*Served
	s.pool.each(func(one *Served, _ *Model) { loaded = append(loaded, one) })
	if len(loaded) == 1 {
		return loaded[0], nil
	}
	return nil, err
}

// Asked is closed when a client with the right to do so asked for a drain.
func (s *Server) Asked() <-chan struct{} { return s.drain }

// Lost receives the error of a device that is gone: the process should end.
func (s *Server) Lost() <-chan error { return s.lost }

// watch waits for the end of a model's device. If only the model's file has gone, the model is unloaded, and whoever
// asks for it the next time learns what is wrong with the file.
func (s *Server) watch(l *loaded) {
	select {
	case <-l.gone:
		return
	case <-l.model.Engine.Failed():
	}
	err := l.model.Engine.Err()
	if errors.Is(err, mapped.ErrCut) {
		s.o.Log.Error("model", "model", l.served.Names[0], "err", err.Error())
		s.pool.drop(l)
		return
	}
	select {
	case s.lost <- err:
	default:
	}
}

// Load loads a model by name before anybody asks for it.
func (s *Server) Load(ctx context.Context, name string) error {
	served, err := s.pool.find(name)
	if err != nil {
		return err
	}
	_, release, err := s.pool.acquire(ctx, served)
	if err == nil {
		release()
	}
	return err
}
