// Values, ops and dispatches that are the same thing light up together. A thing is
// known by keys: of a value of the program its plan and number, of a tensor or cache
// its name, of a dispatch its values and its site.

const lights = {
  byKey: new Map(), // elements that show a key
  pinned: null, // keys that stay lit
  clear() { this.byKey = new Map(); },
  add(key, node) {
    if (!this.byKey.has(key)) this.byKey.set(key, []);
    this.byKey.get(key).push(node);
  },
  now: [], // elements that are lit, or hold what is
  off() {
    for (const node of this.now) node.classList.remove("lit", "holds-lit");
    this.now = [];
  },
  show(keys) {
    this.off();
    for (const key of keys) {
      for (const node of this.byKey.get(key) || []) {
        const group = node.closest(".group");
        node.classList.add("lit");
        if (group) group.classList.add("holds-lit");
        this.now.push(node, ...(group ? [group] : []));
      }
    }
  },
  hover(keys) { this.show(keys); },
  leave() { this.pinned ? this.show(this.pinned) : this.off(); },
  pin(keys, origin) {
    this.pinned = keys;
    panel.node.classList.add("pinned");
    this.show(keys);
    align(origin);
  },
  unpin() {
    this.pinned = null;
    panel.node.classList.remove("pinned");
    this.off();
  },
};

// valueKey is the key of "%12" or "@name" in a plan. Tensors have the same key in all
// plans, numbered values have not.
const valueKey = (plan, name) => name[0] === "%" ? data.Plans.indexOf(plan) + name : name;
const siteKey = site => "site " + site;

// opKeys are the keys of an op: what it makes, and what it does with which tensors,
// which finds it again where a pass has copied it, and in another plan.
function opKeys(plan, op) {
  const tensors = op.args.filter(a => a[0] === "@" && a.includes("."));
  const keys = op.result ? [valueKey(plan, op.result)] : [];
  if (tensors.length > 0) keys.push("op " + op.kind + tensors.join());
  return keys;
}

// keysOf are the keys of a group: its site and its ops.
function keysOf(plan, group) {
  return [...(group.Site ? [siteKey(group.Site)] : []), ...group.Ops.flatMap(line => opKeys(plan, parse(plan.Lines[line])))];
}

// lightable makes node light up keys when pointed at or focused, and keep them lit
// when clicked; details says what the panel shows of it.
function lightable(node, keys, details) {
  const over = () => {
    lights.hover(keys);
    if (details) panel.show(details);
  };
  const pin = event => {
    event.stopPropagation();
    if (details) panel.show(details);
    lights.pin(keys, node);
  };
  // What is pinned stays in the panel while the pointer goes there.
  node.addEventListener("pointerenter", () => lights.pinned ? lights.hover(keys) : over());
  node.addEventListener("pointerleave", () => lights.leave());
  node.addEventListener("focus", over);
  node.addEventListener("blur", () => lights.leave());
  node.addEventListener("click", pin);
  node.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pin(event);
    }
  });
  return node;
}

// walkable makes the elements of a selector one stop of the tab key, between which keys
// go: a key's step is how many elements further it leads.
function walkable(root, selector, keys) {
  const nodes = [...root.querySelectorAll(selector)];
  nodes.forEach((node, i) => node.setAttribute("tabindex", i === 0 ? 0 : -1));
  root.addEventListener("focusin", event => {
    if (!nodes.includes(event.target)) return;
    for (const node of nodes) if (node.getAttribute("tabindex") === "0") node.setAttribute("tabindex", -1);
    event.target.setAttribute("tabindex", 0);
  });
  root.addEventListener("keydown", event => {
    const next = keys[event.key] && nodes[nodes.indexOf(event.target) + keys[event.key]];
    if (!next || !nodes.includes(event.target)) return;
    event.preventDefault();
    next.focus();
  });
}

// align scrolls every pass's column so that what is lit in it stands beside origin.
function align(origin) {
  const rect = origin.closest(".column") && origin.getBoundingClientRect();
  for (const body of document.querySelectorAll(".column-body")) {
    if (body.contains(origin)) continue;
    const lit = body.querySelector(".op.lit, .group.lit");
    if (!lit) continue;
    const box = body.getBoundingClientRect();
    const want = rect ? rect.top : box.top + box.height / 3;
    body.scrollTop += lit.getBoundingClientRect().top - want;
  }
}

