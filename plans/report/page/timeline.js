// The timeline: dispatches of an entry over predicted time, with what each moves and
// what lies in the arena meanwhile. Its tracks share the axis.

const tracks = [
  { name: "layer", height: 18 },
  { name: "dispatch", height: 34 },
  { name: "measured", height: 22 },
  { name: "bytes", height: 9 },
  { name: "operations", height: 9 },
  { name: "moved", height: 52 },
  { name: "arena, by offset", height: 112 },
  { name: "arena in use", height: 36 },
];
const trackGap = 8;
const axisHeight = 22;

// On a narrow screen the names of dispatches stand upright.
const narrow = () => innerWidth <= 640;
const tallDispatch = 112;

// length is the time that all of width is.
function timeline(r, length, width) {
  const x = t => t / length * width;
  const ends = r.list.map((d, i) => i + 1 < r.list.length ? r.list[i + 1].start : r.predicted ? r.time : r.length);
  let top = 0;
  const shown = t => t.name === "measured" ? r.predicted && r.measured : r.predicted || !["bytes", "operations"].includes(t.name);
  const rows = tracks.filter(shown).map(t => {
    const row = { ...t, top, height: t.name === "dispatch" && narrow() ? tallDispatch : t.height };
    top += row.height + trackGap;
    return row;
  });
  const row = name => rows.find(t => t.name === name);
  const height = top + axisHeight;
  const root = svg("svg", { class: "timeline", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "dispatches of " + r.entry.Name });
  const box = (track, from, to, y, h, props) =>
    svg("rect", { x: x(from).toFixed(2), y: (track.top + y).toFixed(2), width: Math.max(0.6, x(to) - x(from) - (x(to) - x(from) > 3 ? 0.8 : 0)).toFixed(2), height: h.toFixed(2), ...props });

  for (const run of layerRuns(r)) {
    const from = r.list[run.from].start, to = ends[run.to], track = row("layer");
    const node = svg("g", { class: "layer" + (run.n % 2 ? " odd" : "") }, box(track, from, to, 0, track.height, {}));
    if (x(to) - x(from) > 9 * run.label.length + 4) {
      node.append(svg("text", { x: x((from + to) / 2), y: track.top + 13, "text-anchor": "middle" }, run.label));
    }
    root.append(node);
  }

  const most = Math.max(...r.list.map(d => d.work.Read + d.work.Write), 1);
  r.list.forEach((d, i) => {
    const from = d.start, to = ends[i], w = d.work;
    const node = svg("g", { class: "dispatch " + kindOf(d), "aria-label": `${d.site}, ${time(w.time)}, bound by ${w.bound}` });
    const main = row("dispatch");
    node.append(box(main, from, to, 0, main.height, { class: "block" }));
    if (w.Stage > 0) node.append(box(main, from, Math.min(to, from + w.Stage), 0, main.height, { class: "stage-part" }));
    const label = d.site.replace(/^blk\.\d+\./, ""), work = x(from + Math.min(w.Stage, to - from));
    const letters = Math.floor((x(to) - work - 10) / 6.4);
    const cut = n => label.length > n ? label.slice(0, n - 1) + "…" : label;
    if (letters > 4) node.append(svg("text", { x: work + 5, y: main.top + main.height / 2 + 4 }, cut(letters)));
    else if (narrow() && x(to) - x(from) >= 11) {
      node.append(svg("text", { class: "upright", transform: `translate(${x((from + to) / 2) + 4} ${main.top + main.height - 6}) rotate(-90)` }, cut(17)));
    }
    if (row("measured") && d.took > 0) node.append(box(row("measured"), d.began, d.began + d.took, 0, row("measured").height, { class: "took" }));
    if (r.predicted) {
      node.append(box(row("bytes"), from + w.Stage, from + w.Stage + w.Bytes, 0, 9, { class: "is-bytes thin" }));
      node.append(box(row("operations"), from + w.Stage, from + w.Stage + w.Operations, 0, 9, { class: "is-operations thin" }));
    }
    const moved = row("moved");
    // A root scale: the head of a model moves hundreds of times what others do.
    const all = Math.sqrt((w.Read + w.Write) / most) * moved.height, share = w.Read + w.Write > 0 ? w.Read / (w.Read + w.Write) : 0;
    const read = all * share, write = all - read;
    node.append(box(moved, from, to, moved.height - read, read, { class: "read" }));
    node.append(box(moved, from, to, moved.height - read - write, write, { class: "write" }));
    lightable(node, keysOf(d.plan, d.group), dispatchDetails(d));
    for (const key of keysOf(d.plan, d.group)) lights.add(key, node);
    root.append(node);
  });
  walkable(root, ".dispatch", { ArrowRight: 1, ArrowLeft: -1 });

  arenaTracks(root, r, row, box, ends);
  axis(root, r, x, width, height);
  return el("div", { class: "timeline-frame" },
    el("div", { class: "track-names", "aria-hidden": true },
      rows.map(t => el("div", { style: `top:${t.top}px;height:${t.height}px` }, t.name,
        t.name === "moved" && el("small", {}, "root of " + bytes(most), el("br"), "light: written"), t.name === "arena, by offset" && el("small", {}, bytes(r.entry.Arena))))),
    el("div", { class: "timeline-scroll", tabindex: -1 }, root));
}

