// The page itself: which entry and depth are shown, and the views of them.

const names = [...new Set(data.Plans.flatMap(p => p.Entries.map(e => e.Name)))];
const depths = [...new Set([0, 256, 1024, 4096, 16384, 65536, 131072, ...data.Plans.flatMap(p => (p.Measured || []).map(m => m.Depth))])]
  .filter(d => d === 0 || d < Math.min(...data.Plans.map(p => p.Ctx))).sort((a, b) => a - b);
const state = { entry: names[0], depth: 0, zoom: 1, closed: new Set(), shut: new Set() };

const views = el("main", {});

function runsNow() {
  return data.Plans.map(p => ({ p, e: p.Entries.find(e => e.Name === state.entry) })).filter(({ e }) => e).map(({ p, e }) => run(p, e, Math.min(state.depth, p.Ctx - e.Rows)));
}

function choice(label, list, now, name, pick) {
  const group = el("div", { class: "choice", role: "group", "aria-label": label }, el("span", {}, label));
  for (const item of list) {
    group.append(el("button", { "aria-pressed": String(item === now), onclick: event => {
      for (const b of group.querySelectorAll("button")) b.setAttribute("aria-pressed", String(b === event.currentTarget));
      pick(item);
      draw();
    } }, name(item)));
  }
  return group;
}

function block(id, title, lead, ...content) {
  return el("section", { id, class: "block" }, el("h2", {}, title), lead && el("p", { class: "lead" }, lead.split("`").map((part, i) => i % 2 ? el("code", {}, part) : part)), content);
}

// sums are the figures of an entry.
function sums(r) {
  const card = (value, label) => el("div", { class: "card" }, el("b", {}, value), el("span", {}, label));
  const parts = ["bytes", "operations", "stage"].map(kind => ({ kind, share: r.sum[kind] / r.time }));
  return el("div", { class: "sums" },
    data.Plans.length > 1 && el("div", { class: "card side-card" }, el("b", { class: "side" }, r.plan.Name), el("span", {}, r.plan.Target)),
    r.predicted && card(time(r.time), "predicted for a step"),
    r.predicted && card(count(r.entry.Rows / (r.time * 1e-6)), r.entry.Rows === 1 ? "tokens/s" : `tokens/s, ${r.entry.Rows} rows`),
    r.measured && card(time(r.measured.time), "measured on " + r.measured.device),
    card(r.list.length, r.list.length === r.stages ? "dispatches, each a stage" : `dispatches in ${r.stages} stages`),
    card(bytes(r.sum.read), "read"), card(bytes(r.sum.write), "written"), card(count(r.sum.flops), "operations"),
    r.predicted && el("div", { class: "card wide" },
      el("div", { class: "stack", role: "img", "aria-label": parts.map(p => `${p.kind} ${percent(p.share)}`).join(", ") }, parts.map(p => el("span", { class: "is-" + p.kind, style: `flex-grow:${p.share}` }))),
      el("span", { class: "legend" }, parts.map(p => el("span", {}, swatch(p.kind), ` ${p.kind} ${percent(p.share)}`)))));
}

// frameWidth is what a timeline may be wide without being scrolled.
// On a narrow screen each dispatch has room for its name, on average.
const frameWidth = runs => narrow() ? Math.max(360, 16 * Math.max(...runs.map(r => r.list.length))) : Math.max(560, views.clientWidth - 154);

function timelineBlock(runs) {
  const length = Math.max(...runs.map(r => r.length));
  const frames = el("div", {});
  const zoomed = () => frames.replaceChildren(...runs.map(r => el("div", {}, runs.length > 1 && el("h3", {}, el("b", { class: "side" }, r.plan.Name), r.plan.Target), timeline(r, length, state.zoom * frameWidth(runs)))));
  const zoom = factor => () => {
    const old = frames.querySelector(".timeline-scroll");
    const middle = (old.scrollLeft + old.clientWidth / 2) / old.scrollWidth;
    state.zoom = factor ? Math.min(32, Math.max(1, state.zoom * factor)) : 1;
    zoomed();
    for (const s of frames.querySelectorAll(".timeline-scroll")) s.scrollLeft = middle * s.scrollWidth - s.clientWidth / 2;
  };
  zoomed();
  const lead = runs.every(r => r.predicted)
    ? "Predicted, from the target's figures: a dispatch takes the longer of its bytes and its operations, and its stage. `zincrun profile` measures."
    : "The target has no figures, so nothing is predicted: each dispatch is one unit wide.";
  return block("timeline", "Timeline", runs.some(r => r.measured) ? lead.replace(" `zincrun profile` measures.", " Below, on the same scale: what each was measured to take, with its barrier.") : lead,
    el("div", { class: "tools" }, el("span", { class: "legend" }, ["bytes", "operations", "stage"].map(k => el("span", {}, swatch(k), " " + bounds[k]))),
      el("span", { class: "buttons" }, el("button", { onclick: zoom(0.5), "aria-label": "zoom out" }, "−"), el("button", { onclick: zoom(2), "aria-label": "zoom in" }, "+"), el("button", { onclick: zoom(0) }, "all"))),
    frames);
}