// panel is the bar at the foot of the page that says what is pointed at.
const panel = {
  node: el("aside", { class: "panel", "aria-live": "polite", hidden: true }),
  show(details) {
    this.node.replaceChildren(...details());
    this.node.hidden = false;
  },
  hide() { this.node.hidden = true; },
};
panel.node.addEventListener("click", event => event.stopPropagation());

function fact(name, value, kind) {
  return el("span", { class: "fact" }, el("b", {}, name), kind ? [swatch(kind), " "] : [], value);
}

// dispatchDetails is what the panel says of a dispatch.
const dispatchDetails = d => () => {
  const call = d.plan.Calls[d.group.Call], w = d.work;
  return [
    el("div", { class: "panel-title" }, data.Plans.length > 1 && el("b", { class: "side" }, d.plan.Name), el("b", {}, d.site),
      el("span", { class: "muted" }, plural(d.group.Ops.length, "op") + ": " + d.group.Ops.map(i => parse(d.plan.Lines[i]).kind).join(", "))),
    el("div", { class: "facts" },
      d.work.bound !== "none" && [fact("time", time(w.time)), d.took > 0 && fact("measured", time(d.took)), fact("bound by", bounds[w.bound], w.bound),
        fact("bytes take", time(w.Bytes)), fact("operations take", time(w.Operations)), fact("stage", time(w.Stage))],
      fact("reads", bytes(w.Read)), fact("writes", bytes(w.Write)), fact("operations", count(w.FLOPs)), fact("in stage", d.stage),
      fact("waits for", d.waits ? plural(d.waits, "stage") : "nothing"), d.queue > 0 && fact("queue", d.queue), d.early && fact("begins", early[d.early]),
      call && [call.Candidate && fact("candidate", call.Candidate), fact("kernel", el("code", {}, call.Kernel)), fact("grid", call.Grid.join(" × ")), fact("constants", el("code", {}, call.Consts)),
        call.Why && fact("why", call.Why)]),
    d.offers.length > 1 && offersTable(d.offers),
  ];
};

// offersTable lists the candidates of a call site, that which was taken first.
const offersTable = offers => el("details", { class: "offers" }, el("summary", {}, plural(offers.length, "candidate")),
  el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["candidate", "kernel", "subgroup", "grid"].map(c => el("th", {}, c)), el("th", { class: "number" }, "expected"))),
    el("tbody", {}, [...offers].sort((a, b) => (b.Taken || 0) - (a.Taken || 0)).map(o => el("tr", { class: o.Taken && "taken" },
      [(o.Taken ? "✓ " : "") + o.Name, o.Kernel, o.Wave, o.Grid.join(" × ")].map(c => el("td", {}, breakable(String(c)))),
      el("td", { class: "number" }, o.Micros ? time(o.Micros) : "–")))))));

// parse takes a line of the IR's text apart: "%7 = linear %1, @w {..} : f32[T, 8] at 0".
const parsed = new Map();
function parse(text) {
  if (!parsed.has(text)) {
    const m = /^(?:(%\d+) = )?(\S+) ?(.*)$/.exec(text);
    const op = { text, result: m[1], kind: m[2], args: [], attrs: "", type: "" };
    let rest = m[3];
    for (let v; (v = /^(%\d+|@"(?:[^"\\]|\\.)*"|@[\w.\/-]+)(?:, )?/.exec(rest)); rest = rest.slice(v[0].length)) op.args.push(v[1]);
    rest = rest.trim();
    if (rest[0] === "{") {
      const end = attrsEnd(rest);
      op.attrs = rest.slice(0, end);
      rest = rest.slice(end).trim();
    }
    if (rest[0] === ":") op.type = rest.slice(1).trim();
    parsed.set(text, op);
  }
  return parsed.get(text);
}

// attrsEnd is where the attributes that s begins with end: braces in strings are none.
function attrsEnd(s) {
  let quoted = false;
  for (let i = 0; i < s.length; i++) {
    if (quoted && s[i] === "\\") i++;
    else if (s[i] === '"') quoted = !quoted;
    else if (s[i] === "}" && !quoted) return i + 1;
  }
  return s.length;
}
