package kvevents

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/zincc-dev/zincc/runtime/cache"
)

func listen(t *testing.T) *Publisher {
	t.Helper()
	p, err := Listen("pod-1", "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// dial connects a socket of a type.
func dial(t *testing.T, address, kind, other string) *conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	z, err := handshake(c, kind, other)
	if err != nil {
		t.Fatal(err)
	}
	z.r = bufio.NewReaderSize(c, 1<<20)
	return z
}

// subscribe connects a subscriber and waits until it is one.
func subscribe(t *testing.T, p *Publisher, topic string) *conn {
	t.Helper()
	pub, _ := p.Addresses()
	z := dial(t, pub, "SUB", "PUB")
	if err := z.send(message(append([]byte{1}, topic...))); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		ready := false
		for to := range p.peers {
			ready = ready || slices.ContainsFunc(to.topics, func(b []byte) bool { return string(b) == topic })
		}
		p.mu.Unlock()
		if ready {
			return z
		}
		if time.Now().After(end) {
			t.Fatal("the subscription does not come")
		}
	}
}

// receive reads a message of any size.
func receive(t *testing.T, z *conn) (parts [][]byte) {
	t.Helper()
	z.SetReadDeadline(time.Now().Add(5 * time.Second))
	for {
		flags, err := z.r.ReadByte()
		if err != nil {
			t.Fatal(err)
		}
		size := make([]byte, 8)
		if flags&flagLong == 0 {
			size = size[:1]
		}
		if _, err := io.ReadFull(z.r, size); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint64(append(make([]byte, 8-len(size)), size...)))
		if _, err := io.ReadFull(z.r, body); err != nil {
			t.Fatal(err)
		}
		if parts = append(parts, body); flags&flagMore == 0 {
			return parts
		}
	}
}

// batch is what is received, decoded by the fields that llm-d-router reads at 1cda582 (vllm_adapter.go and its test).
type batch struct {
	At     float64
	Events []msgpack.RawMessage
	Rank   *int
}

type stored struct {
	Tag    string
	Hashes []uint64
	Parent *uint64
	Tokens []uint32
	Block  int
	LoraID *int
	Medium string
	Lora   *string
}

type removed struct {
	Tag    string
	Hashes []uint64
	Medium string
}

// events decodes a message and says of each event its tag and hashes, keeping what is stored.
func events(t *testing.T, parts [][]byte, seq uint64, have map[uint64][]uint32) (tags []string) {
	t.Helper()
	if len(parts) != 3 || string(parts[0]) != "kv@pod-1@gopher" || binary.BigEndian.Uint64(parts[1]) != seq {
		t.Fatalf("%d parts, topic %q, number %x, want %d", len(parts), parts[0], parts[1], seq)
	}
	var b batch
	if err := msgpack.Unmarshal(parts[2], &b); err != nil {
		t.Fatal(err)
	}
	if now := float64(time.Now().Unix()); b.At < now-60 || b.At > now+60 || b.Rank == nil || *b.Rank != 0 {
		t.Errorf("at %f, rank %v", b.At, b.Rank)
	}
	for _, raw := range b.Events {
		var s stored
		var r removed
		switch {
		case msgpack.Unmarshal(raw, &s) == nil && s.Tag == "BlockStored":
			if s.Parent != nil && have[*s.Parent] == nil || s.Medium != "GPU" || s.LoraID != nil || s.Lora != nil || len(s.Tokens) != len(s.Hashes)*s.Block {
				t.Errorf("%+v", s)
			}
			for i, h := range s.Hashes {
				have[h] = s.Tokens[i*s.Block:][:s.Block]
			}
			tags = append(tags, fmt.Sprintf("%s %d x %d", s.Tag, len(s.Hashes), s.Block))
		case msgpack.Unmarshal(raw, &r) == nil && r.Tag == "BlockRemoved":
			for _, h := range r.Hashes {
				if have[h] == nil || r.Medium != "GPU" {
					t.Errorf("%+v", r)
				}
				delete(have, h)
			}
			tags = append(tags, fmt.Sprintf("%s %d", r.Tag, len(r.Hashes)))
		default:
			var tag []string
			if err := msgpack.Unmarshal(raw, &tag); err != nil || len(tag) != 1 {
				t.Fatalf("%x: %v", raw, err)
			}
			clear(have)
			tags = append(tags, tag[0])
		}
	}
	return tags
}

