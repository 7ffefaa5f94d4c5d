// Package fleet simulates servers behind a router, from the measured times of their steps. It decides as package
// engine does: pieces of prompts between steps of decoding while the time between two tokens allows, the widest
// steps that cover those that decode, slots that hold the prompt they read last.
//
// It leaves out: recurrent models, which go on from fewer places; bursts of greedy tokens in one submission; the time
// to copy a prefix from slot to slot; the network. A prompt that does not fit is refused, as it is by a server.
package fleet

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
)

// Router says where a request goes.
type Router string

// Routers.
const (
	Prefix     Router = "prefix" // where its first token is expected first, what is held and what waits considered
	RoundRobin Router = "round-robin"
)

// Options of a simulation.
type Options struct {
	Servers int
	Router  Router
	ITL     float64 // seconds between two tokens while prompts are read, at most
}

// Result is what users of the fleet see. Times are in seconds.
type Result struct {
	Requests, Refused int
	Seconds           float64 // from the first arrival to the last token
	Prompt, Output    int     // tokens
	Cached            int     // tokens of prompts
	TTFT, ITL         []float64
	MostWaiting       int   // in the queue of one server
	Shares            []int // requests of each server
}

// aim is the part of the bound that steps are planned for, as in package engine.
const aim = 0.95

// server is one of the fleet.
type server struct {
	m       *model
	index   int
	clock   float64 // when its step ends
	busy    bool    // a step is under way
	slots   []slot
	running []*active
	waiting []*active
	served  int
}

// model is what all servers have in common.
type model struct {
	steps   *Steps
	decode  []curve // by rows
	prompts []curve // what may read a prompt, by rows: few rows are read as they are generated
	piece   int     // tokens of a piece of a prompt
	host    float64 // seconds
	itl     float64 // seconds
}

type slot struct {
	holds *Request // nil: nothing
	read  int      // tokens of it
	used  float64
	busy  bool
}

// active is a request at a server.
type active struct {
	job     *job
	arrived float64
	slot    int
	read    int // tokens of the prompt in the slot
	out     int // tokens of the answer
	last    float64
}

func (a *active) reading() bool { return a.read < a.job.Prompt }

// Simulate runs requests of a mix through a fleet.
func (m Mix) Simulate(s *Steps, o Options) (*Result, error) { return simulate(s, o, m.work()) }

// Trace runs requests that come at given times through a fleet.
func Trace(s *Steps, o Options, all []Request) (*Result, error) {
	return simulate(s, o, traceWork(all))
}

// arrival is a request that comes.
type arrival struct {
	at  float64
	seq int // first come, first served
	job *job
}

type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// sim is a simulation under way.
type sim struct {
	o       Options
	servers []*server
	coming  arrivals
	seq     int
	turn    int
	res     Result
}

func simulate(s *Steps, o Options, w work) (*Result, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if o.Servers < 1 || o.Servers > 1<<12 {
		return nil, fmt.Errorf("%d servers", o.Servers)
	}
	prefill := s.curves("prefill")
	m := &model{steps: s, decode: s.curves("decode"), piece: prefill[len(prefill)-1].rows, host: s.HostMS / 1e3, itl: o.ITL}
	m.prompts = slices.Concat(m.decode, prefill)
	slices.SortStableFunc(m.prompts, func(a, b curve) int { return a.rows - b.rows })
	x := &sim{o: o}
	for i := range o.Servers {
		x.servers = append(x.servers, &server{m: m, index: i, slots: make([]slot, s.Slots)})
	}
	for _, j := range w.first {
		x.come(j, j.At)
	}
	x.run()
	for _, sv := range x.servers {
		x.res.Shares = append(x.res.Shares, sv.served)
	}
	return &x.res, nil
}

func (x *sim) come(j *job, at float64) {
	heap.Push(&x.coming, arrival{at, x.seq, j})
	x.seq++
}

// run takes what happens next: an arrival, or the end of a server's step.
func (x *sim) run() {
	start := math.Inf(1)
	for {
		var next *server
		for _, s := range x.servers {
			if s.busy && (next == nil || s.clock < next.clock) {
				next = s
			}
		}
		switch {
		case len(x.coming) > 0 && (next == nil || x.coming[0].at <= next.clock):
			a := heap.Pop(&x.coming).(arrival)
			start = min(start, a.at)
			x.arrive(a)
		case next != nil:
			next.busy = false
			x.res.Seconds = max(x.res.Seconds, next.clock-start)
			x.work(next)
		default:
			return
		}
	}
}

// arrive sends a request to a server.
func (x *sim) arrive(a arrival) {
	if a.job.Prompt+a.job.Answer > x.servers[0].m.steps.Ctx {
		x.res.Refused++
		return
	}
	s := x.pick(a)
	s.served++
	s.waiting = append(s.waiting, &active{job: a.job, arrived: a.at})
	if !s.busy {
		s.clock = max(s.clock, a.at)
		x.work(s)
	}
	x.res.MostWaiting = max(x.res.MostWaiting, len(s.waiting))
}

// pick is the router.
func (x *sim) pick(a arrival) *server {
	if x.o.Router == RoundRobin {
		x.turn++
		return x.servers[(x.turn-1)%len(x.servers)]
	}
	return slices.MinFunc(x.servers, func(s, o *server) int {
		d := s.expect(a) - o.expect(a)
		switch {
		case d < -1e-12:
			return -1
		case d > 1e-12:
			return 1
		}
		return len(s.running) + len(s.waiting) - len(o.running) - len(o.waiting)
	})
}

