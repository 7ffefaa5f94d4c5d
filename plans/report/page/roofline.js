// The roofline: each call site by its operations a byte and by what it reaches, under
// what the target can.

function roofline(runs) {
  const sites = runs.flatMap((r, side) => bySite(r).map(s => ({ ...s, side, share: s.time / r.time })));
  const dots = sites.filter(s => s.work.FLOPs > 0 && s.work.time > 0)
    .map(s => ({ ...s, x: s.work.FLOPs / (s.work.Read + s.work.Write), y: s.work.FLOPs / (s.work.time * 1e-6) }));
  const figures = runs.map(r => r.plan.Figures).filter(f => f.Bandwidth > 0);
  if (dots.length === 0 || figures.length === 0) return el("p", { class: "muted" }, "The target has no figures to draw a roofline with.");

  const width = 620, height = 400, left = 58, bottom = 40, top = 14, right = 16;
  const roofs = figures.flatMap((f, side) => [
    { side, kind: "", flops: f.FLOPs, bandwidth: f.Bandwidth },
    { side, kind: "matrix units", flops: f.MatrixFLOPs, bandwidth: f.Bandwidth },
  ]).filter(f => f.flops > 0);
  const ridge = roofs.map(f => f.flops / f.bandwidth);
  const xs = [...dots.map(d => d.x), ...ridge.map(v => v * 3)], ys = [...dots.map(d => d.y), ...roofs.map(f => f.flops * 1.6)];
  const span = list => [Math.floor(Math.log10(Math.min(...list))), Math.log10(Math.max(...list)) + 0.1];
  const [x0, x1] = span(xs), [y0, y1] = span(ys);
  const x = v => left + (Math.log10(v) - x0) / (x1 - x0) * (width - left - right);
  const y = v => height - bottom - (Math.log10(v) - y0) / (y1 - y0) * (height - top - bottom);
  const root = svg("svg", { class: "roofline", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "roofline" });

  for (let p = x0; p <= x1; p++) {
    root.append(svg("line", { class: "grid", x1: x(10 ** p), x2: x(10 ** p), y1: top, y2: height - bottom }));
    root.append(svg("text", { class: "tick", x: x(10 ** p), y: height - bottom + 16, "text-anchor": "middle" }, p < 0 ? String(10 ** p) : tick(10 ** p)));
  }
  for (let p = y0; p <= y1; p++) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(10 ** p), y2: y(10 ** p) }));
    root.append(svg("text", { class: "tick", x: left - 6, y: y(10 ** p) + 4, "text-anchor": "end" }, tick(10 ** p)));
  }
  root.append(svg("text", { class: "tick", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "operations a byte"));
  root.append(svg("text", { class: "tick", transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "operations a second"));

  const name = side => runs.length > 1 ? runs[side].plan.Target + ", " : "";
  const clip = v => Math.max(v, 10 ** y0);
  figures.forEach((f, side) => {
    const peak = Math.max(f.FLOPs, f.MatrixFLOPs) || 10 ** y1;
    const from = clip(10 ** x0 * f.Bandwidth), to = Math.min(peak, 10 ** x1 * f.Bandwidth);
    root.append(svg("line", { class: "roof side-" + side, x1: x(from / f.Bandwidth), y1: y(from), x2: x(to / f.Bandwidth), y2: y(to) }));
    const mid = Math.sqrt(from * to) * 0.5;
    const slope = Math.atan2(y(to) - y(from), x(to / f.Bandwidth) - x(from / f.Bandwidth)) * 180 / Math.PI;
    root.append(svg("text", { class: "roof-name", transform: `translate(${x(mid / f.Bandwidth)} ${y(mid) - 7}) rotate(${slope})`, "text-anchor": "middle" }, name(side) + count(f.Bandwidth, "B/s")));
  });
  for (const f of roofs) {
    root.append(svg("line", { class: "roof side-" + f.side, x1: x(f.flops / f.bandwidth), y1: y(f.flops), x2: width - right, y2: y(f.flops) }));
    root.append(svg("text", { class: "roof-name", x: width - right - 4, y: y(f.flops) - 6, "text-anchor": "end" }, name(f.side) + (f.kind ? f.kind + " " : "") + count(f.flops, "FLOP/s")));
  }
  for (const d of dots.sort((a, b) => b.share - a.share)) {
    const node = svg("circle", { class: `dot is-${d.work.bound} side-${d.side}`, cx: x(d.x).toFixed(1), cy: y(d.y).toFixed(1), r: (3 + 16 * Math.sqrt(d.share)).toFixed(1), "aria-label": d.first.site });
    const keys = keysOf(d.first.plan, d.first.group);
    lightable(node, keys, dispatchDetails(d.first));
    for (const key of keys) lights.add(key, node);
    root.append(node);
  }
  walkable(root, ".dot", { ArrowRight: 1, ArrowLeft: -1 });
  const none = sites.length - dots.length;
  return el("figure", {}, root, el("figcaption", {}, "Area is the share of the time. What lies below its roof waits for its stage, or has too few workgroups for the device.",
    none > 0 && ` ${plural(none, "site")} without counted operations ${none === 1 ? "is" : "are"} left out.`));
}

// siteTable lists the call sites, slowest first.
function siteTable(r) {
  const rows = bySite(r).map(s => {
    const keys = keysOf(s.first.plan, s.first.group);
    const row = el("tr", {},
      el("td", { class: "name" }, swatch(s.work.bound), " ", breakable(folded(s.first.site)), s.n > 1 && el("small", { title: "layers " + ranges(s.layers) }, ` × ${s.n}`, ranges(s.layers).length < 16 && ": " + ranges(s.layers))),
      el("td", { class: "number" }, r.predicted ? time(s.time) : "–"),
      r.measured && el("td", { class: "number" }, s.took > 0 ? time(s.took) : "–"),
      el("td", { class: "number" }, r.predicted ? percent(s.time / r.time) : "–"),
      el("td", { class: "share" }, el("span", { class: "bar is-" + s.work.bound, style: `width:${(r.predicted ? 100 * s.time / r.time : 0).toFixed(1)}%` })));
    lightable(row, keys, dispatchDetails(s.first));
    for (const key of keys) lights.add(key, row);
    return row;
  });
  const body = el("tbody", {}, rows);
  walkable(body, "tr", { ArrowDown: 1, ArrowUp: -1 });
  return el("div", { class: "scroll" }, el("table", { class: "sites" },
    el("thead", {}, el("tr", {}, el("th", {}, "call site"), el("th", { class: "number" }, "time"), r.measured && el("th", { class: "number" }, "measured"), el("th", { class: "number" }, "share"), el("th", {}))), body));
}
