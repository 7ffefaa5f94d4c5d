package conform

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// TestKVEvents has llm-d's client, go-zeromq's SUB and DEALER as llm-d-router has them at 0539d49 (zmq_subscriber.go),
// read what a server tells of its prompts, and then again what it told.
func TestKVEvents(t *testing.T) {
	cmd := exec.Command(zincrun, "serve", "--port", "0", "--device", "host", plan, "--name", "gopher",
		"--kv-events", "tcp://127.0.0.1:0", "--kv-events-replay", "tcp://127.0.0.1:0", "--kv-events-pod", "10.0.0.1:8000")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	var line struct{ Msg, URL, Pub, Replay string }
	in := bufio.NewScanner(stderr)
	for line.Msg != "load" && in.Scan() {
		json.Unmarshal(in.Bytes(), &line)
	}
	if line.Msg != "load" {
		t.Fatalf("the server does not come: %v", cmd.Wait())
	}
	go io.Copy(io.Discard, stderr)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	sub := zmq4.NewSub(ctx)
	defer sub.Close()
	if err := sub.Dial("tcp://" + line.Pub); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, "kv@"); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(get(t, line.URL+"/metrics"), "zincrun_kv_events_subscribers 1\n") {
		if ctx.Err() != nil {
			t.Fatal("nobody has subscribed")
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // until the topic has come, too
	body := fmt.Sprintf(`{"prompt": %q, "max_tokens": 1}`, strings.Repeat("func main() { } ", 60))
	resp, err := http.Post(line.URL+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()

	msg, err := sub.Recv()
	if err != nil {
		t.Fatal(err)
	}
	seq := blocks(t, msg.Frames)
	dealer := zmq4.NewDealer(ctx)
	defer dealer.Close()
	if err := dealer.Dial("tcp://" + line.Replay); err != nil {
		t.Fatal(err)
	}
	if err := dealer.SendMulti(zmq4.NewMsgFrom(nil, msg.Frames[1])); err != nil {
		t.Fatal(err)
	}
	for want := seq; ; want++ {
		again, err := dealer.Recv()
		if err != nil {
			t.Fatal(err)
		}
		frames := again.Frames
		if len(frames) > 0 && len(frames[0]) == 0 {
			frames = frames[1:]
		}
		if len(frames) == 3 && len(frames[2]) == 0 {
			if want == seq {
				t.Error("nothing comes again")
			}
			break
		}
		if have := blocks(t, frames); have != want {
			t.Errorf("number %d, want %d", have, want)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// blocks decodes a message whose events store blocks, and returns its number.
func blocks(t *testing.T, frames [][]byte) uint64 {
	t.Helper()
	if len(frames) != 3 || string(frames[0]) != "kv@10.0.0.1:8000@gopher" || len(frames[1]) != 8 {
		t.Fatalf("%q", frames)
	}
	var batch []any
	if err := msgpack.Unmarshal(frames[2], &batch); err != nil || len(batch) != 3 {
		t.Fatal(batch, err)
	}
	for _, e := range batch[1].([]any) {
		event := e.([]any)
		if event[0] != "BlockStored" || len(event[1].([]any))*int(event[4].(int8)) != len(event[3].([]any)) || len(event[3].([]any)) == 0 {
			t.Errorf("%v", event)
		}
	}
	return binary.BigEndian.Uint64(frames[1])
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
