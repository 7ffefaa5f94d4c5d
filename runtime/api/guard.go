package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Key is one who may use the server, and how much. Zeros are no limit.
type Key struct {
	Key      string `toml:"key"`
	Requests int    `toml:"requests"` // a minute
	Tokens   int    `toml:"tokens"`   // a minute, of prompts and answers
	AtOnce   int    `toml:"at_once"`  // requests in flight
	Priority int    `toml:"priority"` // of its requests, at most
	Admin    bool   `toml:"admin"`    // may drain the server
}

// A user is a key with what it has used.
type user struct {
	Key
	hash     [sha256.Size]byte
	requests *rate.Limiter // nil: no limit
	tokens   *rate.Limiter
	mu       sync.Mutex
	inFlight int
}

func newUser(k Key) *user {
	u := &user{Key: k, hash: sha256.Sum256([]byte(k.Key))}
	if k.Requests > 0 {
		u.requests = rate.NewLimiter(rate.Limit(float64(k.Requests)/60), k.Requests)
	}
	if k.Tokens > 0 {
		u.tokens = rate.NewLimiter(rate.Limit(float64(k.Tokens)/60), k.Tokens)
	}
	return u
}

// name is what the log says instead of the key.
func (u *user) name() string {
	if u == nil {
		return ""
	}
	return hex.EncodeToString(u.hash[:4])
}

// owner is whose the tokens are that requests of u leave in slots.
func (u *user) owner() string {
	if u == nil {
		return ""
	}
	return string(u.hash[:])
}

// admit counts a request of u and returns what to call at its end.
func (u *user) admit(h http.Header) (func(), *Error) {
	if u == nil {
		return func() {}, nil
	}
	if e := take(u.requests, "requests", h); e != nil {
		return nil, e
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tokens != nil && u.tokens.Tokens() < 1 {
		return nil, overLimit(u.tokens, "tokens")
	}
	if u.AtOnce > 0 && u.inFlight >= u.AtOnce {
		return nil, &Error{Kind: tooMany, Code: "rate_limit_exceeded", Retry: time.Second, Message: "too many requests of this key at once"}
	}
	u.inFlight++
	return func() {
		u.mu.Lock()
		u.inFlight--
		u.mu.Unlock()
	}, nil
}

func take(l *rate.Limiter, what string, h http.Header) *Error {
	if l == nil {
		return nil
	}
	ok := l.Allow()
	h.Set("X-Ratelimit-Limit-"+what, itoa(l.Burst()))
	h.Set("X-Ratelimit-Remaining-"+what, itoa(max(0, int(l.Tokens()))))
	if !ok {
		return overLimit(l, what)
	}
	return nil
}

func overLimit(l *rate.Limiter, what string) *Error {
	wait := time.Duration((1 - l.Tokens()) / float64(l.Limit()) * float64(time.Second))
	return &Error{Kind: tooMany, Code: "rate_limit_exceeded", Retry: max(wait, time.Second), Message: "this key's " + what + " of a minute are used up"}
}

// charge counts the tokens of a prompt that is about to be read; without any left it refuses.
func (u *user) charge(prompt int) *Error {
	if u == nil || u.tokens == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tokens.Tokens() < 1 {
		return overLimit(u.tokens, "tokens")
	}
	u.take(prompt)
	return nil
}

// spend counts tokens of an answer as they come.
func (u *user) spend(tokens int) {
	if u != nil && u.tokens != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.take(tokens)
	}
}

// take takes all of the tokens: the balance may become negative, and the key then waits until its tokens of a minute
// have paid the debt.
func (u *user) take(tokens int) {
	for now := time.Now(); tokens > 0; {
		n := min(tokens, u.tokens.Burst()) // a limiter gives no more at once
		u.tokens.ReserveN(now, n)
		tokens -= n
	}
}

// Keys that the server takes; none: everybody may.
type users []*user

// of returns whose key a request has. The time it takes tells nothing of the keys.
func (us users) of(r *http.Request) (*user, *Error) {
	if len(us) == 0 {
		return nil, nil
	}
	key := r.Header.Get("X-Api-Key")
	if scheme, bearer, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		key = strings.TrimSpace(bearer)
	}
	hash := sha256.Sum256([]byte(key))
	var found *user
	for _, u := range us {
		if subtle.ConstantTimeCompare(hash[:], u.hash[:]) == 1 {
			found = u
		}
	}
	if found == nil {
		return nil, &Error{Kind: unauthorized, Code: "invalid_api_key", Message: "the API key is missing or wrong"}
	}
	return found, nil
}

// loopbackHost says whether the Host of a request names this computer itself. A page
// from elsewhere that has its name resolved to 127.0.0.1 has another.
func loopbackHost(host string) bool {
	host = hostName(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// hostName is the name in a Host, without its port.
func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// cors answers for pages of the origins that may use the server, and says whether the
// request was one that only asked for that.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (done bool) {
	origin := r.Header.Get("Origin")
	if origin == "" || len(s.o.Origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !slices.Contains(s.o.Origins, origin) && !slices.Contains(s.o.Origins, "*") {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, X-Zincrun-Left-Out")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// foreign says whether a request comes from a page of another origin that was not allowed.
func (s *Server) foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	if slices.Contains(s.o.Origins, origin) || slices.Contains(s.o.Origins, "*") {
		return false
	}
	_, host, _ := strings.Cut(origin, "://")
	return !strings.EqualFold(host, r.Host)
}
