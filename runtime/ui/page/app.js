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
  left: "M12 5l-5 5 5 5", on: "M4 5l6 5-6 5zM11 5l6 5-6 5z", right: "M8 5l5 5-5 5", drop: "M5 5l10 10M15 5L5 15", done: "M4 10.500l4 4 8-9",
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
function notice(text, what, does) {
  $("notice").replaceChildren(text, ...(what ? [el("button.plain", { type: "button", onclick: () => { notice(""); does(); } }, what)] : []));
  $("notice").classList.toggle("calm", Boolean(what));
  clearTimeout(noticeTimer);
  if (text) noticeTimer = setTimeout(() => notice(""), what ? 15000 : 8000);
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
    const formula = /^ {0,3}(\$\$|\\\[)/.exec(line), shut = formula && (formula[1] === "$$" ? "$$" : "\\]");
    if (formula && !line.slice(formula[0].length).includes(shut)) {
      for (i++; i < lines.length && !lines[i].includes(shut); i++);
      i++;
    } else if (fence) {
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
  if (head) return inline(el("h" + Math.min(head[1].length + 1, 6)), head[2]); // the page has the only h1
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
    const li = el(task ? "li.task" : "li", null, task && el("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": task[1] !== " " ? "Done" : "To do" }));
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
  const rule = /\\(?!\((?=[^]*?\\\))|\[(?=[^]*?\\\]))([\\`*_{}[\]()#+\-.!~|<>$])|(`+)([^]*?[^`])\2(?!`)|!?\[((?:[^[\]]|\[[^\]]*\])*)\]\(\s*<?([^\s)>]*)>?(?:\s+["'(][^)]*)?\)|(\*\*|__)(?=\S)([^]*?\S)\6|(\*|_)(?=\S)([^]*?[^\s*_])\8(?![\w*])|~~(?=\S)([^]*?\S)~~|(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?])|( {2,}|\\)?\n|\$\$([^]+?)\$\$|\\\[([^]+?)\\\]|\\\(([^]+?)\\\)|\$(?=\S)((?:[^$\n\\]|\\.)*?[^\s\\$])\$(?!\d)/g;
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
    else if (m[13] || m[14] || m[15] || m[16]) to.append(formula(m[13] || m[14] || m[15] || m[16], Boolean(m[13] || m[14]), m[0]));
    else to.append(el("br"));
  }
  to.append(text.slice(at));
  return to;
}
// formula shows LaTeX as MathML, and what it does not know as it was written.
function formula(tex, display, written) {
  try { return math(tex, display); } catch { return el("code", null, written); }
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

// ---- LaTeX, into MathML ----
const signs = Object.fromEntries(("alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ " +
  "phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω infty ∞ partial ∂ nabla ∇ hbar ℏ ell ℓ emptyset ∅ varnothing ∅ Re ℜ Im ℑ aleph ℵ " +
  "cdot ⋅ times × div ÷ pm ± mp ∓ ast ∗ star ⋆ circ ∘ bullet ∙ oplus ⊕ otimes ⊗ odot ⊙ cap ∩ cup ∪ setminus ∖ wedge ∧ vee ∨ land ∧ lor ∨ neg ¬ lnot ¬ " +
  "le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ ll ≪ gg ≫ approx ≈ sim ∼ simeq ≃ cong ≅ equiv ≡ propto ∝ in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ supset ⊃ supseteq ⊇ perp ⊥ parallel ∥ mid ∣ models ⊨ vdash ⊢ " +
  "to → rightarrow → leftarrow ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ implies ⟹ iff ⟺ mapsto ↦ longrightarrow ⟶ uparrow ↑ downarrow ↓ " +
  "forall ∀ exists ∃ nexists ∄ therefore ∴ because ∵ angle ∠ triangle △ square □ dots … ldots … cdots ⋯ vdots ⋮ ddots ⋱ prime ′ dagger † " +
  "langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ lbrace { rbrace } lbrack [ rbrack ] vert | Vert ‖ backslash \\ " +
  "sum ∑ prod ∏ coprod ∐ int ∫ iint ∬ iiint ∭ oint ∮ bigcup ⋃ bigcap ⋂ bigoplus ⨁ bigotimes ⨂ bigvee ⋁ bigwedge ⋀").split(" ").map((x, i, all) => i % 2 ? null : [x, all[i + 1]]).filter(Boolean));
const letters = /^\p{L}|[∞∅ℏℓℜℑℵ∂∇]/u;
const tall = /[∑∏∐⋃⋂⨁⨂⋁⋀]|^(?:lim|max|min|sup|inf|limsup|liminf|argmax|argmin)$/;
const named = new Set("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp det dim ker deg gcd arg hom Pr lim max min sup inf limsup liminf argmax argmin".split(" "));
const accents = { hat: "^", widehat: "^", bar: "¯", overline: "¯", vec: "→", tilde: "~", widetilde: "~", dot: "˙", ddot: "¨", overbrace: "⏞", underline: "_", underbrace: "⏟" };
const spaces = { ",": ".17em", ":": ".22em", ";": ".28em", "!": "-.17em", " ": ".33em", quad: "1em", qquad: "2em" };
const fonts = { mathbf: 0x1d400, boldsymbol: 0x1d400, mathbb: 0x1d538, mathcal: 0x1d49c, mathfrak: 0x1d504, mathsf: 0x1d5a0, mathtt: 0x1d670 };
const holes = { "𝔺": "ℂ", "𝔿": "ℍ", "𝕅": "ℕ", "𝕇": "ℙ", "𝕈": "ℚ", "𝕉": "ℝ", "𝕑": "ℤ", "𝒝": "ℬ", "𝒠": "ℰ", "𝒡": "ℱ", "𝒣": "ℋ", "𝒤": "ℐ", "𝒧": "ℒ", "𝒨": "ℳ", "𝒭": "ℛ" };
const fences = { pmatrix: "()", bmatrix: "[]", Bmatrix: "{}", vmatrix: "||", Vmatrix: "‖‖", cases: "{", matrix: "", smallmatrix: "", array: "" };
const lined = /^(aligned|align|alignat|split|gather|gathered|equation|eqnarray)\*?$/;
function math(tex, display) {
  if (tex.length > 4000) throw new Error("long");
  const tokens = tex.match(/\\(?:[a-zA-Z]+|[^])|[^]/g) || [];
  let at = 0, depth = 0;
  const m = (tag, props, ...kids) => {
    const e = document.createElementNS("http://www.w3.org/1998/Math/MathML", tag);
    for (const [k, v] of Object.entries(props || {})) e.setAttribute(k, v);
    e.append(...kids);
    return e;
  };
  const skip = () => { while (/^\s$/.test(tokens[at] || "")) at++; };
  const want = (t) => { skip(); if (tokens[at++] !== t) throw new Error("want " + t); };
  const raw = () => { // what braces hold, as it is
    want("{");
    let text = "";
    for (let open = 1; ; at++) {
      if (at >= tokens.length) throw new Error("open brace");
      if (tokens[at] === "{") open++;
      if (tokens[at] === "}" && --open === 0) { at++; return text; }
      text += tokens[at];
    }
  };
  const row = (...ends) => { // up to one of ends, which stays
    const kids = [];
    if (++depth > 60) throw new Error("deep");
    for (skip(); at < tokens.length && !ends.includes(tokens[at]); skip()) kids.push(scripts(atom()));
    depth--;
    return kids.length === 1 ? kids[0] : m("mrow", null, ...kids);
  };
  const arg = () => {
    skip();
    if (tokens[at] !== "{") return atom();
    at++;
    const r = row("}");
    want("}");
    return r;
  };
  const scripts = (base) => {
    let sub, sup;
    for (skip(); ["_", "^", "'"].includes(tokens[at]) || tokens[at] === "\\limits" || tokens[at] === "\\nolimits"; skip()) {
      const t = tokens[at++];
      if (t === "_" && !sub) sub = arg();
      else if (t === "^" && !sup) sup = arg();
      else if (t === "'") { let n = 1; while (tokens[at] === "'") { n++; at++; } const p = m("mo", null, "′".repeat(n)); sup = sup ? m("mrow", null, p, sup) : p; }
      else if (t === "_" || t === "^") throw new Error("twice");
    }
    if (!sub && !sup) return base;
    const under = display && tall.test(base.textContent) || base.hasAttribute("data-brace");
    const kids = [base, sub, sup].filter(Boolean);
    return m(under ? (sub && sup ? "munderover" : sub ? "munder" : "mover") : (sub && sup ? "msubsup" : sub ? "msub" : "msup"), null, ...kids);
  };
  const delimiter = () => {
    skip();
    const t = tokens[at++] || "";
    if (t === ".") return "";
    const d = t[0] === "\\" ? ({ "\\{": "{", "\\}": "}", "\\|": "‖" })[t] || signs[t.slice(1)] : t;
    if (!d || /[\p{L}\p{N}]/u.test(d)) throw new Error("delimiter");
    return d;
  };
  const fence = (d) => d ? m("mo", { stretchy: "true" }, d) : "";
  const tableOf = (name) => {
    const rows = [[]];
    if (name === "array") raw();
    if (/^alignat/.test(name)) raw();
    for (;;) {
      rows.at(-1).push(m("mtd", null, row("&", "\\\\", "\\end")));
      const t = tokens[at++];
      if (t === "\\\\") rows.push([]);
      else if (t === "\\end") { if (raw() !== name) throw new Error("end"); break; }
      else if (t !== "&") throw new Error("no end");
    }
    if (rows.at(-1).length === 1 && !rows.at(-1)[0].textContent) rows.pop();
    const lines = lined.test(name);
    return m("mtable", lines ? { displaystyle: "true", class: "lines" } : { class: name === "cases" ? "cases" : "" }, ...rows.map((r) => m("mtr", null, ...r)));
  };
  const atom = () => {
    const t = tokens[at++];
    if (t === undefined) throw new Error("end");
    if (t === "{") { at--; return arg(); }
    if (/^\d$/.test(t)) { let n = t; while (/^[\d.]$/.test(tokens[at] || "") && (tokens[at] !== "." || /\d/.test(tokens[at + 1] || ""))) n += tokens[at++]; return m("mn", null, n); }
    if (t[0] !== "\\") {
      if ("}&#%$~".includes(t)) { if (t === "~") return m("mspace", { width: ".33em" }); throw new Error(t); }
      return /\p{L}/u.test(t) ? m("mi", null, t) : m("mo", "()[]|/".includes(t) ? { stretchy: "false" } : null, t === "-" ? "−" : t === "*" ? "∗" : t);
    }
    const name = t.slice(1);
    if (signs[name] && !(name in accents)) return letters.test(signs[name]) ? m("mi", null, signs[name]) : m("mo", "⟨⟩⌊⌋⌈⌉{}[]|‖".includes(signs[name]) ? { stretchy: "false" } : null, signs[name]);
    if ("{}|%#&$_".includes(name)) return m("mo", { stretchy: "false" }, name === "|" ? "‖" : name);
    if (spaces[name]) return m("mspace", { width: spaces[name] });
    if (named.has(name)) return m("mi", null, name);
    if (name in accents) {
      const below = name.startsWith("under"), brace = name.endsWith("brace");
      const e = m(below ? "munder" : "mover", brace ? { "data-brace": "" } : { accent: "true" }, arg(), m("mo", { stretchy: String(/wide|over|under/.test(name)) }, accents[name]));
      return e;
    }
    if (fonts[name]) {
      return m("mi", { mathvariant: "normal" }, raw().replace(/[A-Za-z]/g, (c) => {
        const made = String.fromCodePoint(fonts[name] + (c < "a" ? c.charCodeAt() - 65 : c.charCodeAt() - 71));
        return holes[made] || made;
      }));
    }
    switch (name) {
      case "frac": case "dfrac": case "tfrac": case "cfrac": return m("mfrac", null, arg(), arg());
      case "binom": return m("mrow", null, fence("("), m("mfrac", { linethickness: "0" }, arg(), arg()), fence(")"));
      case "sqrt": {
        skip();
        if (tokens[at] !== "[") return m("msqrt", null, arg());
        at++;
        const n = row("]");
        want("]");
        return m("mroot", null, arg(), n);
      }
      case "text": case "textbf": case "textit": case "mbox": case "textrm": return m("mtext", null, raw());
      case "mathrm": case "operatorname": case "mathit": return m("mi", name === "mathit" ? null : { mathvariant: "normal" }, raw());
      case "left": {
        const open = delimiter(), inner = row("\\right");
        want("\\right");
        return m("mrow", null, fence(open), inner, fence(delimiter()));
      }
      case "big": case "Big": case "bigg": case "Bigg": case "bigl": case "bigr": case "Bigl": case "Bigr": case "middle": return fence(delimiter()) || m("mrow");
      case "boxed": return m("mrow", { class: "boxed" }, arg());
      case "displaystyle": case "textstyle": return m("mrow");
      case "overset": { const over = arg(); return m("mover", null, arg(), over); }
      case "underset": { const below = arg(); return m("munder", null, arg(), below); }
      case "not": return m("mo", null, atom().textContent + "̸");
      case "begin": {
        const env = raw();
        if (!(env in fences) && !lined.test(env)) throw new Error(env);
        const table = tableOf(env), d = fences[env] || "";
        return m("mrow", null, fence(d[0]), table, fence(d[1]));
      }
    }
    throw new Error(name);
  };
  const all = row();
  if (at < tokens.length) throw new Error("rest");
  return m("math", display ? { display: "block", tabindex: "0" } : null, m("semantics", null, all, m("annotation", { encoding: "application/x-tex" }, tex)));
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
// titleOf is the name that a conversation was given, or how it begins.
function titleOf(t) {
  const first = t.nodes.find((n) => n.role === "user");
  return t.title || (first ? first.text || (first.files || []).map((f) => f.name).join(", ") : "").trim().replace(/\s+/g, " ").slice(0, 80) || "Conversation";
}
function save() {
  if (talk.nodes.length < 2) return;
  const title = titleOf(talk);
  index = [{ id: talk.id, title, at: Date.now() }, ...index.filter((c) => c.id !== talk.id)];
  if (store.set("talk." + talk.id, talk)) store.set("index", index);
  showList();
}
function open(id) {
  stop();
  talk = (id && store.get("talk." + id, null)) || fresh();
  location.replace("#" + (talk.nodes.length > 1 ? talk.id : ""));
  $("system").value = talk.system;
  attached = [];
  showFiles();
  if (talk.model && [...$("model").options].some((o) => o.value === talk.model)) { $("model").value = talk.model; loadProps(); }
  show();
  showList();
  document.body.classList.remove("side-open");
  $("shade").hidden = $("settings").hidden && $("engine").hidden || !narrow();
}
function remove(id) {
  const kept = store.get("talk." + id, null), before = index, at = talk.id === id;
  index = index.filter((c) => c.id !== id);
  store.drop("talk." + id);
  store.set("index", index);
  if (at) open(); else showList();
  const entry = before.find((c) => c.id === id);
  if (kept && entry) notice("“" + entry.title + "” is deleted.", "Undo", () => {
    if (store.set("talk." + id, kept)) { index = [...index, entry].sort((a, b) => b.at - a.at); store.set("index", index); }
    if (at) open(id); else showList();
  });
}
function rename(li, c) {
  const field = el("input.rename", { value: c.title, "aria-label": "Name of the conversation", maxlength: 80 });
  let done = false;
  const end = (keep) => {
    if (done) return;
    done = true;
    const title = field.value.trim();
    const t = c.id === talk.id ? talk : store.get("talk." + c.id, null);
    if (keep && title && t) {
      t.title = title;
      index = index.map((x) => x.id === c.id ? { ...x, title } : x);
      if (store.set("talk." + c.id, t)) store.set("index", index);
    }
    showList();
  };
  field.addEventListener("keydown", (e) => {
    if (e.key === "Enter" || e.key === "Escape") { e.preventDefault(); e.stopPropagation(); end(e.key === "Enter"); $("input").focus(); }
  });
  field.addEventListener("blur", () => end(true));
  li.replaceChildren(field);
  field.select();
}
// found tells whether a conversation has a text, in its name or in what was said.
function found(c, text) {
  if (!text || c.title.toLowerCase().includes(text)) return true;
  const t = c.id === talk.id ? talk : store.get("talk." + c.id, null);
  return Boolean(t) && t.nodes.some((n) => (n.text || "").toLowerCase().includes(text) || (n.files || []).some((f) => f.name.toLowerCase().includes(text)));
}
function showList() {
  const text = $("search").value.trim().toLowerCase();
  const shown = index.filter((c) => found(c, text));
  $("list").replaceChildren(...shown.map((c) => {
    const li = el(c.id === talk.id ? "li.here" : "li");
    li.append(el("button.pick", { type: "button", title: c.title, "aria-current": c.id === talk.id ? "true" : null, onclick: () => { open(c.id); $("input").focus(); }, ondblclick: () => rename(li, c) }, c.title),
      el("button.icon.drop", { type: "button", title: "Rename", "aria-label": "Rename " + c.title, onclick: () => rename(li, c) }, icon("edit")),
      el("button.icon.drop", { type: "button", title: "Delete", "aria-label": "Delete " + c.title, onclick: () => remove(c.id) }, icon("drop")));
    return li;
  }));
  if (text && !shown.length) $("list").append(el("li.none", null, "Nothing has this text."));
  $("title").textContent = talk.nodes.length > 1 ? titleOf(talk) : "New conversation";
  document.title = talk.nodes.length > 1 ? titleOf(talk) + " – zincrun" : "zincrun";
}

// ---- conversations as a file ----
const fileFormat = "zincrun.conversations.1";
function exportAll() {
  const talks = index.map((c) => store.get("talk." + c.id, null)).filter(Boolean);
  const url = URL.createObjectURL(new Blob([JSON.stringify({ format: fileFormat, talks }, null, 1)], { type: "application/json" }));
  const a = el("a", { href: url, download: "zincrun-conversations.json" });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}
const isText = (x) => typeof x === "string";
const isList = (x, of) => Array.isArray(x) && x.every(of);
// checked returns a conversation from a file with the fields that the page knows, or null.
function checked(t) {
  const n = t && t.nodes;
  if (!t || !isText(t.id) || !/^[a-z0-9]{1,32}$/.test(t.id) || !Array.isArray(n) || n.length < 2 || n.length > 100000) return null;
  const good = (x, i) => x && isList(x.kids, (k) => Number.isInteger(k) && k > i && k < n.length && n[k] && n[k].parent === i) && Number.isInteger(x.pick) && x.pick >= 0 && (!x.kids.length || x.pick < x.kids.length) &&
    (i === 0 ? x.parent === undefined : x.id === i && Number.isInteger(x.parent) && x.parent >= 0 && x.parent < i && ["user", "assistant", "tool"].includes(x.role) && isText(x.text)) &&
    (x.role !== "assistant" || isText(x.reasoning) && isList(x.calls, (c) => c && isText(c.id) && isText(c.name) && isText(c.arguments))) &&
    (x.files === undefined || isList(x.files, (f) => f && isText(f.name) && isText(f.text)));
  if (!n.every(good)) return null;
  const stats = (v) => v && typeof v === "object" ? Object.fromEntries(["tokens", "prompt", "cached", "rate", "first", "finish"].filter((k) => ["number", "string"].includes(typeof v[k])).map((k) => [k, v[k]])) : null;
  return {
    id: t.id, model: isText(t.model) ? t.model : "", system: isText(t.system) ? t.system : "", title: isText(t.title) ? t.title.slice(0, 80) : undefined,
    nodes: n.map((x, i) => i === 0 ? { kids: x.kids, pick: x.pick } : {
      id: i, parent: x.parent, kids: x.kids, pick: x.pick, role: x.role, text: x.text,
      ...(x.files && { files: x.files.map((f) => ({ name: f.name, text: f.text })) }),
      ...(x.role === "assistant" && { reasoning: x.reasoning, calls: x.calls.map((c) => ({ id: c.id, name: c.name, arguments: c.arguments })), model: isText(x.model) ? x.model : "", stats: stats(x.stats) }),
      ...(x.role === "tool" && { call: String(x.call ?? ""), name: String(x.name ?? "") }),
    }),
  };
}
async function importFile(file) {
  let all = null;
  try { all = JSON.parse(await file.text()); } catch { /* said below */ }
  if (!all || all.format !== fileFormat || !Array.isArray(all.talks)) { notice(file.name + " has no conversations of this page."); return; }
  let added = 0, same = 0, bad = 0;
  for (const raw of all.talks) {
    const t = checked(raw);
    if (!t) { bad++; continue; }
    if (index.some((c) => c.id === t.id)) { same++; continue; }
    if (!store.set("talk." + t.id, t)) break;
    index.push({ id: t.id, title: titleOf(t), at: parseInt(t.id.slice(0, 8), 36) || Date.now() });
    added++;
  }
  index.sort((a, b) => b.at - a.at);
  store.set("index", index);
  showList();
  notice(plural(added, "conversation") + " imported" + (same ? ", " + same + " were here" : "") + (bad ? ", " + bad + " are damaged and left out" : "") + ".");
}

// ---- text files beside a message ----
const largestFile = 1 << 20;
let attached = []; // {name, text}
async function attach(files) {
  for (const f of files) {
    if (f.size > largestFile) { notice(f.name + " has " + bytes(f.size) + "; at most " + bytes(largestFile) + " fit."); continue; }
    let text;
    try { text = new TextDecoder("utf-8", { fatal: true }).decode(await f.arrayBuffer()); } catch { text = "\0"; }
    if (text.includes("\0")) { notice(f.name + " is no text."); continue; }
    attached.push({ name: f.name, text });
  }
  showFiles();
  $("input").focus();
}
function showFiles() {
  $("files").replaceChildren(...attached.map((f, i) => el("span.file", null, f.name, el("small", null, bytes(f.text.length)),
    iconButton("drop", "Leave out " + f.name, () => { attached.splice(i, 1); showFiles(); }))));
  $("files").hidden = !attached.length;
  resize();
}
// said is what the model reads of a message: its files, fenced, before its text.
function said(n) {
  const fenced = (f) => {
    const fence = "`".repeat(Math.max(3, ...[...f.text.matchAll(/`+/g)].map((m) => m[0].length + 1)));
    return f.name + ":\n" + fence + "\n" + f.text + (f.text.endsWith("\n") ? "" : "\n") + fence;
  };
  return [...(n.files || []).map(fenced), n.text].filter(Boolean).join("\n\n");
}

// ---- what a branch looks like ----
function show() {
  const all = path();
  $("log").replaceChildren(...(all.length ? all.map(message) : [el("div.empty", null, el("h2", null, "What shall it be?"), el("p", null, "Conversations are kept in this browser only."))]));
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
    m.replaceChildren(...(n.files || []).map((f) => el("details.file", null, el("summary", null, f.name, el("small", null, bytes(f.text.length))), el("pre", { tabindex: 0 }, f.text))), el("div.body", { hidden: !n.text }, n.text),
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
  m.querySelector(".state").replaceChildren(...(n.error ? [el("div.problem", { role: "alert" }, n.error)] : live && !n.text ? [el("span.wait", { role: "status", "aria-label": busy.wait || "Waiting" }), busy.wait ? el("span.hint", { "aria-hidden": "true" }, " " + busy.wait) : ""] : []));
  m.lastChild.replaceChildren(...(live ? [] : [branches(n), meta(n), el("span.act", null, copyButton("Copy", () => n.text), continues(n) && iconButton("on", "Continue this answer (Alt+C)", () => answer(n.parent, n)), iconButton("again", "Answer again (Alt+R)", () => again(n)))].filter(Boolean)));
}
// continues tells whether an answer has an end that is not its own.
const continues = (n) => !n.kids.length && !n.calls.length && n.text && (n.error || n.open || n.stats && ["length", "stopped"].includes(n.stats.finish));
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
  const send = () => { const made = add(n.parent, { role: "user", text: area.value, files: n.files }); answer(made.id); };
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
    if (n.role === "user") messages.push({ role: "user", content: said(n) });
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
// waitsFor says what an answer of a model waits for: that it is compiled or loaded, or that the prompt is read, if there is only one.
async function waitsFor(model) {
  let load;
  try { load = await (await ask("/load")).json(); } catch { return ""; }
  const m = load.models.find((x) => x.model === model);
  if (!m) return "";
  if (m.stage) return "The model is not loaded yet: " + m.stage;
  const reads = (m.slots || []).filter((s) => s.state === "prompt" && s.prompt);
  return reads.length === 1 ? "Reading: " + number(Math.min(reads[0].tokens, reads[0].prompt)) + " of " + number(reads[0].prompt) + " tokens" : "";
}
// answer asks for an answer to a message, or for more of one that has begun.
async function answer(to, begun) {
  if (busy) return;
  let body;
  try { body = request(begun && begun.text ? begun.id : to); } catch (e) { notice(e.message); return; }
  talk.model = body.model;
  const node = begun || add(to, { role: "assistant" });
  if (node.text) Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
  else Object.assign(node, { text: "", reasoning: "", calls: [] });
  Object.assign(node, { model: body.model, error: "", open: true });
  busy = { abort: new AbortController(), node };
  document.body.classList.add("busy");
  $("send").title = "Stop (Esc)";
  $("send").setAttribute("aria-label", "Stop");
  $("send").disabled = false;
  show();
  save();
  if (location.hash !== "#" + talk.id) location.replace("#" + talk.id);
  const here = talk, since = performance.now(), before = node.stats || {};
  let first = 0, tokens = 0, dirty = false, kept = since;
  const element = () => document.querySelector(`[data-id="${node.id}"]`);
  const paint = () => {
    dirty = false;
    const log = $("log"), m = element();
    if (!m || talk !== here) return;
    const low = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    fill(m, node);
    if (low) log.scrollTop = log.scrollHeight;
    if (performance.now() - kept > 500) { kept = performance.now(); store.set("talk." + here.id, here); } // a reload finds it
  };
  const stats = { tokens: 0 };
  const look = setInterval(async () => {
    const wait = first ? "" : await waitsFor(body.model);
    if (busy && busy.node === node && wait !== (busy.wait || "")) { busy.wait = wait; paint(); }
  }, 1000);
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
      if (d.content) { if (node.reasoning && !node.thought) node.thought = performance.now() - since; node.text += d.content; tokens++; }
      for (const t of d.tool_calls || []) {
        const call = node.calls[t.index] ||= { id: t.id, name: "", arguments: "" };
        call.name += t.function.name || "";
        call.arguments += t.function.arguments || "";
        if (node.reasoning && !node.thought) node.thought = performance.now() - since;
      }
      if (!dirty) { dirty = true; requestAnimationFrame(paint); }
    }
  } catch (e) {
    if (e.name === "AbortError") { stats.finish = "stopped"; stats.tokens = tokens; } else node.error = e.message;
  }
  clearInterval(look);
  stats.first = first && first - since;
  if (begun && before.tokens) stats.tokens += before.tokens;
  node.stats = node.error ? null : stats;
  if (!leaving) delete node.open;
  node.calls = node.calls.filter(Boolean);
  busy = null;
  document.body.classList.remove("busy");
  $("send").title = "Send (Enter)";
  $("send").setAttribute("aria-label", "Send");
  if (talk === here) { paint(); save(); resize(); } else store.set("talk." + here.id, here);
  if (server.models.some((m) => m.id === body.model) && !server.props.default_generation_settings) loadProps();
}
let leaving = false; // the page is; what it was answering goes on when it comes back
addEventListener("pagehide", () => { leaving = true; if (busy) store.set("talk." + talk.id, talk); });
addEventListener("pageshow", () => { leaving = false; });
// goOn goes on with the answer that a reload broke off.
function goOn() {
  const n = path().at(-1), way = performance.getEntriesByType("navigation")[0];
  if (n && n.open && !n.calls.length && way && way.type === "reload") answer(n.parent, n);
}
function again(n) { if (!busy) answer(n.parent); }
function stop() { if (busy) busy.abort.abort(); }
function send() {
  if (busy) { stop(); return; }
  const text = $("input").value.trim();
  if (!text && !attached.length) return;
  const all = path();
  const last = all.at(-1);
  const node = { role: "user", text, ...(attached.length && { files: attached }) };
  $("input").value = "";
  attached = [];
  showFiles();
  answer(add(last ? last.id : 0, node).id);
}
function resize() {
  const t = $("input");
  t.style.height = "auto";
  t.style.height = t.scrollHeight + "px";
  $("send").disabled = !busy && !t.value.trim() && !attached.length;
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
  if (m.status !== "loaded") { box.append(el("p.hint", null, m.status === "loading" ? "Is not loaded yet: " + (m.stage || "loading") + "." : "Is loaded when it is asked for.")); return box; }
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
    KeyR: () => last && again(last), KeyC: () => last && continues(last) && answer(last.parent, last), ArrowLeft: () => forked && !busy && turn(forked, -1), ArrowRight: () => forked && !busy && turn(forked, 1),
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
$("search").addEventListener("input", showList);
$("export").addEventListener("click", exportAll);
$("import").addEventListener("click", () => $("import-file").click());
$("import-file").addEventListener("change", () => { for (const f of $("import-file").files) importFile(f); $("import-file").value = ""; });
$("attach").addEventListener("click", () => $("attach-file").click());
$("attach-file").addEventListener("change", () => { attach([...$("attach-file").files]); $("attach-file").value = ""; });
document.addEventListener("dragover", (e) => { if (e.dataTransfer.types.includes("Files")) e.preventDefault(); });
document.addEventListener("drop", (e) => { if (e.dataTransfer.files.length) { e.preventDefault(); attach([...e.dataTransfer.files]); } });
$("input").addEventListener("paste", (e) => { if (e.clipboardData.files.length) { e.preventDefault(); attach([...e.clipboardData.files]); } });
addEventListener("hashchange", () => { const id = location.hash.slice(1); if (id && id !== talk.id) open(id); });
open(location.hash.slice(1));
loadModels().then(() => { if (!path().length) show(); else goOn(); });
resize();
