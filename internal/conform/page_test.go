package conform

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestPage(t *testing.T) {
	x := newTab(t, 1200, false)
	x.do(chromedp.Evaluate[chromedp.Void](`settings.temperature = "0"; undefined`))
	x.say("What does strings.Cut do?")
	if answer := x.js(`document.querySelector(".msg.assistant .md").innerText`); !strings.Contains(answer, "sep") {
		t.Errorf("the answer is %q", answer)
	}
	x.is(`document.querySelector(".think").hidden`, "false")
	x.is(`document.querySelector(".think").open`, "false")
	if meta := x.js(`document.querySelector(".meta").innerText`); !strings.Contains(meta, "tok/s") {
		t.Errorf("no rate: %q", meta)
	}
	x.say("And its signature?")
	x.is(`document.querySelectorAll(".msg.assistant pre").length`, "1")
	if meta := x.js(`document.querySelectorAll(".meta")[1].innerText`); !strings.Contains(meta, "cached") {
		t.Errorf("the second turn took nothing from the cache: %q", meta)
	}
	x.say("Which package has json.Marshal?")
	x.shot("page-light.png")

	// What was said is there after a reload.
	x.do(chromedp.Reload(), chromedp.WaitVisible(".msg.assistant"))
	x.is(`document.querySelectorAll(".msg").length`, "6")
	x.until(`document.querySelector("#model").value !== ""`)

	// Another answer, another wording: branches, and the way back.
	x.key("r", kb.ModifierAlt)
	x.until(`!busy && document.querySelector(".branch") && document.querySelector(".branch").innerText.includes("2/2")`)
	x.key(kb.ArrowLeft, kb.ModifierAlt)
	x.is(`document.querySelector(".branch").innerText.trim()`, "1/2")
	x.do(chromedp.Focus("#input"))
	x.key(kb.ArrowUp)
	x.do(chromedp.WaitVisible(".edit textarea"))
	x.do(chromedp.SetValue(".edit textarea", "Which package has fmt.Println?"), chromedp.SendKeys(".edit textarea", kb.Enter))
	x.until(`!busy && path().length === 6 && path()[4].text.includes("Println")`)
	x.is(`root().kids.length + path()[3].kids.length`, "3")

	// The engine, live.
	x.key("e", kb.ModifierAlt)
	x.do(chromedp.WaitVisible("#engine .slot"))
	x.do(chromedp.Evaluate[chromedp.Void](`send(), undefined`), chromedp.SendKeys("#input", "What does strings.Cut do?"), chromedp.SendKeys("#input", kb.Enter))
	x.until(`document.querySelectorAll("#engine .figure b")[0].innerText !== "0"`)
	x.until(`!busy`)
	x.shot("page-engine.png")
	x.clean()
}

// Everything can be done by keyboard, in a window of 360 pixels, and in the dark.
func TestPageNarrow(t *testing.T) {
	x := newTab(t, 360, true)
	x.is(`document.activeElement.id`, "input")
	x.say("Write a small HTTP server.")
	x.clean()
	x.shot("page-narrow.png")
	x.key("l", kb.ModifierAlt)
	x.do(chromedp.WaitVisible("#side"))
	x.key(kb.Escape)
	x.key("s", kb.ModifierAlt)
	x.do(chromedp.WaitVisible("#system"))
	x.clean()
	x.do(chromedp.SendKeys("#system", "Answer in one word."))
	x.key(kb.Escape)
	x.do(chromedp.WaitNotVisible("#settings"))
	x.is(`document.activeElement.id`, "open-settings")
	x.key("n", kb.ModifierAlt)
	x.is(`document.activeElement.id`, "input")
	x.say("Which package is json.Marshal in?")
	if answer := x.js(`path()[1].text`); !strings.Contains(answer, "encoding/json") || strings.Contains(answer, " ") {
		t.Errorf("the system prompt has no effect: %q", answer)
	}
	x.clean()
}

func TestPageStops(t *testing.T) {
	x := newTab(t, 1000, true)
	x.do(chromedp.SendKeys("#input", "Write a small HTTP server."), chromedp.SendKeys("#input", kb.Enter))
	x.until(`busy && path()[1] && (path()[1].text + path()[1].reasoning).length > 20`)
	x.key(kb.Escape)
	x.until(`!busy`)
	x.is(`path()[1].stats.finish`, "stopped")
	x.is(`document.querySelector("#send").getAttribute("aria-label")`, "Send")
	x.clean()
}

func TestPageTools(t *testing.T) {
	x := newTab(t, 1000, true)
	x.key("s", kb.ModifierAlt)
	x.do(chromedp.WaitVisible("#settings"))
	x.do(chromedp.Evaluate[chromedp.Void](`(() => { const f = document.querySelector("[data-key=tools]"); f.value = ` + "`" +
		`[{"type": "function", "function": {"name": "add", "description": "Adds two numbers.", "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}}]` + "`" +
		`; f.dispatchEvent(new Event("input")); settings.temperature = "0"; })()`))
	x.key(kb.Escape)
	x.say("What is 17 plus 25?")
	x.is(`document.querySelector(".call .name").innerText`, "add")
	x.is(`JSON.stringify(JSON.parse(document.querySelector(".call pre").innerText))`, `{"a":17,"b":25}`)
	x.do(chromedp.SendKeys(".call textarea", "42"), chromedp.Click(".msg.assistant .plain.main"))
	x.until(`!busy && path().length === 4`)
	if answer := x.js(`path()[3].text`); !strings.Contains(answer, "42") {
		t.Errorf("the answer from the result is %q", answer)
	}
	x.shot("page-tools.png")
	x.clean()
}

// Text of models and users is shown, and does nothing.
func TestPageHostile(t *testing.T) {
	x := newTab(t, 800, false)
	hostile := "# <img src=x onerror=alert(1)>\n\n<script>alert(2)</script>\n\n[a](javascript:alert(3)) ![b](data:text/html,x) <b>c</b>\n\n" +
		"```html\n<iframe src=javascript:alert(4)></iframe>\n```\n\n| a | b |\n|---|:-:|\n| <svg onload=alert(5)> | `x` |\n\n- [ ] one\n- two\n  1. three\n\n> **bold** _em_ ~~no~~ https://go.dev/.\n\n\x00\u202e" +
		strings.Repeat("[", 2000) + strings.Repeat("**a", 500) + strings.Repeat("> ", 300)
	x.do(chromedp.Evaluate[chromedp.Void](`(() => { const n = add(add(0, {role: "user", text: ` + quoted(hostile) + `}).id, {role: "assistant", text: ` + quoted(hostile) +
		`, reasoning: ` + quoted(hostile) + `, calls: [{id: "1", name: "<b>f</b>", arguments: "<script>"}]}); show(); })()`))
	x.is(`document.querySelectorAll("#log script, #log img, #log iframe, #log b, #log svg[onload]").length`, "0")
	x.is(`[...document.querySelectorAll("#log a")].map(a => a.href).join()`, "https://go.dev/")
	x.is(`document.querySelectorAll("#log td, #log li, #log strong, #log em, #log s, #log h1").length > 7`, "true")
	x.is(`document.querySelector(".md pre code").innerText`, "<iframe src=javascript:alert(4)></iframe>")
	x.clean()
}
