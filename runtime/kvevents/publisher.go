// Package kvevents tells routers which prompts a server holds, so that they send a request where its beginning is
// known: vLLM's KV events over ZeroMQ, which the routers of llm-d and Dynamo read.
//
// A message of the PUB socket has three parts: the topic, kv@POD@MODEL; a sequence number, 8 bytes, big endian; a batch
// of events as msgpack. A gap of the numbers says that something is missing. The ROUTER socket then sends again what
// comes from a number on, as long as it is kept: a request is an empty part and the number, each reply an empty part
// and the three of a message; the last one has an empty topic, the number -1 and an empty batch.
//
// Whoever connects gets the tokens of all prompts: there are neither keys nor encryption.
package kvevents

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds.
const (
	mostPeers   = 64       // of a socket
	mostTopics  = 64       // that a subscriber asks for
	mostWaiting = 1024     // messages for a subscriber that does not read
	mostEvents  = 64       // of a batch
	mostKept    = 10000    // batches for the ROUTER socket
	mostBytes   = 64 << 20 // of these, and of messages for a subscriber
)

// Publisher has the sockets. Its methods may be called by several goroutines.
type Publisher struct {
	pod     string
	pub     net.Listener
	replay  net.Listener // nil: there is none
	wake    chan struct{}
	closed  chan struct{}
	all     sync.WaitGroup
	dropped atomic.Int64
	missed  atomic.Int64
	sent    atomic.Int64

	mu    sync.Mutex
	feeds []*Feed
	peers map[*peer]bool
	conns map[net.Conn]bool
	kept  []kept
	bytes int
	seq   uint64
}

// kept is a message that was sent.
type kept struct {
	seq            uint64
	topic, payload []byte
}

// peer is a subscriber.
type peer struct {
	topics  [][]byte
	out     chan []byte
	waiting atomic.Int64 // bytes in out
}

// Stats counts.
type Stats struct {
	Subscribers int
	Events      int64 // batches that were sent
	Dropped     int64 // changes that came too fast
	Missed      int64 // messages that subscribers did not read in time, each for itself
}

// Address takes an endpoint tcp://HOST:PORT apart; a HOST of * is every one of this computer. It says whether only this
// computer reaches it.
func Address(endpoint string) (address string, loopback bool, err error) {
	rest, ok := strings.CutPrefix(endpoint, "tcp://")
	host, port, err := net.SplitHostPort(rest)
	if !ok || err != nil || host == "" || port == "" {
		return "", false, fmt.Errorf("want tcp://HOST:PORT, have %q", endpoint)
	}
	if host == "*" {
		host = ""
	}
	ip := net.ParseIP(host)
	return net.JoinHostPort(host, port), host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// Listen opens the sockets. pod is what the server is called in topics; "" is the address of the PUB socket. replay may
// be "".
func Listen(pod, pub, replay string) (_ *Publisher, err error) {
	p := &Publisher{pod: pod, wake: make(chan struct{}, 1), closed: make(chan struct{}), peers: map[*peer]bool{}, conns: map[net.Conn]bool{}}
	if p.pub, err = net.Listen("tcp", pub); err != nil {
		return nil, err
	}
	if replay != "" {
		if p.replay, err = net.Listen("tcp", replay); err != nil {
			_ = p.pub.Close() // the error is why
			return nil, err
		}
		p.all.Go(func() { p.accept(p.replay, p.answer) })
	}
	if p.pod == "" {
		p.pod = p.pub.Addr().String()
	}
	p.all.Go(func() { p.accept(p.pub, p.serve) })
	p.all.Go(p.run)
	return p, nil
}

// Addresses are those of the PUB and the ROUTER socket; "" if there is none.
func (p *Publisher) Addresses() (pub, replay string) {
	if p.replay != nil {
		replay = p.replay.Addr().String()
	}
	return p.pub.Addr().String(), replay
}

// Feed begins to tell of a model under its name. digest says which plan it is: only the same plans have the same
// blocks.
func (p *Publisher) Feed(name, digest string) *Feed {
	f := &Feed{p: p, topic: "kv@" + p.pod + "@" + name, root: digest}
	p.mu.Lock()
	defer p.mu.Unlock()
	// One of the same name has told its end, or is about to.
	p.feeds = append(slices.DeleteFunc(p.feeds, func(old *Feed) bool { return old.topic == f.topic && old.ended() }), f)
	return f
}

// ended says whether the feed has told its end.
func (f *Feed) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over && len(f.queue) == 0
}

// Stats returns the counts.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{len(p.peers), p.sent.Load(), p.dropped.Load(), p.missed.Load()}
}

// Close closes the sockets. Feeds may still be used.
func (p *Publisher) Close() error {
	err := p.pub.Close()
	if p.replay != nil {
		err = errors.Join(err, p.replay.Close())
	}
	close(p.closed)
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close() // peers see the end
	}
	p.mu.Unlock()
	p.all.Wait()
	return err
}

// run sends what feeds tell.
func (p *Publisher) run() {
	for {
		select {
		case <-p.closed:
			return
		case <-p.wake:
		}
		p.mu.Lock()
		feeds := slices.Clone(p.feeds)
		p.mu.Unlock()
		for _, f := range feeds {
			list, lost := f.take()
			for batch := range slices.Chunk(f.events(list), mostEvents) {
				p.publish(f, batch)
			}
			if lost {
				p.mu.Lock()
				p.seq++ // what was dropped had this number
				p.kept, p.bytes = nil, 0
				p.mu.Unlock()
				f.pieces = map[uint64]piece{}
				p.publish(f, []event{{name: "AllBlocksCleared"}})
			}
		}
	}
}

