"use strict";
// The page of zincrun serve. Text of models and users goes into text nodes only.

// ---- small helpers ----
const $ = (id) => document.getElementById(id);
const store = {
  get(key, or) { try { const v = localStorage.getItem("zincrun." + key); return v === null ? or : JSON.parse(v); } catch { return or; } },
  set(key, value) {
    try { localStorage.setItem("zincrun." + key, JSON.stringify(value)); return true; }
    catch { notice("The browser's storage is full: this conversation is not kept. Delete old ones."); return false; }
  },
  drop(key) { localStorage.removeItem("zincrun." + key); },
};

// el makes an element: el("a.cls", {attributes, onevent}, children...).
function el(what, props, ...children) {
  const [tag, ...classes] = what.split(".");
  const e = document.createElement(tag || "div");
  if (classes.length) e.className = classes.join(" ");
  for (const [k, v] of Object.entries(props || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v === true) e.setAttribute(k, "");
    else if (v !== false && v != null) e.setAttribute(k, v);
  }
  e.append(...children.filter((c) => c != null && c !== false));
  return e;
}

const SVG = "http://www.w3.org/2000/svg";
const shapes = {
  copy: "M7 7h9v9H7zM13 7V4H4v9h3", edit: "M4 16l1-4 8.5-8.5 3 3L8 15zM12 5l3 3", again: "M15.5 8A6 6 0 1 0 16 11.500M16 4v4h-4",
  left: "M12 5l-5 5 5 5", right: "M8 5l5 5-5 5", drop: "M5 5l10 10M15 5L5 15", done: "M4 10.500l4 4 8-9",
};
function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const p = document.createElementNS(SVG, "path");
  p.setAttribute("d", shapes[name]);
  svg.append(p);
  return svg;
}
function iconButton(name, label, onclick) {
  return el("button.icon", { type: "button", title: label, "aria-label": label, onclick }, icon(name));
}
function copyButton(label, text) {
  const b = iconButton("copy", label, async () => {
    try { await navigator.clipboard.writeText(text()); } catch { notice("The browser does not allow copying."); return; }
    b.replaceChildren(icon("done"));
    setTimeout(() => b.replaceChildren(icon("copy")), 1200);
  });
  return b;
}
let noticeTimer;
function notice(text) {
  $("notice").textContent = text;
  clearTimeout(noticeTimer);
  if (text) noticeTimer = setTimeout(() => notice(""), 8000);
}
const number = (x, digits = 0) => Number(x).toLocaleString("en", { maximumFractionDigits: digits });
const rate = (x) => number(x, x < 10 ? 1 : 0);
function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024 || unit === "GiB") return number(n, n < 10 && unit !== "B" ? 1 : 0) + " " + unit;
    n /= 1024;
  }
}
const plural = (n, what) => number(n) + " " + what + (n === 1 ? "" : "s");