func tokens(from, n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(from + i)
	}
	return list
}

// TestTree has a tree tell what holders read, fork and give up: a subscriber knows the blocks that prompts go on
// behind.
func TestTree(t *testing.T) {
	p := listen(t)
	sub := subscribe(t, p, "kv@")
	other := subscribe(t, p, "kv@pod-2")
	tree := cache.New(cache.Options{Cuts: []int{0, 48, 96, 112}, Costs: []float64{0, 1, 2, 3}, Holders: 2, Watch: p.Feed("gopher", "plan")})
	have := map[uint64][]uint32{}
	step := func(seq uint64, want ...string) {
		t.Helper()
		var tags []string
		for len(tags) < len(want) {
			tags = append(tags, events(t, receive(t, sub), seq, have)...)
			seq++
		}
		if !slices.Equal(tags, want) {
			t.Errorf("%q, want %q", tags, want)
		}
	}
	step(0, "AllBlocksCleared")
	all := func(int, int) bool { return true }
	first := tokens(100, 112)
	tree.Begin(0, "", cache.Hit{}, 0)
	tree.Extend(0, first, 0)
	tree.Left(0)
	step(1, "BlockStored 3 x 16")
	tree.Extend(0, first, 0)
	tree.Left(0)
	step(2, "BlockStored 3 x 16")
	fork := append(slices.Clone(first[:48]), tokens(500, 64)...)
	tree.Begin(1, "", tree.Match("", fork, 1, all), 0)
	tree.Extend(1, fork, 0)
	tree.Left(1)
	step(3, "BlockStored 3 x 16")
	tree.Begin(0, "somebody", cache.Hit{}, 0)
	tree.Extend(0, first, 0)
	tree.Left(0)
	seq, tags := uint64(4), []string(nil) // in one batch, or in two
	for len(tags) < 2 {
		tags = append(tags, events(t, receive(t, sub), seq, have)...)
		seq++
	}
	if want := []string{"BlockRemoved 3", "BlockStored 3 x 16"}; !slices.Equal(tags, want) {
		t.Errorf("%q, want %q", tags, want)
	}
	// Whoever has the plan and the tokens has the hashes.
	want := hashes(sum([]byte("plan\x00")), fork[:96], 16)
	for _, h := range append(want, hashes(sum([]byte("plan\x00somebody")), first[:48], 16)...) {
		if have[h] == nil {
			t.Errorf("no block %x", h)
		}
		delete(have, h)
	}
	if len(have) > 0 {
		t.Errorf("there are %d more blocks", len(have))
	}
	other.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if b, err := other.r.ReadByte(); err == nil {
		t.Errorf("a subscriber of other topics gets %x", b)
	}

	// The replay begins where it is asked to.
	_, at := p.Addresses()
	dealer := dial(t, at, "DEALER", "ROUTER")
	if err := dealer.send(message(nil, number(2))); err != nil {
		t.Fatal(err)
	}
	for want := uint64(2); ; want++ {
		parts := receive(t, dealer)
		if len(parts) != 4 || len(parts[0]) != 0 {
			t.Fatalf("%d parts", len(parts))
		}
		if n := binary.BigEndian.Uint64(parts[2]); n == ^uint64(0) {
			if want != seq || len(parts[1])+len(parts[3]) > 0 {
				t.Errorf("the end comes for %d, want %d", want, seq)
			}
			break
		} else if n != want || string(parts[1]) != "kv@pod-1@gopher" {
			t.Errorf("number %d of %q, want %d", n, parts[1], want)
		}
	}
}