// publish sends a batch to those that want it.
func (p *Publisher) publish(f *Feed, events []event) {
	payload, err := encode(time.Now(), events)
	p.mu.Lock()
	defer p.mu.Unlock()
	k := kept{p.seq, []byte(f.topic), payload}
	p.seq++
	if err != nil { // cannot be: the number is missing then
		p.dropped.Add(1)
		return
	}
	p.kept, p.bytes = append(p.kept, k), p.bytes+len(payload)
	for len(p.kept) > mostKept || p.bytes > mostBytes {
		p.bytes -= len(p.kept[0].payload)
		p.kept[0], p.kept = kept{}, p.kept[1:]
	}
	p.sent.Add(1)
	m := message(k.topic, number(k.seq), payload)
	for to := range p.peers {
		if !slices.ContainsFunc(to.topics, func(t []byte) bool { return bytes.HasPrefix(k.topic, t) }) {
			continue
		}
		if to.waiting.Load() > mostBytes {
			p.missed.Add(1)
			continue
		}
		select {
		case to.out <- m:
			to.waiting.Add(int64(len(m)))
		default:
			p.missed.Add(1)
		}
	}
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// accept lets peers in, as many as there may be.
func (p *Publisher) accept(l net.Listener, talk func(net.Conn)) {
	slots := make(chan struct{}, mostPeers)
	for {
		c, err := l.Accept()
		select {
		case <-p.closed:
			if err == nil {
				_ = c.Close() // nobody talks to it
			}
			return
		default:
		}
		if err != nil { // such as too many open files
			time.Sleep(100 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = c.Close() // there are enough
			continue
		}
		p.mu.Lock()
		p.conns[c] = true
		p.mu.Unlock()
		p.all.Go(func() {
			talk(c)
			_ = c.Close() // it has ended
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
			<-slots
		})
	}
}

// serve serves a subscriber.
func (p *Publisher) serve(c net.Conn) {
	z, err := handshake(c, "PUB", "SUB", "XSUB")
	if err != nil {
		return
	}
	to := &peer{out: make(chan []byte, mostWaiting)}
	p.mu.Lock()
	p.peers[to] = true
	p.mu.Unlock()
	gone := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		defer z.Close()
		for {
			select {
			case <-gone:
				return
			case m := <-to.out:
				to.waiting.Add(-int64(len(m)))
				if z.send(m) != nil {
					return
				}
			}
		}
	})
	for {
		parts, command, err := z.message()
		if err != nil || !p.subscribe(to, parts[0], command) {
			break
		}
	}
	p.mu.Lock()
	delete(p.peers, to)
	p.mu.Unlock()
	close(gone)
	_ = z.Close() // a write ends, too
	writing.Wait()
}

// subscribe takes a message of a subscriber, or a command as ZMTP 3.1 has it; false: it asks for too much.
func (p *Publisher) subscribe(to *peer, body []byte, command bool) bool {
	on, topic := false, []byte(nil)
	switch {
	case command && bytes.HasPrefix(body, []byte("\x09SUBSCRIBE")):
		on, topic = true, body[10:]
	case command && bytes.HasPrefix(body, []byte("\x06CANCEL")):
		topic = body[7:]
	case command || len(body) == 0 || body[0] > 1:
		return true
	default:
		on, topic = body[0] == 1, body[1:]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(to.topics, func(t []byte) bool { return bytes.Equal(t, topic) })
	switch {
	case on && len(to.topics) >= mostTopics:
		return false
	case on: // each is cancelled for itself
		to.topics = append(to.topics, topic)
	case at >= 0:
		to.topics = slices.Delete(to.topics, at, at+1)
	}
	return true
}

// answer serves one who asks for what was sent.
func (p *Publisher) answer(c net.Conn) {
	z, err := handshake(c, "ROUTER", "REQ", "DEALER", "ROUTER")
	if err != nil {
		return
	}
	for {
		parts, command, err := z.message()
		if err != nil {
			return
		}
		if command || len(parts) != 2 || len(parts[0]) != 0 || len(parts[1]) != 8 {
			continue // no request
		}
		p.mu.Lock()
		from, end := binary.BigEndian.Uint64(parts[1]), p.seq
		p.mu.Unlock()
		for from < end {
			k, ok := p.keptFrom(from)
			if !ok {
				break
			}
			if z.send(message(nil, k.topic, number(k.seq), k.payload)) != nil {
				return
			}
			from = k.seq + 1
		}
		if z.send(message(nil, nil, number(^uint64(0)), nil)) != nil {
			return
		}
	}
}

// keptFrom is the first message from a number on that is kept still: a peer that reads slowly holds no more than one.
func (p *Publisher) keptFrom(seq uint64) (kept, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, _ := slices.BinarySearchFunc(p.kept, seq, func(k kept, seq uint64) int { return cmp.Compare(k.seq, seq) })
	if i == len(p.kept) {
		return kept{}, false
	}
	return p.kept[i], true
}