// ---- Markdown, into nodes ----
// split cuts a text into blocks, so that only those that changed are made anew while an answer streams.
function split(source) {
  const lines = source.replace(/\r\n?/g, "\n").split("\n");
  const blocks = [];
  for (let i = 0; i < lines.length;) {
    const start = i, line = lines[i];
    const fence = /^( {0,3})(`{3,}|~{3,})/.exec(line);
    if (!line.trim()) { i++; continue; }
    if (fence) {
      const end = new RegExp("^ {0,3}" + fence[2][0] + "{" + fence[2].length + ",}\\s*$");
      for (i++; i < lines.length && !end.test(lines[i]); i++);
      i++;
    } else if (/^ {0,3}(#{1,6}\s|([-*_])(\s*\2){2,}\s*$)/.test(line)) i++;
    else if (isItem(line)) {
      for (i++; i < lines.length; i++) {
        if (lines[i].trim()) { if (!isItem(lines[i]) && !/^\s/.test(lines[i]) && !lines[i - 1].trim()) break; if (/^ {0,3}(```|~~~|#{1,6}\s)/.test(lines[i])) break; }
      }
    } else if (/^ {0,3}>/.test(line)) while (i < lines.length && lines[i].trim() && (/^ {0,3}>/.test(lines[i]) || !starts(lines[i]))) i++;
    else for (i++; i < lines.length && lines[i].trim() && !starts(lines[i]); i++);
    blocks.push(lines.slice(start, i).join("\n").trimEnd());
  }
  return blocks;
}
const isItem = (line) => /^\s*([-*+]|\d{1,9}[.)])\s+\S?/.test(line);
const starts = (line) => /^ {0,3}(`{3,}|~{3,}|#{1,6}\s|>|([-*_])(\s*\2){2,}\s*$)/.test(line) || /^\s{0,3}([-*+]|1[.)])\s+\S/.test(line);

function block(source) {
  const lines = source.split("\n");
  const fence = /^( {0,3})(`{3,}|~{3,})\s*([^\s`]*)/.exec(lines[0]);
  if (fence) {
    const end = lines.length > 1 && new RegExp("^ {0,3}" + fence[2][0] + "{" + fence[2].length + ",}\\s*$").test(lines.at(-1));
    const text = lines.slice(1, end ? -1 : undefined).map((l) => l.startsWith(fence[1]) ? l.slice(fence[1].length) : l).join("\n");
    return codeBlock(text, fence[3]);
  }
  const head = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/.exec(lines[0]);
  if (head) return inline(el("h" + head[1].length), head[2]);
  if (/^ {0,3}([-*_])(\s*\1){2,}\s*$/.test(lines[0])) return el("hr");
  if (/^ {0,3}>/.test(lines[0])) return markdown(el("blockquote"), lines.map((l) => l.replace(/^ {0,3}> ?/, "")).join("\n"));
  if (isItem(lines[0])) return list(lines);
  if (lines.length > 1 && lines[0].includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(lines[1]) && lines[1].includes("|")) return table(lines);
  return inline(el("p"), lines.join("\n"));
}
function codeBlock(text, lang) {
  const code = el("code");
  highlight(code, text);
  return el("div.code", null, el("span.lang", null, lang || "", copyButton("Copy", () => text)), el("pre", { tabindex: 0 }, code));
}
const indent = (line) => /^\s*/.exec(line)[0].replace(/\t/g, "    ").length;
function list(lines) {
  const base = indent(lines[0]), first = /^\s*(?:[-*+]|(\d+)[.)])/.exec(lines[0]);
  const out = first[1] ? el("ol", { start: first[1] === "1" ? null : first[1] }) : el("ul");
  let item = null, width = 0;
  const flush = () => {
    if (!item) return;
    const task = /^\[([ xX])\]\s/.exec(item[0]);
    if (task) item[0] = item[0].slice(4);
    const li = el(task ? "li.task" : "li", null, task && el("input", { type: "checkbox", disabled: true, checked: task[1] !== " " }));
    const blocks = split(item.join("\n"));
    // An item of one paragraph has none around its text.
    blocks.forEach((b, i) => { if (i === 0 && !starts(b) && !isItem(b)) inline(li, b); else li.append(block(b)); });
    out.append(li);
  };
  for (const line of lines) {
    const m = /^(\s*(?:[-*+]|\d{1,9}[.)])\s+)(.*)$/.exec(line);
    if (m && indent(line) <= base + 1) { flush(); width = m[1].length; item = [m[2]]; }
    else if (isItem(line) && item) { const cut = Math.min(indent(line), width); if (item.length && item.at(-1).trim() && !/^\s*([-*+]|\d)/.test(item.at(-1))) item.push(""); item.push(line.slice(cut)); }
    else if (item) item.push(line.slice(Math.min(indent(line), width)));
  }
  flush();
  return out;
}
function cells(line) {
  return line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replace(/\\\|/g, "|"));
}
function table(lines) {
  const align = cells(lines[1]).map((c) => c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : "");
  const row = (line, tag) => el("tr", null, ...cells(line).slice(0, Math.max(align.length, 1)).map((c, i) => inline(el(align[i] ? tag + "." + align[i] : tag), c)));
  return el("div.scroll", { tabindex: 0 }, el("table", null, el("thead", null, row(lines[0], "th")), el("tbody", null, ...lines.slice(2).map((l) => row(l, "td")))));
}
// inline appends a text with its emphasis, code and links.
function inline(to, text, depth = 0) {
  const rule = /\\([\\`*_{}[\]()#+\-.!~|<>])|(`+)([^]*?[^`])\2(?!`)|!?\[((?:[^[\]]|\[[^\]]*\])*)\]\(\s*<?([^\s)>]*)>?(?:\s+["'(][^)]*)?\)|(\*\*|__)(?=\S)([^]*?\S)\6|(\*|_)(?=\S)([^]*?[^\s*_])\8(?![\w*])|~~(?=\S)([^]*?\S)~~|(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?])|( {2,}|\\)?\n/g;
  let at = 0, m;
  while ((m = rule.exec(text))) {
    const before = text[m.index - 1] || " ";
    if (m[8] === "_" && /\w/.test(before) || m[6] === "__" && /\w/.test(before)) { rule.lastIndex = m.index + 1; continue; }
    to.append(text.slice(at, m.index));
    at = rule.lastIndex;
    const nest = (tag, inner) => depth < 8 ? inline(el(tag), inner, depth + 1) : el(tag, null, inner);
    if (m[1]) to.append(m[1]);
    else if (m[2]) to.append(el("code", null, m[3].replace(/\n/g, " ").replace(/^ (.*) $/, "$1")));
    else if (m[5] !== undefined) to.append(link(m[5], m[4]));
    else if (m[6]) to.append(nest("strong", m[7]));
    else if (m[8]) to.append(nest("em", m[9]));
    else if (m[10]) to.append(nest("s", m[10]));
    else if (m[11]) to.append(link(m[11], m[11]));
    else to.append(el("br"));
  }
  to.append(text.slice(at));
  return to;
}
function link(href, text) {
  let url;
  try { url = new URL(href); } catch { return text || href; }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return text || href;
  return el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, text || href);
}
// markdown shows a text in an element, and keeps what it shows already.
function markdown(to, source) {
  const blocks = split(source), old = to.blocks || [];
  let same = 0;
  while (same < blocks.length && blocks[same] === old[same]) same++;
  while (to.childNodes.length > same) to.lastChild.remove();
  for (const b of blocks.slice(same)) to.append(block(b));
  to.blocks = blocks;
  return to;
}
const words = new Set(("func return if else for range switch case default break continue package import var const type struct interface map chan go defer select " +
  "nil true false fn let mut pub use impl trait match loop while in def class self None True False lambda yield async await from as with try except finally raise pass " +
  "function new this null undefined export extends static void int string bool char float double public private protected throw catch SELECT FROM WHERE").split(" "));