// TestGap: what comes too fast is dropped and never waited for; the numbers have a gap, behind which all begins anew.
func TestGap(t *testing.T) {
	p := listen(t)
	sub := subscribe(t, p, "")
	f := p.Feed("gopher", "plan")
	f.Cuts([]int{0, 16, 32})
	have := map[uint64][]uint32{}
	events(t, receive(t, sub), 0, have)
	p.mu.Lock() // the publisher does nothing
	const many = 2*mostChanges + 10
	for i := range many {
		f.Stored(cache.Piece{ID: uint64(i + 1), Tokens: tokens(i, 16)})
	}
	p.mu.Unlock()
	var tags []string
	seq := uint64(1)
	for ; len(tags) == 0 || tags[len(tags)-1] != "AllBlocksCleared"; seq++ {
		parts := receive(t, sub)
		if n := binary.BigEndian.Uint64(parts[1]); n == seq+1 {
			seq++
			tags = append(tags, "gap")
		}
		tags = append(tags, events(t, parts, seq, have)...)
	}
	if n := len(tags); tags[n-2] != "gap" || n < mostChanges || n > mostChanges+mostEvents+2 {
		t.Errorf("%d events, the last two %q", n, tags[n-2:])
	}
	if n := p.Stats().Dropped; n < many-mostChanges-mostEvents || n > many-mostChanges {
		t.Errorf("%d are dropped", n)
	}
	// A piece behind one that routers have forgotten is not told, one that begins anew is.
	f.Stored(cache.Piece{ID: many + 1, Parent: 3, Tokens: tokens(0, 16)})
	f.Stored(cache.Piece{ID: many + 2, Tokens: tokens(7, 16)})
	f.Removed(3)
	if tags := events(t, receive(t, sub), seq, have); len(tags) != 1 || len(have) != 1 {
		t.Errorf("%q, %d blocks", tags, len(have))
	}
}

// TestForgets: a batch that is too much is kept no more, nor by the list's memory; replays go on behind it.
func TestForgets(t *testing.T) {
	list := append(make([]kept, 0, 2), kept{payload: make([]byte, 1000)})
	p := &Publisher{kept: list, bytes: mostBytes, seq: 1}
	p.publish(&Feed{topic: "kv"}, []event{{name: "AllBlocksCleared"}})
	if list[0].payload != nil {
		t.Error("the old batch is in memory")
	}
	if k, ok := p.keptFrom(0); !ok || k.seq != 1 {
		t.Errorf("from 0 on: %d, %t", k.seq, ok)
	}
	if _, ok := p.keptFrom(2); ok {
		t.Error("there is a batch 2")
	}
}

// TestSlowSubscriber: one that does not read keeps nobody waiting.
func TestSlowSubscriber(t *testing.T) {
	p := listen(t)
	slow, sub := subscribe(t, p, "kv"), subscribe(t, p, "kv@")
	f := p.Feed("gopher", "plan")
	const piece, many = 1 << 10, 5000
	f.Cuts([]int{0, piece, 2 * piece})
	have := map[uint64][]uint32{}
	events(t, receive(t, sub), 0, have)
	list := make([]int32, piece)
	for i := range many {
		list[0] = int32(i)
		f.Stored(cache.Piece{ID: uint64(i + 1), Tokens: slices.Clone(list)})
		f.Removed(uint64(i + 1))
		for tags := 0; tags < 2; {
			parts := receive(t, sub)
			var b batch
			if err := msgpack.Unmarshal(parts[2], &b); err != nil {
				t.Fatal(err)
			}
			tags += len(b.Events)
		}
	}
	if s := p.Stats(); s.Missed == 0 || s.Dropped != 0 || s.Subscribers != 2 {
		t.Errorf("%+v", s)
	}
	slow.Close()
}

