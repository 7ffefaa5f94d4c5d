package conform

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zincc-dev/zincc/internal/hosted"
	"github.com/zincc-dev/zincc/internal/progress"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/ui"
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
	if meta := x.js(`document.querySelectorAll(".meta")[1].innerText`); !strings.Contains(meta, "51 prompt tokens") {
		t.Errorf("the second turn's prompt: %q", meta)
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
	x.is(`document.querySelectorAll("#log td, #log li, #log strong, #log em, #log s, #log h2").length > 7`, "true")
	x.is(`document.querySelector(".md pre code").innerText`, "<iframe src=javascript:alert(4)></iframe>")
	x.clean()
}

// sizes are windows of a desk and of a phone.
var sizes = []int64{1280, 390}

// A reload during an answer keeps what has come, and the answer goes on.
func TestPageReload(t *testing.T) {
	for _, width := range sizes {
		x := newTab(t, width, false)
		x.do(chromedp.Evaluate[chromedp.Void](`settings.temperature = "0"; settings.think = "off"; store.set("settings", settings); undefined`))
		x.do(chromedp.SendKeys("#input", "Write a small HTTP server."), chromedp.SendKeys("#input", kb.Enter))
		x.until(`busy && path()[1] && path()[1].text.length > 40`)
		x.do(chromedp.Evaluate[chromedp.Void](`sessionStorage.setItem("before", path()[1].text.slice(0, 40)), undefined`), chromedp.Reload(), chromedp.WaitVisible(".msg.assistant"))
		x.until(`!busy && path()[1].stats && path()[1].stats.finish === "stop"`)
		x.is(`path().length`, "2")
		x.is(`path()[1].text.startsWith(sessionStorage.getItem("before"))`, "true")
		x.is(`path()[1].text.includes("ListenAndServe")`, "true")
		x.is(`path()[1].open`, "undefined")
		x.clean()
	}
}

// An answer that was cut off goes on, as long as it is the last.
func TestPageContinues(t *testing.T) {
	for _, width := range sizes {
		x := newTab(t, width, true)
		x.do(chromedp.Evaluate[chromedp.Void](`settings.temperature = "0"; settings.think = "off"; settings.max_tokens = "6"; undefined`))
		x.say("What does strings.Cut do?")
		x.is(`path()[1].stats.finish`, "length")
		x.do(chromedp.Evaluate[chromedp.Void](`settings.max_tokens = ""; undefined`))
		x.key("c", kb.ModifierAlt)
		x.until(`!busy && path()[1].stats && path()[1].stats.finish === "stop"`)
		x.is(`path()[1].text.trim()`, "Cut slices s around the first instance of sep, returning the text before and after sep.")
		x.is(`document.querySelectorAll("[aria-label^='Continue this']").length`, "0")
		x.clean()
	}
}

// Conversations are renamed, found, deleted and brought back, exported and imported.
func TestPageConversations(t *testing.T) {
	for _, width := range sizes {
		x := newTab(t, width, false)
		x.do(chromedp.Evaluate[chromedp.Void](`(() => { for (const [q, a] of [["About cutting", "needle in the answer"], ["About sorting", "binary"]]) { open(); add(add(0, {role: "user", text: q}).id, {role: "assistant", text: a, reasoning: "", calls: []}); save(); } show(); showList(); })()`))
		if width < 1000 {
			x.key("l", kb.ModifierAlt)
		}
		x.do(chromedp.WaitVisible("#search"), chromedp.SendKeys("#search", "NEEDLE"))
		x.is(`[...document.querySelectorAll("#list .pick")].map(b => b.innerText).join()`, "About cutting")
		x.do(chromedp.Click("#list [aria-label^=Rename]"), chromedp.WaitVisible(".rename"), chromedp.SendKeys(".rename", "Scissors"), chromedp.SendKeys(".rename", kb.Enter))
		x.is(`index.map(c => c.title).join()`, "About sorting,Scissors")
		x.do(chromedp.Click("#list [aria-label^=Delete]"))
		x.is(`index.length + "," + (store.get("talk." + index[0].id, null) !== null)`, "1,true")
		x.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#notice button").click(), undefined`))
		x.is(`index.map(c => c.title).join()`, "About sorting,Scissors")
		x.is(`found(index[1], "needle")`, "true")
		x.do(chromedp.Evaluate[chromedp.Void](`(async () => { const make = URL.createObjectURL; URL.createObjectURL = (b) => { window.exported = b; return make.call(URL, b); }; exportAll(); URL.createObjectURL = make;
			const text = await window.exported.text(); for (const c of [...index]) remove(c.id); $("notice").replaceChildren();
			const damaged = JSON.parse(text); damaged.talks.push({id: "x", nodes: [{kids: [1], pick: 0}, {id: 1, parent: 0, kids: [0], pick: 0, role: "user", text: "loop"}]}, {id: "../y", nodes: []});
			await importFile(new File([JSON.stringify(damaged)], "all.json")); window.imported = true; })(), undefined`))
		x.until(`window.imported`)
		x.is(`index.map(c => c.title).sort().join()`, "About sorting,Scissors")
		x.is(`$("notice").innerText`, "2 conversations imported, 2 are damaged and left out.")
		x.do(chromedp.Evaluate[chromedp.Void](`window.imported = false; importFile(new File(["{}"], "other.json")).then(() => { window.imported = true; }), undefined`))
		x.until(`window.imported`)
		x.is(`$("notice").innerText`, "other.json has no conversations of this page.")
		x.clean()
	}
}