function highlight(to, text) {
  if (text.length > 50000) { to.append(text); return; }
  const rule = /(\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|(?<=^|\s)#[^\n]*)|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'|`[^`]*`?)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
  let at = 0, m;
  while ((m = rule.exec(text))) {
    const kind = m[1] ? "com" : m[2] ? "str" : m[3] ? "num" : words.has(m[4]) ? "kw" : "";
    if (!kind) continue;
    to.append(text.slice(at, m.index), el("span." + kind, null, m[0]));
    at = rule.lastIndex;
  }
  to.append(text.slice(at));
}

// ---- settings ----
const sampling = [
  ["temperature", "Temperature", "float"], ["top_k", "Top k", "int"], ["top_p", "Top p", "float"], ["min_p", "Min p", "float"],
  ["repeat_penalty", "Repeat penalty", "float"], ["presence_penalty", "Presence penalty", "float"], ["frequency_penalty", "Frequency penalty", "float"],
  ["max_tokens", "Answer, tokens", "int"], ["seed", "Seed", "int"], ["stop", "Stop at", "text"],
];
let settings = store.get("settings", {});
let server = { models: [], props: {} };

function buildSettings() {
  for (const [key, label, kind] of sampling) {
    $("sampling").append(el("label.row", null, label, el("input", { "data-key": key, "data-kind": kind, inputmode: kind === "text" ? "text" : "decimal", autocomplete: "off", placeholder: kind === "int" && key === "max_tokens" ? "as fits" : "" })));
  }
  for (const f of document.querySelectorAll("#settings [data-key]")) {
    f.value = settings[f.dataset.key] ?? "";
    f.addEventListener("input", () => {
      settings[f.dataset.key] = f.value;
      f.classList.toggle("wrong", ["int", "float"].includes(f.dataset.kind) && parse(f.dataset.kind, f.value) === null);
      store.set("settings", settings);
      if (f.dataset.key === "tools") checkTools();
      if (f.dataset.key === "key") loadModels();
    });
  }
  $("system").addEventListener("input", () => { talk.system = $("system").value; settings.system = talk.system; store.set("settings", settings); save(); });
  checkTools();
}
function parse(kind, value) {
  value = String(value ?? "").trim();
  if (value === "") return undefined;
  if (kind === "text") return value;
  const n = Number(value);
  return Number.isFinite(n) && (kind !== "int" || Number.isInteger(n)) ? n : null;
}
function tools() {
  const text = (settings.tools || "").trim();
  if (!text) return undefined;
  const v = JSON.parse(text);
  return Array.isArray(v) ? v : [v];
}
function checkTools() {
  let hint = "The model may call these; you give the result.";
  let wrong = false;
  try { tools(); } catch (e) { hint = "This is not JSON: " + e.message; wrong = true; }
  $("tools-hint").textContent = hint;
  $("tools-hint").classList.toggle("wrong", wrong);
}
function showDefaults() {
  const d = server.props.default_generation_settings?.params || {};
  for (const [key] of sampling) {
    const f = document.querySelector(`[data-key="${key}"]`);
    if (d[key] !== undefined && key !== "seed") f.placeholder = number(d[key], 3);
    else if (key === "seed") f.placeholder = "random";
  }
}

// ---- the server ----
function headers() {
  const h = { "Content-Type": "application/json" };
  if (settings.key) h.Authorization = "Bearer " + settings.key;
  return h;
}
async function ask(path, options) {
  let r;
  try { r = await fetch(path, { ...options, headers: headers() }); }
  catch (e) { if (e.name === "AbortError") throw e; throw new Error("The server does not answer."); }
  if (r.ok) return r;
  let message = r.status + " " + r.statusText;
  try { message = (await r.json()).error.message; } catch { /* the status says it */ }
  throw new Error(message);
}
async function loadModels() {
  try {
    server.models = (await (await ask("/v1/models")).json()).data;
    notice("");
  } catch (e) { notice(e.message); return; }
  const names = server.models.map((m) => m.id);
  const here = names.includes(talk.model) ? talk.model : names.includes(settings.model) ? settings.model : names[0];
  $("model").replaceChildren(...names.map((n) => el("option", { value: n, selected: n === here }, n)));
  await loadProps();
}
async function loadProps() {
  try { server.props = await (await ask("/props?model=" + encodeURIComponent($("model").value))).json(); } catch { server.props = {}; }
  $("version").textContent = server.props.build_info ? "zincrun " + server.props.build_info : "";
  showDefaults();
}
// events yields what the server sends as the data of its events.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += value || "";
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
    if (done) throw new Error("The answer broke off.");
  }
}