function passesBlock(runs) {
  const beside = runs.length > 1;
  const list = runs.flatMap(r => (beside ? r.entry.Columns.slice(-1) : r.entry.Columns).map(c => {
    const pass = r.plan.Passes[c.Pass];
    const late = ["schedule", "place"].includes(pass.Stage);
    return { plan: r.plan, entry: r.entry, column: c, beside, stage: beside ? r.plan.Target : pass.Stage, title: beside ? r.plan.Name : pass.Name,
      doc: beside ? r.plan.Path : pass.Doc, scheduled: late, grouped: pass.Stage !== "import" };
  }));
  const lead = beside ? "The two programs; what the second does otherwise is marked. Layers that are the same are shown once."
    : "The program after each pass that changed this entry; what the pass changed is marked. Point at an op or value to find it in all columns, click to keep it lit and to line it up. Layers that all passes treat alike are shown once.";
  const body = columns(list, state);
  const check = (label, cls) => {
    const input = el("input", { type: "checkbox", onchange: () => {
      body.classList.toggle(cls, input.checked);
      state[cls] = input.checked;
    } });
    input.checked = Boolean(state[cls]);
    body.classList.toggle(cls, input.checked);
    return el("label", {}, input, " " + label);
  };
  return block("passes", beside ? "Programs" : "Passes", lead,
    el("div", { class: "tools" }, el("span", {}, check("attributes", "show-attrs"), check("only what changed", "only-new"))), body);
}

// headline says in what two plans differ most.
function headline(t) {
  return el("div", { class: "sums headline" }, t.Rows.map(([what, a, b, percent]) => el("div", { class: "card" }, el("b", {}, b), el("span", {}, `${what}; a has ${a}, ${percent[0] === "-" ? "" : "+"}${percent} %`))));
}

function memoryBlock(plan) {
  const parts = plan.Memory.filter(m => m.Name !== "sum" && m.Value > 0), sum = parts.reduce((n, m) => n + m.Value, 0);
  return el("div", { class: "memory" },
    el("div", { class: "stack thick", role: "img", "aria-label": "device memory" }, parts.map((m, i) => el("span", { class: "space-" + i % 7, style: `flex-grow:${m.Value / sum}`, title: m.Name }))),
    el("span", { class: "legend" }, parts.map((m, i) => el("span", {}, el("i", { class: "swatch space-" + i % 7 }), ` ${m.Name} ${bytes(m.Value)}`)), el("span", {}, el("b", {}, `sum ${bytes(sum)}`))));
}

function tableOf(t) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, t.Columns.map((c, i) => el("th", { class: t.Numbers[i] ? "number" : false }, c)))),
    el("tbody", {}, (t.Rows || []).map(row => el("tr", {}, row.map((c, i) => el("td", { class: t.Numbers[i] ? "number" : false }, i ? c : breakable(c))))))));
}

const eachPlan = make => data.Plans.map(p => el("div", { class: "each" }, data.Plans.length > 1 && el("h3", {}, el("b", { class: "side" }, p.Name), p.Path), make(p)));

function draw() {
  lights.clear();
  lights.unpin();
  panel.hide();
  const runs = runsNow();
  views.replaceChildren(
    el("section", { class: "block top" }, runs.map(sums)),
    timelineBlock(runs),
    passesBlock(runs),
    block("roofline", "Roofline", "", el("div", { class: "halves" }, roofline(runs), el("div", { class: "tables" }, runs.map(r => [runs.length > 1 && el("h3", {}, el("b", { class: "side" }, r.plan.Name), r.plan.Target), siteTable(r)])))),
    block("kernels", "Kernels", "Those of this entry by their share of its time. Open one for its code.", runs.map(r => [runs.length > 1 && el("h3", {}, el("b", { class: "side" }, r.plan.Name), r.plan.Target), kernels(r)])),
  );
}

function start() {
  const many = data.Plans.length > 1, one = data.Plans[0];
  document.body.append(
    el("header", { class: "page" },
      el("div", { class: "title" }, el("h1", {}, many ? "Two plans" : one.Model, !many && el("span", {}, one.Target)),
        el("p", {}, data.Plans.map(p => el("span", {}, many && el("b", { class: "side" }, p.Name), many ? `${p.Model} for ${p.Target}, ` : "", el("code", {}, p.Path), ` context ${p.Ctx}`)))),
      el("nav", {}, ["timeline", "passes", "roofline", "kernels", "memory", "weights", "plan"].map(id => el("a", { href: "#" + id }, id)))),
    data.Diff || many ? block("differences", "What differs", data.Diff ? "" : "The plans do not differ.", (data.Diff || []).map(t => t.Title === "in short" ? headline(t) : el("div", { class: "each" }, el("h3", {}, t.Title), tableOf(t)))) : "",
    el("div", { class: "choices" }, choice("entry", names, state.entry, n => n, n => { state.entry = n; }),
      depths.length > 1 && choice("cached positions", depths, state.depth, n => n >= 1024 ? n / 1024 + "k" : n, n => { state.depth = n; })),
    views,
    block("memory", "Memory", "On the device.", eachPlan(memoryBlock)),
    block("weights", "Weights", "Their layout on the device and the kernels that read them.", eachPlan(p => tableOf(p.Coverage))),
    block("plan", "Plan", "", eachPlan(p => [
      (p.Notes || []).map(n => el("p", { class: "note" }, n)),
      el("dl", { class: "plan-facts" }, p.Facts.map(f => el("div", {}, el("dt", {}, f.Name), el("dd", {}, f.Value || "–"))))])),
    panel.node);
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") {
      lights.unpin();
      panel.hide();
    }
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // on a phone, a bar of the browser came or went
    width = innerWidth;
    draw();
  });
  document.addEventListener("click", () => {
    lights.unpin();
    panel.hide();
  });
  draw();
  document.documentElement.dataset.drawn = "yes";
}

start();
