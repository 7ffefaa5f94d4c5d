package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/runtime/chat"
)

// TestStoredResponses: a response is there for the key that it was made for, until it is deleted.
func TestStoredResponses(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "a"}, {Key: "b"}} })
	x.fake.answers["Hello"] = "Hi."
	as := func(key, method, path, body string) (int, string) {
		return x.do(method, path, body, "Authorization", "Bearer "+key)
	}
	for _, body := range []string{`{"input": "Hello"}`, `{"input": "Hello", "stream": true}`} {
		_, first := as("a", "POST", "/v1/responses", body)
		if strings.Contains(body, "stream") {
			all := events(t, first, false)
			first = fmt.Sprint(strings.TrimSuffix(all[len(all)-1][strings.Index(all[len(all)-1], `"response":`)+len(`"response":`):], "}"))
			first = first[:strings.LastIndex(first, "}")+1]
		}
		id := first[strings.Index(first, "resp_"):][:37]
		path := "/v1/responses/" + id
		if status, b := as("a", "GET", path, ""); status != 200 || get(t, b, "id") != id || get(t, b, "status") != "completed" || get(t, b, "output", 0, "content", 0, "text") != "Hi." {
			t.Errorf("%d %s", status, b)
		}
		if status, b := as("b", "GET", path, ""); status != 404 || get(t, b, "error", "code") != "response_not_found" {
			t.Errorf("another key: %d %s", status, b)
		}
		if status, _ := as("b", "DELETE", path, ""); status != 404 {
			t.Errorf("another key deletes: %d", status)
		}
		if status, b := as("a", "GET", path+"?stream=true", ""); status != 400 || get(t, b, "error", "param") != "stream" {
			t.Errorf("%d %s", status, b)
		}
		if status, b := as("a", "DELETE", path, ""); status != 200 || get(t, b, "deleted") != true {
			t.Errorf("%d %s", status, b)
		}
		if status, _ := as("a", "GET", path, ""); status != 404 {
			t.Errorf("deleted: %d", status)
		}
	}
	if n := x.server.store.order.Len(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	_, b := as("a", "POST", "/v1/responses", `{"input": "Hello", "store": false}`)
	if status, _ := as("a", "GET", "/v1/responses/"+get(t, b, "id").(string), ""); status != 404 {
		t.Errorf("not to be stored: %d", status)
	}
	for _, path := range []string{"POST /v1/responses/x/cancel", "GET /v1/responses/x/input_items", "POST /v1/responses/compact"} {
		method, path, _ := strings.Cut(path, " ")
		if status, b := as("a", method, path, ""); status != 501 || !strings.Contains(b, path+" is not supported") {
			t.Errorf("%s: %d %s", path, status, b)
		}
	}
}

// TestTruncation: with auto the first turns go until the rest fits; the system's message and the last turn stay.
func TestTruncation(t *testing.T) {
	x := newFixture(t, nil)
	var input strings.Builder
	for i := range 40 {
		fmt.Fprintf(&input, `{"role": "user", "content": "question %d %s"}, {"role": "assistant", "content": "answer %d"}, `, i, strings.Repeat("a b c d ", 40), i)
	}
	body := `{"instructions": "Be brief.", "truncation": %q, "input": [` + input.String() + `{"role": "user", "content": "the last"}]}`
	status, b := x.do("POST", "/v1/responses", fmt.Sprintf(body, "auto"))
	prompt := x.tok.Decode(x.fake.last().Prompt, true)
	if n := len(x.fake.last().Prompt); status != 200 || get(t, b, "truncation") != "auto" || n > 2048*3/4 || n < 600 {
		t.Errorf("%d, %d tokens: %s", status, n, b)
	}
	if strings.Contains(prompt, "question 0 ") || !strings.Contains(prompt, "question 39 ") || !strings.Contains(prompt, "Be brief.") || !strings.Contains(prompt, "the last") {
		t.Error(prompt)
	}
	if status, b := x.do("POST", "/v1/responses", fmt.Sprintf(body, "disabled")); status != 400 || get(t, b, "error", "code") != "context_length_exceeded" {
		t.Errorf("%d %s", status, b)
	}
	if status, b := x.do("POST", "/v1/responses", `{"truncation": "auto", "input": "`+strings.Repeat("a b c d ", 2000)+`"}`); status != 400 || get(t, b, "error", "code") != "context_length_exceeded" {
		t.Errorf("one turn that does not fit: %d %s", status, b)
	}
}

func TestWithoutFirst(t *testing.T) {
	all := []chat.Message{{Role: "system"}, {Role: "user", Content: "1"}, {Role: "assistant"}, {Role: "tool"}, {Role: "developer"}, {Role: "user", Content: "2"}, {Role: "assistant"}, {Role: "user", Content: "3"}, {Role: "assistant"}}
	for share, want := range map[float64]string{0.01: "system developer user2 assistant user3 assistant", 0.9: "system developer user3 assistant"} {
		said := ""
		for _, m := range withoutFirst(all, share) {
			said += m.Role + m.Content + " "
		}
		if strings.TrimSpace(said) != want {
			t.Errorf("%g: %s, want %s", share, said, want)
		}
	}
	if n := len(withoutFirst(all[7:], 0.5)); n != 2 {
		t.Errorf("the last turn has %d messages", n)
	}
}

// TestSlotsOfOthers: how much others read and wrote is for administrators.
func TestSlotsOfOthers(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "a"}, {Key: "b", Admin: true}} })
	x.do("POST", "/v1/responses", `{"input": "Hello"}`, "Authorization", "Bearer b")
	x.fake.mu.Lock()
	x.fake.active = 1
	x.fake.mu.Unlock()
	for key, want := range map[string]float64{"a": 0, "b": 512} {
		for path, at := range map[string][]any{"/slots": {0}, "/load": {"models", 0, "slots", 0}} {
			_, b := x.do("GET", path, "", "Authorization", "Bearer "+key)
			if row := get(t, b, at...).(map[string]any); row["tokens"] != want || row["state"] != "answer" {
				t.Errorf("%s of %s: %s", path, key, b)
			}
		}
	}
}