// ---- conversations: trees whose branches are other wordings and other answers ----
let index = store.get("index", []); // {id, title, at}
let talk = null;                    // {id, model, system, nodes, next}
let busy = null;                    // {abort, node}

const root = () => talk.nodes[0];
function fresh() {
  return { id: Date.now().toString(36) + Math.random().toString(36).slice(2, 6), model: "", system: settings.system || "", nodes: [{ kids: [], pick: 0 }] };
}
function add(parent, node) {
  const id = talk.nodes.length;
  talk.nodes.push({ ...node, id, parent, kids: [], pick: 0 });
  const p = talk.nodes[parent];
  p.pick = p.kids.push(id) - 1;
  return talk.nodes[id];
}
// path is the branch that is shown, without the root.
function path(to) {
  const all = [];
  if (to !== undefined) {
    for (let n = talk.nodes[to]; n.parent !== undefined; n = talk.nodes[n.parent]) all.unshift(n);
    return all;
  }
  for (let n = root(); n.kids.length; all.push(n)) n = talk.nodes[n.kids[n.pick]];
  return all;
}
function save() {
  if (talk.nodes.length < 2) return;
  const first = talk.nodes.find((n) => n.role === "user");
  const title = (first ? first.text : "").trim().replace(/\s+/g, " ").slice(0, 80) || "Conversation";
  index = [{ id: talk.id, title, at: Date.now() }, ...index.filter((c) => c.id !== talk.id)];
  if (store.set("talk." + talk.id, talk)) store.set("index", index);
  showList();
}
function open(id) {
  stop();
  talk = (id && store.get("talk." + id, null)) || fresh();
  location.replace("#" + (talk.nodes.length > 1 ? talk.id : ""));
  $("system").value = talk.system;
  if (talk.model && [...$("model").options].some((o) => o.value === talk.model)) { $("model").value = talk.model; loadProps(); }
  show();
  showList();
  document.body.classList.remove("side-open");
  $("shade").hidden = $("settings").hidden && $("engine").hidden || !narrow();
}
function remove(id) {
  index = index.filter((c) => c.id !== id);
  store.drop("talk." + id);
  store.set("index", index);
  if (id === talk.id) open(); else showList();
}
function showList() {
  $("list").replaceChildren(...index.map((c) => el(c.id === talk.id ? "li.here" : "li", null,
    el("button.pick", { type: "button", title: c.title, "aria-current": c.id === talk.id ? "true" : null, onclick: () => { open(c.id); $("input").focus(); } }, c.title),
    el("button.icon.drop", { type: "button", title: "Delete", "aria-label": "Delete " + c.title, onclick: () => remove(c.id) }, icon("drop")))));
}

