package report_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// chromiums are the names of the browser, that of Debian's smallest package first.
var chromiums = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// chromium is a browser without a window that is driven by the DevTools protocol,
// https://chromedevtools.github.io/devtools-protocol/, through a pair of pipes: JSON
// messages that end with a zero byte.
type chromium struct {
	t       *testing.T
	send    *os.File
	receive *bufio.Reader
	calls   int
	session string
	loaded  bool
	errors  []string // what the page has thrown or written to the console
}

// message is a call's answer, or an event.
type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

func startChromium(t *testing.T) *chromium {
	t.Helper()
	path := ""
	for _, name := range chromiums {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatalf("a browser is needed: one of %s", strings.Join(chromiums, ", "))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	theirIn, ourOut := pipe(t)
	ourIn, theirOut := pipe(t)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4, as it expects
	var noise bytes.Buffer
	cmd.Stderr = &noise
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	c := &chromium{t: t, send: ourOut, receive: bufio.NewReader(ourIn)}
	t.Cleanup(func() {
		c.session = ""
		c.call("Browser.close", nil, nil) // so that its children do not write into the folder any more
		cmd.Wait()
		cancel()
		ourOut.Close()
		ourIn.Close()
		if t.Failed() {
			t.Logf("%s: %s", path, noise.Bytes())
		}
	})
	var target struct{ TargetID string }
	c.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		c.call(domain+".enable", nil, nil)
	}
	return c
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// call calls a method and reads its result; events that come before it are noted.
func (c *chromium) call(method string, params, result any) {
	c.t.Helper()
	c.calls++
	if params == nil {
		params = struct{}{}
	}
	request := map[string]any{"id": c.calls, "method": method, "params": params}
	if c.session != "" {
		request["sessionId"] = c.session
	}
	data, err := json.Marshal(request)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.send.Write(append(data, 0)); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	for {
		m := c.read()
		if m.ID != c.calls {
			continue
		}
		if m.Error != nil {
			c.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				c.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

func (c *chromium) read() message {
	c.t.Helper()
	data, err := c.receive.ReadBytes(0)
	if err != nil {
		c.t.Fatalf("the browser has ended: %v", err)
	}
	var m message
	if err := json.Unmarshal(data[:len(data)-1], &m); err != nil {
		c.t.Fatal(err)
	}
	switch m.Method {
	case "Page.loadEventFired":
		c.loaded = true
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
		c.errors = append(c.errors, string(m.Params))
	}
	return m
}

// size makes the window that wide and high, in the colours of the scheme.
func (c *chromium) size(width, height int, scheme string) {
	c.t.Helper()
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	c.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// open loads a file.
func (c *chromium) open(path string) {
	c.t.Helper()
	c.loaded = false
	c.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for !c.loaded {
		c.read()
	}
}

// eval evaluates an expression of JavaScript.
func (c *chromium) eval(result any, format string, args ...any) {
	c.t.Helper()
	expression := fmt.Sprintf(format, args...)
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	c.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		c.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if err := json.Unmarshal(answer.Result.Value, result); err != nil {
		c.t.Fatalf("%s: %s: %v", expression, answer.Result.Value, err)
	}
}

func (c *chromium) number(format string, args ...any) (n float64) {
	c.t.Helper()
	c.eval(&n, format, args...)
	return n
}

func (c *chromium) text(format string, args ...any) (s string) {
	c.t.Helper()
	c.eval(&s, format, args...)
	return s
}

// point moves the mouse onto the first element of a selector, and presses it if press
// is set.
func (c *chromium) point(selector string, press bool) {
	c.t.Helper()
	var at struct{ X, Y float64 }
	c.eval(&at, `(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center", inline: "nearest"}); const r = e.getBoundingClientRect(); return {X: r.x + Math.min(r.width, 24) / 2, Y: r.y + Math.min(r.height, 16) / 2}; })()`, selector)
	mouse := func(kind string) {
		c.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
	mouse("mouseMoved")
	if press {
		mouse("mousePressed")
		mouse("mouseReleased")
	}
}

// key presses a key.
func (c *chromium) key(name string) {
	c.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		c.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": name, "code": name}, nil)
	}
}

// screenshot is the window as PNG.
func (c *chromium) screenshot() []byte {
	c.t.Helper()
	var shot struct{ Data string }
	c.call("Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": false}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}