// Text files go before the message; others are refused by name.
func TestPageFiles(t *testing.T) {
	for _, width := range sizes {
		x := newTab(t, width, true)
		x.do(chromedp.Evaluate[chromedp.Void](`settings.temperature = "0"; settings.think = "off"; window.done = false; (async () => { await attach([new File(["a ` + "```" + ` b"], "notes.md"), new File([new Uint8Array([0, 255])], "picture.png"), new File([new Uint8Array(2 << 20)], "large.txt")]); window.done = true; })(), undefined`))
		x.until(`window.done`)
		x.is(`[...document.querySelectorAll("#files .file")].map(f => f.firstChild.textContent).join()`, "notes.md")
		x.is(`$("notice").innerText`, "large.txt has 2 MiB; at most 1 MiB fit.")
		x.say("What does strings.Cut do?")
		x.is(`said(path()[0])`, "notes.md:\n````\na ``` b\n````\n\nWhat does strings.Cut do?")
		x.is(`request(path()[1].id).messages.at(-2).content === said(path()[0])`, "true")
		x.is(`document.querySelector(".msg.user details.file summary").firstChild.textContent`, "notes.md")
		x.is(`attached.length`, "0")
		x.clean()
	}
}

// LaTeX becomes MathML; what the page does not know stays as it was written.
func TestPageMath(t *testing.T) {
	x := newTab(t, 390, false)
	text := "It costs $5 and $6. Then $a_1^2+\\frac{1}{2}$ and \\(\\sqrt[3]{x}\\).\n\n$$\n\\sum_{i=1}^n i = \\left(\\frac{n(n+1)}{2}\\right)\n$$\n\n\\[ \\begin{cases} a & b \\\\ c & d \\end{cases} \\]\n\nand `$x$`, $\\unknown{x}$, \\[ \\begin{pmatrix} 1 \\]\n\n" +
		"$" + strings.Repeat("{", 500) + "$ $" + strings.Repeat("\\frac", 300) + "$"
	x.do(chromedp.Evaluate[chromedp.Void](`(() => { add(add(0, {role: "user", text: "x"}).id, {role: "assistant", text: ` + quoted(text) + `, reasoning: "", calls: []}); show(); })()`))
	x.is(`[...document.querySelectorAll(".md math annotation")].map(a => a.textContent.trim()).join(" | ")`,
		`a_1^2+\frac{1}{2} | \sqrt[3]{x} | \sum_{i=1}^n i = \left(\frac{n(n+1)}{2}\right) | \begin{cases} a & b \\ c & d \end{cases}`)
	x.is(`document.querySelectorAll(".md math[display=block]").length`, "2")
	x.is(`document.querySelectorAll(".md munderover, .md mroot, .md mfrac, .md mtr").length`, "6")
	x.is(`[...document.querySelectorAll(".md code")].slice(0, 2).map(c => c.textContent).join(" | ")`, `$x$ | $\unknown{x}$`)
	x.is(`document.querySelector(".md p").textContent.startsWith("It costs $5 and $6. Then")`, "true")
	x.clean()
}