// expect is when the first token of a request is expected: behind the step under way, the prompts before it, and, if
// there is no slot for it, the answers before it in turns.
func (s *server) expect(a arrival) float64 {
	t := max(0, s.clock-a.at)
	held, _ := s.find(&a.job.Request)
	t += s.promptTime(held, a.job.Prompt)
	for _, r := range s.running {
		t += s.promptTime(r.read, r.job.Prompt)
	}
	over := len(s.running) + len(s.waiting) + 1 - len(s.slots)
	for _, r := range s.waiting {
		held, _ := s.find(&r.job.Request)
		t += s.promptTime(held, r.job.Prompt)
	}
	if over > 0 {
		var left []int
		for _, r := range s.running {
			left = append(left, r.job.Answer-r.out)
		}
		slices.Sort(left)
		step := s.m.cover(len(s.slots), a.job.Prompt) + s.m.host
		for i := range over {
			if i < len(left) {
				t += float64(left[i]) * step / float64(over)
			}
		}
	}
	return t
}

// promptTime is how long a prompt takes from one position to its end.
func (s *server) promptTime(from, to int) (t float64) {
	for from < to {
		c, n := s.m.prompt(from, to)
		t += c.at(from) + s.m.host
		from += n
	}
	return t
}

// prompt is the next step of a prompt: to the end of a piece at most, by the narrowest entry that holds it.
func (m *model) prompt(from, to int) (curve, int) {
	n := min(to-from, m.piece-from%m.piece)
	for _, c := range m.prompts {
		if c.rows >= n {
			return c, n
		}
	}
	panic("no entry has the rows of a piece") // the widest of them are a piece
}

// cover is the least time of steps in which n sequences each get a token.
func (m *model) cover(n, depth int) float64 {
	best := make([]float64, n+1)
	for k := 1; k <= n; k++ {
		best[k] = math.Inf(1)
		for _, c := range m.decode {
			best[k] = min(best[k], best[max(0, k-c.rows)]+c.at(depth))
		}
	}
	return best[n]
}

// find is how much of a prompt a server holds, and in which slot: whole pieces, with a token left to compute.
func (s *server) find(q *Request) (tokens, at int) {
	at = -1
	for i := range s.slots {
		h := &s.slots[i]
		if h.holds == nil {
			continue
		}
		n := min(h.holds.common(q), h.read, q.Prompt-1)
		if n = n / s.m.piece * s.m.piece; n > tokens {
			tokens, at = n, i
		}
	}
	return tokens, at
}

// admit gives slots to those that wait: that which holds the beginning, else the one that was not used for longest.
func (s *server) admit(x *sim) {
	for len(s.waiting) > 0 && len(s.running) < len(s.slots) {
		a := s.waiting[0]
		s.waiting = s.waiting[1:]
		held, at := s.find(&a.job.Request)
		if at < 0 || s.slots[at].busy {
			at = -1
			for i := range s.slots {
				if h := &s.slots[i]; !h.busy && (at < 0 || h.used < s.slots[at].used) {
					at = i
				}
			}
		}
		a.slot, a.read = at, held
		s.slots[at] = slot{holds: &a.job.Request, read: held, busy: true, used: s.clock}
		x.res.Cached += held
		x.res.Prompt += a.job.Prompt
		s.running = append(s.running, a)
	}
}

// work begins the next step of a server, if there is something to do: pieces of prompts, as many as the bound allows,
// and a token of each sequence that decodes.
func (x *sim) work(s *server) {
	s.admit(x)
	if len(s.running) == 0 {
		return
	}
	begin := s.clock
	spent := false
	for _, a := range s.running {
		for a.reading() {
			c, n := s.m.prompt(a.read, a.job.Prompt)
			took := c.at(a.read) + s.m.host
			if spent && !s.fits(took) {
				x.decode(s, begin)
				return
			}
			spent = true
			s.clock += took
			a.read += n
			s.slots[a.slot].read = a.read
			if !a.reading() {
				x.token(a, s.clock)
			}
		}
	}
	x.decode(s, begin)
}

// fits says whether a further step of a prompt leaves time for the next tokens of all that decode.
func (s *server) fits(took float64) bool {
	n, depth, last := s.decoding()
	return n > 0 && s.clock-last+took+s.m.cover(n, depth)+s.m.host <= aim*s.m.itl
}

// decoding counts the sequences that decode: how many, the deepest, and the oldest last token.
func (s *server) decoding() (n, depth int, last float64) {
	last = math.Inf(1)
	for _, a := range s.running {
		if !a.reading() && a.out < a.job.Answer {
			n, depth, last = n+1, max(depth, a.read+a.out), min(last, a.last)
		}
	}
	return n, depth, last
}

// decode gives each sequence its next token, and lets those go that have all.
func (x *sim) decode(s *server, begin float64) {
	n, depth, _ := s.decoding()
	if n > 0 {
		s.clock += s.m.cover(n, depth) + s.m.host
		for _, a := range s.running {
			if !a.reading() && a.out < a.job.Answer {
				x.token(a, s.clock)
			}
		}
	}
	s.running = slices.DeleteFunc(s.running, func(a *active) bool {
		if a.reading() || a.out < a.job.Answer {
			return false
		}
		x.res.Requests++
		s.slots[a.slot].busy, s.slots[a.slot].used = false, s.clock
		if a.job.next != nil {
			x.come(a.job.next, s.clock+a.job.think)
		}
		return true
	})
	s.busy = s.clock > begin
}

// token notes the next token of an answer.
func (x *sim) token(a *active, at float64) {
	if a.out == 0 {
		x.res.TTFT = append(x.res.TTFT, at-a.arrived)
	} else {
		x.res.ITL = append(x.res.ITL, at-a.last)
	}
	a.out++
	a.last = at
	x.res.Output++
}