// layerRuns are the dispatches of each layer, and those before and behind them.
function layerRuns(r) {
  const runs = [];
  r.list.forEach((d, i) => {
    const last = runs[runs.length - 1];
    if (last && last.layer === d.layer) last.to = i;
    else runs.push({ layer: d.layer, from: i, to: i, n: runs.length, label: d.layer >= 0 ? String(d.layer) : "" });
  });
  return runs;
}

// arenaTracks draw each value from its first stage to its last, and their sum.
function arenaTracks(root, r, row, box, ends) {
  const starts = new Map(), stops = new Map();
  r.list.forEach((d, i) => {
    starts.set(d.stage, Math.min(d.start, starts.has(d.stage) ? starts.get(d.stage) : Infinity));
    stops.set(d.stage, Math.max(ends[i], stops.has(d.stage) ? stops.get(d.stage) : 0));
  });
  const map = row("arena, by offset"), sum = row("arena in use");
  const size = Math.max(r.entry.Arena, 1);
  root.append(svg("rect", { class: "frame", x: 0, y: map.top, width: "100%", height: map.height }));
  const live = new Map();
  for (const v of r.entry.Values || []) {
    const h = Math.max(1, v.n / size * map.height);
    const node = box(map, starts.get(v.f), stops.get(v.t), Math.min(map.height - h, v.o / size * map.height), h, { class: "value" });
    const key = valueKey(r.plan, v.v);
    lightable(node, [key], () => [
      el("div", { class: "panel-title" }, el("b", {}, v.v), el("span", { class: "muted" }, v.l >= 0 ? "of layer " + v.l + ", by its name in the layer that is shown" : "")),
      el("div", { class: "facts" }, fact("arena offset", v.o), fact("size", bytes(v.n)), fact("alive in stages", v.f === v.t ? v.f : v.f + "–" + v.t)),
    ]);
    lights.add(key, node);
    root.append(node);
    for (let s = v.f; s <= v.t; s++) live.set(s, (live.get(s) || 0) + v.n);
  }
  const peak = Math.max(...live.values(), 0);
  for (const [stage, from] of starts) {
    const n = live.get(stage) || 0;
    const h = n / size * sum.height;
    root.append(box(sum, from, stops.get(stage), sum.height - h, h, { class: n === peak ? "use peak" : "use" }));
  }
}

function axis(root, r, x, width, height) {
  const length = width / x(1);
  const rough = length / (width / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const tick = [1, 2, 5, 10].map(m => m * power).find(t => t >= rough);
  const y = height - axisHeight + 4;
  root.append(svg("line", { class: "axis", x1: 0, x2: width, y1: y, y2: y }));
  for (let t = 0; t < length; t += tick) {
    root.append(svg("line", { class: "axis", x1: x(t), x2: x(t), y1: y, y2: y + 4 }));
    const anchor = t === 0 ? "start" : x(t) > width - 24 ? "end" : "middle";
    root.append(svg("text", { class: "tick", x: x(t), y: y + 15, "text-anchor": anchor }, r.predicted ? time(t).replace(/\.0+ /, " ") : Math.round(t)));
  }
}
