package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/runtime/library"
)

const (
	maxRedirects = 8
	maxAnswer    = 16 << 20        // bytes of an answer that is no file
	maxWait      = 2 * time.Minute // that a server may ask for
	tries        = 6               // of a request that brings nothing
)

func newHTTP() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout:   15 * time.Second,
			ResponseHeaderTimeout: time.Minute,
			IdleConnTimeout:       time.Minute,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // sizes and ranges are those of the file
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is a response, and what the hub said of the file before it sent elsewhere.
type answer struct {
	*http.Response
	moved  bool // it comes from another host than the one that was asked
	linked http.Header
}

// get follows redirects itself: a token goes to the hub alone, and none lead from HTTPS to what is not.
func (c *Client) get(ctx context.Context, address string, header http.Header) (*answer, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	first := u
	linked := http.Header{}
	for range maxRedirects {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		for k, v := range header {
			req.Header[k] = v
		}
		req.Header.Set("User-Agent", "zincrun")
		if c.Token != "" && c.isHub(u) {
			req.Header.Set("Authorization", "Bearer "+c.Token)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return nil, plain(err)
		}
		for _, k := range []string{"X-Linked-Etag", "X-Linked-Size", "X-Repo-Commit"} {
			if v := resp.Header.Get(k); v != "" && c.isHub(u) {
				linked.Set(k, v)
			}
		}
		to := resp.Header.Get("Location")
		if resp.StatusCode < 300 || resp.StatusCode > 399 || to == "" {
			return &answer{resp, u.Host != first.Host, linked}, nil
		}
		resp.Body.Close()
		next, err := u.Parse(to)
		if err != nil || !library.Safe(next) || u.Scheme == "https" && next.Scheme != "https" {
			return nil, fmt.Errorf("%s sends elsewhere, which is not safe", u.Host)
		}
		u = next
	}
	return nil, fmt.Errorf("%s sends from place to place", first.Host)
}

// isHub says whether u is an address of the hub, whose token may go there.
func (c *Client) isHub(u *url.URL) bool {
	hub, err := url.Parse(c.Hub)
	return err == nil && hub.Scheme == u.Scheme && hub.Host == u.Host
}

// plain says without Go's words what an error of package http is, and leaves the address out, which may hold a
// signature.
func plain(err error) error {
	host := ""
	var e *url.Error
	if errors.As(err, &e) {
		if u, parseErr := url.Parse(e.URL); parseErr == nil {
			host, err = u.Host+": ", e.Err
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the line was cut")
	}
	return fmt.Errorf("%s%w", host, err)
}

// A statusError is an answer that is no success.
type statusError struct {
	code  int
	host  string
	after time.Duration // that the server asks to wait; 0: it does not say
	moved bool
	hint  string // X-Error-Code of a hub
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.host, e.code, strings.ToLower(http.StatusText(e.code)))
}

// status makes an error of an answer that is none of the wanted, and ends it.
func (a *answer) status(want ...int) error {
	for _, w := range want {
		if a.StatusCode == w {
			return nil
		}
	}
	a.Body.Close()
	e := &statusError{code: a.StatusCode, host: a.Request.URL.Host, moved: a.moved, hint: a.Header.Get("X-Error-Code")}
	if s := a.Header.Get("Retry-After"); s != "" {
		if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < 1<<20 {
			e.after = time.Duration(n) * time.Second
		} else if t, err := http.ParseTime(s); err == nil {
			e.after = max(0, time.Until(t))
		}
	}
	return e
}

// A refusal is an error that another try does not mend.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// passing says whether err may be gone in a while.
func passing(err error) bool {
	var s *statusError
	var r refusal
	var dns *net.DNSError
	switch {
	case errors.As(err, &r), errors.As(err, &dns) && dns.IsNotFound:
		return false
	case errors.As(err, &s):
		switch s.code {
		case 408, 425, 429, 500, 502, 503, 504:
			return true
		}
		return s.moved && (s.code == 401 || s.code == 403 || s.code == 404 || s.code == 410) // a signature has expired: the hub gives another
	}
	return true // of the network
}

// again calls try until it succeeds, fails for good, or has failed too often. try says whether it brought something.
func (c *Client) again(ctx context.Context, try func() (brought bool, err error)) error {
	for n := 1; ; n++ {
		brought, err := try()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil || !passing(err) {
			return err
		}
		if brought {
			n = 1
		}
		if n >= tries {
			return err
		}
		wait := c.pause << (n - 1)
		wait += rand.N(wait/2 + 1)
		var s *statusError
		if errors.As(err, &s) && s.after > 0 {
			if wait = s.after; wait > maxWait {
				return fmt.Errorf("%w: it asks to wait for %s", err, s.after.Round(time.Second))
			}
			c.Said(fmt.Sprintf("%s asks to wait for %s", s.host, s.after.Round(time.Second)))
		} else if wait > 3*time.Second {
			c.Said(fmt.Sprintf("%s; trying again in %s", err, wait.Round(time.Second)))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// ask gets JSON.
func (c *Client) ask(ctx context.Context, address, accept string, to any) error {
	return c.again(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		a, err := c.get(ctx, address, http.Header{"Accept": {accept}})
		if err != nil {
			return false, err
		}
		if err := a.status(http.StatusOK); err != nil {
			return false, err
		}
		defer a.Body.Close()
		body, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer+1))
		if err != nil {
			return false, plain(err)
		}
		if len(body) > maxAnswer {
			return false, refuse("the answer of %s is longer than %d MiB", a.Request.URL.Host, maxAnswer>>20)
		}
		if err := json.Unmarshal(body, to); err != nil {
			return false, refuse("the answer of %s is no JSON of the kind: %w", a.Request.URL.Host, err)
		}
		return true, nil
	})
}