// TestPageWaits asks for an answer while the model is compiled and loaded: the page says so, and how far it is, and
// shows the answer then.
func TestPageWaits(t *testing.T) {
	for _, width := range sizes {
		go1, go2 := make(chan struct{}), make(chan struct{})
		served := hosted.Scripted(t, "scripted", 4096, 1, func(string) string { return "It is there." })
		open := served.Open
		served.Open = func(ctx context.Context) (*api.Model, error) {
			task := progress.From(ctx).Begin("compiling")
			task.At(progress.Report{Part: "building kernels", Done: 45, Total: 100})
			<-go1
			task.Done()
			progress.From(ctx).Begin("loading").At(progress.Report{Done: 3, Total: 4})
			<-go2
			return open(ctx)
		}
		s := api.New(api.Options{Served: []*api.Served{served}, Loopback: true, UI: ui.Handler()})
		web := httptest.NewServer(s)
		x := newTabAt(t, web.URL, width, width == sizes[0])
		x.do(chromedp.SendKeys("#input", "Are you there?"), chromedp.SendKeys("#input", kb.Enter))
		shown := func(want string) {
			t.Helper()
			x.until(`(document.querySelector(".msg.assistant .state") || {}).innerText.includes(` + quoted(want) + `)`)
		}
		shown("compiling, 45 %, building kernels")
		x.is(`document.querySelector(".wait").getAttribute("aria-label")`, "The model is not loaded yet: compiling, 45 %, building kernels")
		x.key("e", kb.ModifierAlt)
		x.until(`document.querySelector("#engine").innerText.includes("compiling, 45 %")`)
		x.key("e", kb.ModifierAlt) // Escape would stop the answer
		close(go1)
		shown("loading, 75 %")
		close(go2)
		x.until(`!busy && path().length === 2`)
		x.is(`path()[1].text`, "It is there.")
		x.is(`document.querySelector(".msg.assistant .state").innerText`, "")
		x.clean()
		web.CloseClientConnections()
		web.Close()
		if err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestPageAccess asks axe about the page with a conversation, both panels and a notice, in both themes; it needs npm ci
// in node.
func TestPageAccess(t *testing.T) {
	axe, err := os.ReadFile("node/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range sizes {
		for _, dark := range []bool{false, true} {
			x := newTab(t, width, dark)
			text := "# Head\n\nSome **bold** `code` $x^2$ [a](https://go.dev)\n\n> quote\n\n```go\nfunc f() int { return 1 } // note \"s\"\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n$$\\frac{1}{2}$$\n\n- [x] done"
			x.do(chromedp.Evaluate[chromedp.Void](`(() => { const n = add(add(0, {role: "user", text: "Hello", files: [{name: "a.txt", text: "b"}]}).id, {role: "assistant", text: ` + quoted(text) + `, reasoning: "why", calls: [{id: "1", name: "f", arguments: "{}"}], stats: {tokens: 3, rate: 9, finish: "length"}}); save(); show(); showList(); })()`))
			x.do(chromedp.Evaluate[chromedp.Void](string(axe) + `;undefined`))
			check := func(what string) {
				x.do(chromedp.Evaluate[chromedp.Void](`window.axed = null; axe.run().then((r) => { window.axed = r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.target + " " + n.failureSummary).join("; ")).join("\n") || "none"; }), undefined`))
				x.until(`window.axed`)
				if found := x.js(`window.axed`); found != "none" {
					t.Errorf("%d pixels, dark %v, %s: %s", width, dark, what, found)
				}
			}
			check("a conversation")
			x.is(`document.querySelectorAll("h1").length`, "1")
			x.key("s", kb.ModifierAlt)
			check("settings")
			x.key("e", kb.ModifierAlt)
			x.do(chromedp.WaitVisible("#engine .slot"))
			check("engine")
			x.key(kb.Escape)
			x.do(chromedp.Evaluate[chromedp.Void](`remove(talk.id), undefined`))
			check("a notice")
			x.clean()
		}
	}
}