// TestStrangers: whoever speaks otherwise or asks for too much is left; the others are served.
func TestStrangers(t *testing.T) {
	p := listen(t)
	pub, router := p.Addresses()
	long := append(append(greeting(), frame(nil, flagCommand, property([]byte("\x05READY"), "Socket-Type", "SUB"))...), flagLong)
	long = binary.BigEndian.AppendUint64(long, 1<<62)
	more := append(greeting(), frame(nil, flagCommand, property([]byte("\x05READY"), "Socket-Type", "SUB"))...)
	for i := range mostTopics + 1 {
		more = append(more, message([]byte{1, byte(i)})...)
	}
	for name, c := range map[string]struct {
		to   string
		sent []byte
	}{
		"HTTP":        {pub, []byte("GET / HTTP/1.1\r\nHost: a-name-of-some-length.example\r\nAccept: */*\r\n\r\n")},
		"a long one":  {pub, long},
		"many topics": {pub, more},
		"a DEALER":    {pub, append(greeting(), frame(nil, flagCommand, property([]byte("\x05READY"), "Socket-Type", "DEALER"))...)},
		"no type":     {pub, append(greeting(), frame(nil, flagCommand, []byte("\x05READY"))...)},
		"a SUB":       {router, append(greeting(), frame(nil, flagCommand, property([]byte("\x05READY"), "Socket-Type", "SUB"))...)},
	} {
		conn, err := net.Dial("tcp", c.to)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(c.sent); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil && !bytes.Contains([]byte(err.Error()), []byte("reset")) {
			t.Errorf("%s: is not left: %v", name, err)
		}
		conn.Close()
	}
	sub := subscribe(t, p, "kv@")
	p.Feed("gopher", "plan").Cuts([]int{0, 16})
	if tags := events(t, receive(t, sub), 0, map[uint64][]uint32{}); !slices.Equal(tags, []string{"AllBlocksCleared"}) {
		t.Errorf("%q", tags)
	}
	// 64 connections are the most of a socket; one that leaves makes room.
	var all []net.Conn
	for range mostPeers {
		c, err := net.Dial("tcp", pub)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	last := all[len(all)-1]
	last.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, _ := io.ReadFull(last, make([]byte, 64)); n != 0 {
		t.Errorf("one too many is greeted")
	}
	for _, c := range all {
		c.Close()
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", pub)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := io.ReadFull(c, make([]byte, 64))
		if c.Close(); n == 64 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no room is made")
		}
	}
}

// TestBlocks: blocks have 16 tokens where pieces are made of such.
func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		cuts []int
		want int
	}{{[]int{0, 512, 1024, 1500}, 16}, {[]int{0, 48, 96, 100}, 16}, {[]int{0, 8, 16, 17}, 8}, {[]int{0, 100}, 16}, {[]int{}, 16}, {[]int{0, 24, 64, 80}, 8}} {
		if n := blockOf(c.cuts); n != c.want {
			t.Errorf("%v: %d, want %d", c.cuts, n, c.want)
		}
	}
}

// TestAddress reads endpoints.
func TestAddress(t *testing.T) {
	for _, c := range []struct {
		endpoint, address string
		loopback          bool
	}{{"tcp://127.0.0.1:5557", "127.0.0.1:5557", true}, {"tcp://*:5557", ":5557", false}, {"tcp://[::1]:1", "[::1]:1", true},
		{"tcp://10.0.0.1:1", "10.0.0.1:1", false}, {"tcp://localhost:1", "localhost:1", true}} {
		if a, l, err := Address(c.endpoint); err != nil || a != c.address || l != c.loopback {
			t.Errorf("%s: %s, %v, %v", c.endpoint, a, l, err)
		}
	}
	for _, bad := range []string{"", "127.0.0.1:5557", "ipc:///x", "tcp://:1", "tcp://a", "tcp://a:"} {
		if a, _, err := Address(bad); err == nil {
			t.Errorf("%q is %s", bad, a)
		}
	}
}

// FuzzPeer reads what a peer sends.
func FuzzPeer(f *testing.F) {
	f.Add(frame(nil, flagCommand, property([]byte("\x05READY"), "Socket-Type", "SUB")))
	f.Add(message([]byte{1, 'k', 'v'}, nil, make([]byte, 300)))
	f.Add(binary.BigEndian.AppendUint64([]byte{flagLong}, 1<<63))
	f.Fuzz(func(t *testing.T, b []byte) {
		z := &conn{r: bufio.NewReader(bytes.NewReader(b))}
		for {
			parts, _, err := z.message()
			if err != nil {
				return
			}
			if len(parts) == 0 || len(parts) > mostFrames {
				t.Fatalf("%d parts", len(parts))
			}
			for _, p := range parts {
				if len(p) > mostFrame {
					t.Fatalf("%d bytes", len(p))
				}
				if kind, err := socketType(p); err == nil && len(kind) > len(p) {
					t.Fatal(kind)
				}
			}
		}
	})
}
