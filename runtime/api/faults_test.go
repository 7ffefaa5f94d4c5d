package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLeavesAtAnyByte has clients leave behind each byte of a request, and behind each of a reply's, by an end or a
// reset of the connection: nothing runs on, and the next one is answered.
func TestLeavesAtAnyByte(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "One two three."
	addr := x.listen()
	q := body(`, "stream": true`)
	request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(q), q)
	leave := func(c net.Conn, i int) {
		if i%2 == 0 {
			c.(*net.TCPConn).SetLinger(0)
		}
		c.Close()
	}
	for i := range len(request) {
		leave(x.raw(addr, request[:i]), i)
	}
	conn := x.raw(addr, request)
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(whole), "data: [DONE]\n\n") {
		t.Fatalf("%q, %v", whole, err)
	}
	for i := 0; ; i += 3 {
		c := x.raw(addr, request)
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err := io.CopyN(io.Discard, c, int64(i))
		if err == io.EOF && i > len(whole) { // there is a header, too
			break
		} else if err != nil {
			t.Fatalf("behind %d bytes: %v", i, err)
		}
		leave(c, i)
	}
	x.settled()
	if status, b := x.do("POST", "/v1/chat/completions", body("")); status != 200 || get(t, b, "choices", 0, "message", "content") != "One two three." {
		t.Errorf("%d: %s", status, b)
	}
}

// TestManyConnections has 1,000 clients with a connection each ask at once: each is answered, or told that the queue is
// full, and then the next one is answered.
func TestManyConnections(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"], x.fake.delay = "One two three.", 20*time.Millisecond
	addr := x.listen()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	var wait sync.WaitGroup
	var mu sync.Mutex
	replies := map[string]int{}
	for range 1000 {
		wait.Go(func() {
			reply := ""
			resp, err := client.Post("http://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(body("")))
			if err == nil {
				var b []byte
				b, err = io.ReadAll(resp.Body)
				resp.Body.Close()
				if reply = string(b); resp.StatusCode == 200 {
					reply, _ = get(t, reply, "choices", 0, "message", "content").(string)
				} else if strings.Contains(reply, "queue_full") {
					reply = resp.Status
				}
			}
			if err != nil {
				reply = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			replies[reply]++
		})
	}
	wait.Wait()
	right, refused := replies["One two three."], replies["429 Too Many Requests"]
	if right+refused != 1000 || right < 256 {
		t.Error(replies)
	}
	x.settled()
	if status, b := x.do("POST", "/v1/chat/completions", body("")); status != 200 {
		t.Errorf("%d: %s", status, b)
	}
}