// ---- what a branch looks like ----
function show() {
  const all = path();
  $("log").replaceChildren(...(all.length ? all.map(message) : [el("div.empty", null, el("h1", null, "What shall it be?"), el("p", null, "Conversations are kept in this browser only."))]));
  $("log").scrollTop = $("log").scrollHeight;
}
function branches(n) {
  const kids = talk.nodes[n.parent].kids;
  if (kids.length < 2) return null;
  const at = kids.indexOf(n.id);
  const go = (step) => () => { if (!busy) { turn(n, step); } };
  return el("span.branch", null, iconButton("left", "Branch before", go(-1)), (at + 1) + "/" + kids.length, iconButton("right", "Branch behind", go(1)));
}
function turn(n, step) {
  const p = talk.nodes[n.parent];
  p.pick = (p.pick + step + p.kids.length) % p.kids.length;
  save();
  const top = $("log").scrollTop;
  show();
  $("log").scrollTop = top;
}
function message(n) {
  const m = el("article.msg." + n.role, { "data-id": n.id, "aria-label": { user: "You", assistant: "Answer", tool: "Result" }[n.role] });
  fill(m, n);
  return m;
}
function fill(m, n) {
  if (n.role !== "assistant") {
    m.replaceChildren(el("div.body", null, n.text),
      el("div.tools-row", null, branches(n), el("span.act", null, copyButton("Copy", () => n.text), n.role === "user" && iconButton("edit", "Edit", () => edit(m, n)))));
    return;
  }
  let think = m.querySelector(".think"), body = m.querySelector(".md");
  if (!body) {
    think = el("details.think", { hidden: true }, el("summary"), el("div"));
    body = el("div.md.body");
    m.replaceChildren(think, body, el("div.calls"), el("div.state"), el("div.tools-row"));
  }
  const live = busy && busy.node === n;
  think.hidden = !n.reasoning;
  if (n.reasoning) {
    think.firstChild.textContent = live && !n.text && !n.calls.length ? "Thinking…" : "Thought" + (n.thought ? " for " + number(n.thought / 1000, 1) + " s" : "");
    think.lastChild.textContent = n.reasoning.trim();
  }
  markdown(body, n.text);
  m.querySelector(".calls").replaceChildren(...calls(n, live));
  m.querySelector(".state").replaceChildren(...(n.error ? [el("div.problem", { role: "alert" }, n.error)] : live && !n.text ? [el("span.wait", { role: "status", "aria-label": "Waiting" })] : []));
  m.lastChild.replaceChildren(...(live ? [] : [branches(n), meta(n), el("span.act", null, copyButton("Copy", () => n.text), iconButton("again", "Answer again (Alt+R)", () => again(n)))].filter(Boolean)));
}
function meta(n) {
  const s = n.stats;
  if (!s) return null;
  const parts = [plural(s.tokens, "token")];
  if (s.rate) parts.push(rate(s.rate) + " tok/s");
  if (s.first) parts.push("first after " + number(s.first) + " ms");
  if (s.cached) parts.push(number(s.cached) + " of " + number(s.prompt) + " prompt tokens cached");
  else if (s.prompt) parts.push(plural(s.prompt, "prompt token"));
  if (s.finish === "length") parts.push("cut off: no room for more");
  if (s.finish === "stopped") parts.push("stopped");
  return el("span.meta", null, ...parts.map((p) => el("span", null, p)));
}
function pretty(json) {
  try { return JSON.stringify(JSON.parse(json), null, 2); } catch { return json; }
}
function calls(n, live) {
  if (!n.calls.length) return [];
  const answered = n.kids.length > 0;
  const fields = [];
  const cards = n.calls.map((c) => {
    const code = el("code");
    highlight(code, pretty(c.arguments));
    const card = el("div.call", null, el("div.name", null, c.name), el("pre", { tabindex: 0 }, code));
    if (!live && !answered) {
      const f = el("textarea", { rows: 1, placeholder: "Result of the call", "aria-label": "Result of " + c.name });
      fields.push(f);
      card.append(f);
    }
    return card;
  });
  if (fields.length) {
    cards.push(el("div.edit", null, el("div.buttons", null, el("button.plain.main", {
      type: "button", onclick: () => {
        let at = n.id;
        n.calls.forEach((c, i) => { at = add(at, { role: "tool", text: fields[i].value, call: c.id, name: c.name }).id; });
        answer(at);
      },
    }, "Give the result" + (fields.length > 1 ? "s" : "")))));
  }
  return cards;
}
function edit(m, n) {
  if (busy) return;
  const area = el("textarea", { "aria-label": "Edit message" });
  area.value = n.text;
  const send = () => { const made = add(n.parent, { role: "user", text: area.value }); answer(made.id); };
  area.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { e.stopPropagation(); fill(m, n); $("input").focus(); }
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); }
  });
  m.replaceChildren(el("div.edit", null, area, el("div.buttons", null,
    el("button.plain", { type: "button", onclick: () => fill(m, n) }, "Cancel"), el("button.plain.main", { type: "button", onclick: send }, "Send"))));
  area.style.height = Math.min(area.scrollHeight + 4, 400) + "px";
  area.focus();
}

