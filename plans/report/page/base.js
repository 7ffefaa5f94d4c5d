"use strict";

// The page is drawn from one block of data; Go's package plans/report says what is
// in it. Text goes into the document as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);

// el makes an element: properties, then children. A child that is false is none.
function el(name, props, ...children) {
  return fill(document.createElement(name), props, children);
}

const svgSpace = "http://www.w3.org/2000/svg";
function svg(name, props, ...children) {
  return fill(document.createElementNS(svgSpace, name), props, children);
}

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props || {})) {
    if (value === false || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== false && child !== undefined && child !== null) node.append(child);
  return node;
}

// Numbers for people.
function scaled(n, base, units, unit) {
  let i = 0;
  for (; Math.abs(n) >= base && i + 1 < units.length; i++) n /= base;
  const digits = i === 0 && Number.isInteger(n) ? 0 : n < 10 ? 2 : n < 100 ? 1 : 0;
  return n.toFixed(digits) + " " + units[i] + unit;
}
const bytes = n => scaled(n, 1024, ["", "Ki", "Mi", "Gi", "Ti"], "B");
const count = (n, unit = "") => scaled(n, 1000, ["", "k", "M", "G", "T", "P"], unit).trim();
const time = us => us >= 1e6 ? (us / 1e6).toFixed(2) + " s" : us >= 1000 ? (us / 1000).toFixed(2) + " ms" : us.toFixed(us < 10 ? 2 : 1) + " µs";
const tick = (n, unit = "") => count(n, unit).replace(/\.0+ /, " ");
const percent = share => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";
const plural = (n, word) => n + " " + word + (n === 1 ? "" : word.endsWith("ch") ? "es" : "s");

// breakable lets a long name break behind its parts.
const breakable = name => name.match(/[^+._]*[+._]?/g).flatMap((part, i) => i ? [el("wbr"), part] : [part]);

// folded is the name of a site without its layer.
const folded = site => site.replace(/^blk\.\d+\./, "blk.*.");

// ranges writes ascending numbers as "0–2, 5".
function ranges(list) {
  const parts = [];
  for (let i = 0, j; i < list.length; i = j + 1) {
    for (j = i; list[j + 1] === list[j] + 1; j++);
    parts.push(i === j ? list[i] : list[i] + "–" + list[j]);
  }
  return parts.join(", ");
}

// early says how a dispatch begins that does not wait for the one before it to end.
const early = {
  waits: "early, and waits first of all",
  loads: "early, and loads what does not change before it waits",
};

const bounds = {
  bytes: "bytes: waits for memory",
  operations: "operations: waits for arithmetic",
  stage: "stage: waits for launch and barrier",
  none: "nothing is predicted for this target",
};

// at is a launch behind depth cached positions, as Cost.At in package plans.
function at(launch, depth) {
  const grow = (now, more) => now === 0 ? 1 : (now + more * depth) / now;
  const l = { ...launch, Read: launch.Read + launch.ReadPos * depth, FLOPs: launch.FLOPs + launch.FLOPsPos * depth };
  l.Bytes *= grow(launch.Read + launch.Write, launch.ReadPos);
  l.Operations *= grow(launch.FLOPs, launch.FLOPsPos);
  l.time = Math.max(l.Bytes, l.Operations) + l.Stage;
  const most = Math.max(l.Bytes, l.Operations, l.Stage);
  l.bound = most === 0 ? "none" : most === l.Bytes ? "bytes" : most === l.Operations ? "operations" : "stage";
  return l;
}

// run is an entry of a plan as the views want it: dispatches in order with their
// group, their work behind depth positions, and when they start.
function run(plan, entry, depth) {
  const last = entry.Columns[entry.Columns.length - 1];
  const found = (plan.Measured || []).find(m => m.Entry === entry.Name && m.Depth === depth);
  let now = 0, then = 0;
  const list = entry.Dispatches.map((d, i) => {
    const group = plan.Groups[last.Sections[d.s][d.g]];
    const section = entry.Sections[d.s];
    const work = at(plan.Launches[d.c], depth);
    const site = section.Layers && d.l >= 0 ? group.Site.replace("blk." + section.Layers[0] + ".", "blk." + d.l + ".") : group.Site;
    const one = { i, offers: plan.Offers && d.o >= 0 ? plan.Offers[d.o] : [], plan, entry, group, site, work, layer: d.l, stage: d.t, waits: d.w, queue: d.q || 0, early: d.e || "", section: d.s, index: d.g, start: now, took: found ? found.Times[i] : 0, began: then };
    now += work.time;
    then += one.took;
    return one;
  });
  const sum = { bytes: 0, operations: 0, stage: 0, read: 0, write: 0, flops: 0 };
  for (const { work } of list) {
    sum[work.Bytes >= work.Operations ? "bytes" : "operations"] += Math.max(work.Bytes, work.Operations);
    sum.stage += work.Stage;
    sum.read += work.Read;
    sum.write += work.Write;
    sum.flops += work.FLOPs;
  }
  const predicted = now > 0, measured = found && { device: found.Device, time: then };
  if (!predicted) list.forEach((d, i) => { d.start = i; });
  return { plan, entry, list, sum, predicted, measured, time: now, length: Math.max(predicted ? now : list.length, predicted ? then : 0), stages: new Set(list.map(d => d.stage)).size };
}

// bySite joins the dispatches of a run that are the same group of folded layers.
function bySite(r) {
  const sites = new Map();
  for (const d of r.list) {
    const key = d.section + ":" + d.index;
    if (!sites.has(key)) sites.set(key, { first: d, n: 0, time: 0, took: 0, layers: [], work: d.work });
    const s = sites.get(key);
    s.n++;
    s.layers.push(d.layer);
    s.time += d.work.time;
    s.took += d.took;
  }
  return [...sites.values()].sort((a, b) => b.time - a.time);
}

// kindOf is the class that gives a bound its colour.
const kindOf = d => "is-" + d.work.bound;

function swatch(kind) {
  return el("i", { class: "swatch is-" + kind });
}
