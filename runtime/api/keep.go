package api

import (
	"encoding/json"
	"math"
	"time"
)

// keepAlive is how long a model stays in memory behind its last use, as Ollama's API has it: seconds, or a text such as
// 5m; less than 0 is for as long as others do not need the memory.
type keepAlive struct{ d *time.Duration }

func (k *keepAlive) decode(_ *decoder, raw []byte, path string) error {
	var seconds float64
	var text string
	wrong := wrongType(path, "seconds, or a time such as 5m", raw)
	switch {
	case json.Unmarshal(raw, &seconds) == nil:
	case json.Unmarshal(raw, &text) == nil:
		if d, err := time.ParseDuration(text); err == nil {
			seconds = d.Seconds()
		} else if json.Unmarshal([]byte(text), &seconds) != nil {
			return wrong
		}
	default:
		return wrong
	}
	d := time.Duration(min(seconds, math.MaxInt32) * float64(time.Second))
	if seconds < 0 {
		d = -1
	}
	k.d = &d
	return nil
}

// keep says how long the model of the call stays in memory.
func (c *call) keep(k keepAlive) {
	if k.d == nil || c.served == nil {
		return
	}
	p := c.s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.models[c.served]; l != nil {
		l.keep = k.d
	}
}

// expire unloads a model that nobody uses when its time is over.
func (p *pool) expire(l *loaded) {
	p.mu.Lock()
	idle := l.users == 0 && l.model != nil && !l.closing && l.keep != nil && *l.keep >= 0 && !p.closed
	var left time.Duration
	if idle {
		left = time.Until(l.used.Add(*l.keep))
		l.closing = left <= 0
	}
	switch {
	case !idle || left <= 0:
	case l.expiry == nil:
		l.expiry = time.AfterFunc(left, func() { p.expire(l) })
	default:
		l.expiry.Reset(left)
	}
	p.mu.Unlock()
	if idle && left <= 0 {
		p.unload(l)
	}
}

// expires is when a model leaves the memory by itself; in a hundred years, if it does not.
func (p *pool) expires(s *Served) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.models[s]; l != nil && l.keep != nil && *l.keep >= 0 {
		if l.users > 0 {
			return time.Now().Add(*l.keep)
		}
		return l.used.Add(*l.keep)
	}
	return time.Now().AddDate(100, 0, 0)
}