// ---- asking and answering ----
function request(to) {
  const messages = [];
  if (talk.system.trim()) messages.push({ role: "system", content: talk.system });
  for (const n of path(to)) {
    if (n.role === "user") messages.push({ role: "user", content: n.text });
    else if (n.role === "tool") messages.push({ role: "tool", content: n.text, tool_call_id: n.call, name: n.name });
    else {
      const m = { role: "assistant", content: n.text };
      if (n.reasoning) m.reasoning_content = n.reasoning;
      if (n.calls.length) m.tool_calls = n.calls.map((c) => ({ id: c.id, type: "function", function: { name: c.name, arguments: c.arguments } }));
      messages.push(m);
    }
  }
  const body = { model: $("model").value, messages, stream: true, stream_options: { include_usage: true } };
  for (const [key, label, kind] of sampling) {
    const v = parse(kind, settings[key]);
    if (v === null) throw new Error(label + " is not a number.");
    if (v !== undefined) body[key] = v;
  }
  if (settings.think) body.chat_template_kwargs = { enable_thinking: settings.think === "on" };
  const budget = parse("int", settings.budget);
  if (budget !== undefined && budget !== null) body.thinking_budget_tokens = budget;
  const t = tools();
  if (t && t.length) body.tools = t;
  return body;
}
async function answer(to) {
  if (busy) return;
  let body;
  try { body = request(to); } catch (e) { notice(e.message); return; }
  talk.model = body.model;
  const node = add(to, { role: "assistant", text: "", reasoning: "", calls: [], model: body.model });
  busy = { abort: new AbortController(), node };
  document.body.classList.add("busy");
  $("send").title = "Stop (Esc)";
  $("send").setAttribute("aria-label", "Stop");
  $("send").disabled = false;
  show();
  save();
  location.replace("#" + talk.id);
  const here = talk, begun = performance.now();
  let first = 0, tokens = 0, dirty = false;
  const element = () => document.querySelector(`[data-id="${node.id}"]`);
  const paint = () => {
    dirty = false;
    const log = $("log"), m = element();
    if (!m || talk !== here) return;
    const low = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    fill(m, node);
    if (low) log.scrollTop = log.scrollHeight;
  };
  const stats = { tokens: 0 };
  try {
    const response = await ask("/v1/chat/completions", { method: "POST", body: JSON.stringify(body), signal: busy.abort.signal });
    for await (const e of events(response)) {
      if (e.error) throw new Error(e.error.message);
      const c = e.choices[0];
      if (c && c.finish_reason) stats.finish = c.finish_reason;
      if (e.usage) Object.assign(stats, { tokens: e.usage.completion_tokens, prompt: e.usage.prompt_tokens, cached: (e.usage.prompt_tokens_details || {}).cached_tokens || 0 });
      if (e.timings && e.timings.predicted_per_second) stats.rate = e.timings.predicted_per_second;
      if (!c) continue;
      const d = c.delta;
      if (!first && (d.content || d.reasoning_content || d.tool_calls)) first = performance.now();
      if (d.reasoning_content) { node.reasoning += d.reasoning_content; tokens++; }
      if (d.content) { if (node.reasoning && !node.thought) node.thought = performance.now() - begun; node.text += d.content; tokens++; }
      for (const t of d.tool_calls || []) {
        const call = node.calls[t.index] ||= { id: t.id, name: "", arguments: "" };
        call.name += t.function.name || "";
        call.arguments += t.function.arguments || "";
        if (node.reasoning && !node.thought) node.thought = performance.now() - begun;
      }
      if (!dirty) { dirty = true; requestAnimationFrame(paint); }
    }
  } catch (e) {
    if (e.name === "AbortError") { stats.finish = "stopped"; stats.tokens = tokens; } else node.error = e.message;
  }
  stats.first = first && first - begun;
  node.stats = node.error ? null : stats;
  node.calls = node.calls.filter(Boolean);
  busy = null;
  document.body.classList.remove("busy");
  $("send").title = "Send (Enter)";
  $("send").setAttribute("aria-label", "Send");
  if (talk === here) { paint(); save(); resize(); } else store.set("talk." + here.id, here);
  if (server.models.some((m) => m.id === body.model) && !server.props.default_generation_settings) loadProps();
}
function again(n) { if (!busy) answer(n.parent); }
function stop() { if (busy) busy.abort.abort(); }
function send() {
  if (busy) { stop(); return; }
  const text = $("input").value.trim();
  if (!text) return;
  const all = path();
  const last = all.at(-1);
  $("input").value = "";
  resize();
  answer(add(last ? last.id : 0, { role: "user", text }).id);
}
function resize() {
  const t = $("input");
  t.style.height = "auto";
  t.style.height = t.scrollHeight + "px";
  $("send").disabled = !busy && !t.value.trim();
}

