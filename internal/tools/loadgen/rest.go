package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// rested is what a server holds when nothing is asked of it.
type rested struct {
	slots   int                // in use
	metrics map[string]float64 // by name, summed over labels
}

// Metrics that say how much there is of something. Servers have them or not.
var holds = []struct {
	metric, what string
	grows        float64 // by what part it may grow
	slack        float64 // and by how much besides
}{
	{"zincrun_requests_running", "requests running", 0, 0},
	{"zincrun_requests_waiting", "requests waiting", 0, 0},
	{"llamacpp:requests_processing", "requests running", 0, 0},
	{"llamacpp:requests_deferred", "requests waiting", 0, 0},
	{"go_goroutines", "goroutines", 0, 4},
	{"process_open_fds", "open files", 0, 4},
	{"process_resident_memory_bytes", "bytes of memory", 0.25, 128 << 20},
}

// settle waits until no slot is in use and nothing is under way, and returns what the server holds
// then, or when the time for it is up.
func (s *soak) settle(ctx context.Context) (*rested, error) {
	deadline := time.Now().Add(s.rest)
	var last *rested
	for {
		// Connections that are kept for the next request cost the server goroutines.
		s.client.http.CloseIdleConnections()
		now, err := s.client.held(ctx)
		if err != nil {
			return nil, err
		}
		// Connections end a moment after their requests: what still falls is not at rest.
		if now.idle() && last != nil && now.metrics["go_goroutines"] >= last.metrics["go_goroutines"] || time.Now().After(deadline) {
			return now, nil
		}
		last = now
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (r *rested) idle() bool {
	return r.slots == 0 && r.metrics["zincrun_requests_running"]+r.metrics["zincrun_requests_waiting"] == 0
}

// held asks the server what it holds.
func (c *client) held(ctx context.Context) (*rested, error) {
	r := &rested{}
	var slots []struct {
		Busy bool `json:"is_processing"`
	}
	if err := c.call(ctx, "GET", "/slots", nil, &slots); err != nil {
		return nil, err
	}
	for _, slot := range slots {
		if slot.Busy {
			r.slots++
		}
	}
	resp, err := c.do(ctx, "GET", "/metrics", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /metrics: %w", statusError(resp))
	}
	r.metrics, err = readMetrics(resp.Body)
	return r, err
}

// readMetrics sums metrics of Prometheus's text format over their labels.
func readMetrics(in io.Reader) (map[string]float64, error) {
	sums := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(in, maxReply))
	for lines.Scan() {
		line := lines.Text()
		end := strings.IndexAny(line, "{ ")
		value := strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:])
		if strings.HasPrefix(line, "#") || end < 0 {
			continue
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("GET /metrics: %q is no metric", line)
		}
		sums[line[:end]] += x
	}
	return sums, lines.Err()
}

// compare notes what is left of all that a server held.
func (s *soak) compare(server string, before, after *rested) {
	s.left = append(s.left, leftOver{server + "slots in use", float64(before.slots), float64(after.slots), 0})
	for _, h := range holds {
		b, has := before.metrics[h.metric]
		if has {
			s.left = append(s.left, leftOver{server + h.what, b, after.metrics[h.metric], b*(1+h.grows) + h.slack})
		}
	}
}
