package conform

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A tab is the page in a browser, with what it complained of.
type tab struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	bad []string
}

func browser() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// newTab opens the page, width pixels wide; dark or light.
func newTab(t *testing.T, width int64, dark bool) *tab {
	t.Helper()
	return newTabAt(t, server, width, dark)
}

// newTabAt opens the page of a server.
func newTabAt(t *testing.T, server string, width int64, dark bool) *tab {
	t.Helper()
	path := browser()
	if path == "" {
		t.Fatal("no Chromium is installed")
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.Flag("hide-scrollbars", true), chromedp.UserDataDir(t.TempDir())))
	t.Cleanup(stop)
	x := &tab{t: t, ctx: ctx}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	x.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			x.mu.Lock()
			x.bad = append(x.bad, string(m.Type)+": "+m.Text+" "+m.URL)
			x.mu.Unlock()
		}
	}()
	x.do(chromedp.EmulateViewport(width, 800), chromedp.Navigate(server+"/"), chromedp.WaitVisible("#input"))
	x.until(`document.querySelector("#model").value !== ""`)
	return x
}

func (x *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	x.t.Helper()
	if err := chromedp.Do(x.ctx, actions...); err != nil {
		x.t.Fatal(err, x.bad)
	}
}

// js evaluates an expression to a text.
func (x *tab) js(expression string) string {
	x.t.Helper()
	out, err := chromedp.Run(x.ctx, chromedp.Evaluate[string](`String(`+expression+`)`))
	if err != nil {
		x.t.Fatalf("%s: %s", expression, err)
	}
	return out
}

// until waits for an expression to become true.
func (x *tab) until(expression string) {
	x.t.Helper()
	if _, err := chromedp.Run(x.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		x.t.Fatalf("%s: %s; the page shows %s", expression, err, x.js(`document.querySelector("#log").innerText`))
	}
}

// is fails unless an expression has a value.
func (x *tab) is(expression, want string) {
	x.t.Helper()
	if got := x.js(expression); got != want {
		x.t.Errorf("%s is %q, want %q", expression, got, want)
	}
}

// key presses a key with modifiers.
func (x *tab) key(key string, modifiers ...chromedp.Modifier) {
	x.t.Helper()
	x.do(chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...)))
}

// say sends a message by keyboard and waits for its answer.
func (x *tab) say(text string) {
	x.t.Helper()
	n := x.js(`path().length`)
	x.do(chromedp.SendKeys("#input", text), chromedp.SendKeys("#input", kb.Enter))
	x.until(`!busy && path().length > ` + n)
}

// clean fails if the page complained or if it is wider than its window.
func (x *tab) clean() {
	x.t.Helper()
	x.is(`document.documentElement.scrollWidth - innerWidth`, "0")
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.bad) > 0 {
		x.t.Errorf("the page complains: %s", strings.Join(x.bad, "; "))
	}
}

// shot keeps a screenshot in docs with -update, and elsewhere if there is a folder for it.
func (x *tab) shot(name string) {
	x.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if *update {
		dir = filepath.Join(root, "docs")
	}
	if dir == "" {
		return
	}
	x.do(chromedp.Sleep(400 * time.Millisecond))
	png, err := chromedp.Run(x.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o644); err != nil {
		x.t.Fatal(err)
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