// ---- the engine, live ----
const history = {}; // by model, tokens a second, one a second
let polling = null;
async function poll() {
  let load;
  try { load = await (await ask("/load")).json(); } catch (e) { $("engines").replaceChildren(el("p.hint", null, e.message)); return; }
  $("engines").replaceChildren(...load.models.map(engineView));
}
function engineView(m) {
  const box = el("section", null, el("h3", null, m.model));
  if (m.status !== "loaded") { box.append(el("p.hint", null, m.status === "loading" ? "Is being loaded." : "Is loaded when it is asked for.")); return box; }
  const h = history[m.model] ||= [];
  h.push([m.generate_rate, m.prompt_rate]);
  if (h.length > 120) h.shift();
  const figure = (value, what) => el("div.figure", null, el("b", null, value), el("small", null, what));
  box.append(el("p.hint", null, m.device),
    el("div.figures", null, figure(rate(m.generate_rate), "tokens/s written"), figure(rate(m.prompt_rate), "tokens/s read"),
      figure(m.running + " / " + m.slots.length, "slots in use"), figure(number(m.waiting), "waiting")),
    chart(h.map((x) => x[0])),
    el("div.chart-foot", null, el("span", null, "2 minutes"), el("span", null, "at most " + rate(Math.max(...h.map((x) => x[0]))) + " tok/s")));
  box.append(el("h3", null, "Slots"));
  m.slots.forEach((s, i) => {
    const bar = el("i." + (s.state === "answer" ? "decoding" : s.state === "prompt" ? "reading" : "idle"));
    bar.style.width = 100 * s.tokens / m.ctx + "%";
    box.append(el("div.slot", null, el("span", null, i + 1), el("div.bar", { title: s.state }, bar), el("span", null, number(s.tokens) + " / " + number(m.ctx))));
  });
  box.append(el("div.legend", null, el("span.decoding", null, "answering"), el("span.reading", null, "reading"), el("span", null, "idle, kept for the next turn")));
  const total = Object.values(m.memory).reduce((a, b) => a + b, 0) || 1;
  const parts = [["weights", m.memory.weights], ["kv", m.memory.kv + m.memory.state], ["rest", total - m.memory.weights - m.memory.kv - m.memory.state]];
  const bar = el("div.bar");
  for (const [name, n] of parts) { const i = el("i." + name); i.style.width = 100 * n / total + "%"; bar.append(i); }
  box.append(el("h3", null, "Memory, " + bytes(total)), bar,
    el("div.legend", null, el("span.weights", null, "weights " + bytes(parts[0][1])), el("span.kv", null, "conversations " + bytes(parts[1][1])), el("span", null, "working " + bytes(parts[2][1]))));
  const asked = m.prompt_tokens + m.cached_tokens;
  box.append(el("h3", null, "Since the start"), el("p.hint", null,
    plural(m.generated_tokens, "token") + " generated, " + plural(asked, "token") + " of prompts" + (asked ? ", " + number(100 * m.cached_tokens / asked) + " % of them from the cache" : "") + "."));
  return box;
}
function chart(values) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [k, v] of Object.entries({ viewBox: "0 0 119 50", preserveAspectRatio: "none", class: "chart", role: "img", "aria-label": "Tokens a second over the last two minutes" })) svg.setAttribute(k, v);
  const top = Math.max(1, ...values), from = 120 - values.length;
  const points = values.map((v, i) => (from + i) + "," + (47 - 42 * v / top).toFixed(1));
  const shape = (name, cls, pts) => { const p = document.createElementNS(SVG, name); p.setAttribute("points", pts); p.setAttribute("class", cls); svg.append(p); };
  shape("polygon", "area", from + ",50 " + points.join(" ") + " 119,50");
  shape("polyline", "line", points.join(" "));
  return svg;
}

// ---- panels, keys, theme ----
const narrow = () => matchMedia("(max-width: 62rem)").matches;
function panel(name, on) {
  for (const p of ["settings", "engine"]) {
    const open = p === name && on;
    $(p).hidden = !open;
    $("open-" + p).setAttribute("aria-expanded", open);
  }
  clearInterval(polling);
  if (name === "engine" && on) { poll(); polling = setInterval(poll, 1000); }
  $("shade").hidden = !on || !narrow();
  if (on) ($(name).querySelector("textarea") || $(name).querySelector("button")).focus();
  else $("open-" + name).focus();
}
const toggle = (name) => panel(name, $(name).hidden);
function side(on) {
  document.body.classList.toggle("side-open", on);
  $("shade").hidden = !on || !narrow();
  if (on) ($("list").querySelector("button") || $("new")).focus();
}
function theme(next) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  if (next) { settings.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; store.set("settings", settings); }
  const apply = () => { document.documentElement.dataset.theme = settings.theme || (dark.matches ? "dark" : "light"); };
  if (!next) dark.addEventListener("change", apply);
  apply();
}

theme(false);
talk = fresh();
buildSettings();
$("form").addEventListener("submit", (e) => { e.preventDefault(); send(); });
$("input").addEventListener("input", resize);
let entered = false; // by the key that sends; what would add a line for it must not
$("input").addEventListener("keyup", () => { entered = false; });
$("input").addEventListener("beforeinput", (e) => { if (entered && e.inputType === "insertLineBreak") e.preventDefault(); });
$("input").addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); entered = true; if (!busy) send(); }
  if (e.key === "ArrowUp" && !$("input").value && !busy) {
    const mine = path().findLast((n) => n.role === "user");
    if (mine) { e.preventDefault(); edit(document.querySelector(`[data-id="${mine.id}"]`), mine); }
  }
});
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") {
    if (busy) stop();
    else if (!$("settings").hidden) panel("settings", false);
    else if (!$("engine").hidden) panel("engine", false);
    else if (document.body.classList.contains("side-open")) { side(false); $("menu").focus(); }
    return;
  }
  if (!e.altKey || e.ctrlKey || e.metaKey) return;
  const last = path().findLast((n) => n.role === "assistant");
  const forked = path().findLast((n) => talk.nodes[n.parent].kids.length > 1);
  const does = {
    KeyN: () => { open(); $("input").focus(); }, KeyE: () => toggle("engine"), KeyS: () => toggle("settings"),
    KeyL: () => narrow() ? side(!document.body.classList.contains("side-open")) : ($("list").querySelector("button") || $("new")).focus(),
    KeyR: () => last && again(last), ArrowLeft: () => forked && !busy && turn(forked, -1), ArrowRight: () => forked && !busy && turn(forked, 1),
  }[e.code];
  if (does && !(e.code.startsWith("Arrow") && $("input").value && document.activeElement === $("input"))) { e.preventDefault(); does(); }
});
$("new").addEventListener("click", () => { open(); $("input").focus(); });
$("menu").addEventListener("click", () => side(!document.body.classList.contains("side-open")));
$("shade").addEventListener("click", () => { side(false); for (const p of ["settings", "engine"]) if (!$(p).hidden) panel(p, false); });
$("theme").addEventListener("click", () => theme(true));
for (const p of ["settings", "engine"]) {
  $("open-" + p).addEventListener("click", () => toggle(p));
  $(p).querySelector(".close").addEventListener("click", () => panel(p, false));
}
$("model").addEventListener("change", () => { talk.model = settings.model = $("model").value; store.set("settings", settings); loadProps(); if (!path().length) show(); });
$("forget").addEventListener("click", () => {
  if (!confirm("Delete all conversations of this browser?")) return;
  for (const c of index) store.drop("talk." + c.id);
  index = [];
  store.set("index", index);
  open();
});
addEventListener("hashchange", () => { const id = location.hash.slice(1); if (id && id !== talk.id) open(id); });
open(location.hash.slice(1));
loadModels().then(() => { if (!path().length) show(); });
resize();
