// The passes: a column for each that changed something, with what it changed marked.

// columns draws a list of {plan, entry, column, title, doc, stage}.
function columns(list, state) {
  return el("div", { class: list.length > 2 ? "columns" : "columns few", tabindex: 0, role: "group", "aria-label": "program after each pass" },
    list.map((c, i) => column(c, i > 0 ? list[i - 1] : null, state)));
}

function column(c, before, state) {
  const folded = state.closed.has(c.title);
  const toggle = el("button", { class: "column-title", "aria-expanded": String(!folded), title: c.doc }, el("b", {}, c.title), el("span", { class: "stage" }, c.stage));
  const root = el("section", { class: "column" + (folded ? " folded" : "") },
    el("header", {}, toggle,
      el("p", {}, c.doc),
      el("p", { class: "counts" }, plural(c.column.Groups, c.grouped ? "dispatch" : "group"), before && change(c.column.Groups - before.column.Groups), " · ",
        plural(c.column.Ops, "op"), before && change(c.column.Ops - before.column.Ops))));
  toggle.addEventListener("click", () => {
    const now = root.classList.toggle("folded");
    toggle.setAttribute("aria-expanded", String(!now));
    now ? state.closed.add(c.title) : state.closed.delete(c.title);
  });
  const old = before && new Parts(before);
  const body = el("div", { class: "column-body" });
  c.entry.Sections.forEach((section, i) => {
    const groups = c.column.Sections[i] || [];
    if (groups.length === 0) return;
    body.append(sectionPart(c, section, groups.map(g => c.plan.Groups[g]), old, state));
  });
  walkable(body, ".op, .site", { ArrowDown: 1, ArrowUp: -1 });
  root.append(body);
  return root;
}

function change(n) {
  return n !== 0 && el("span", { class: "change" }, (n > 0 ? " +" : " −") + Math.abs(n));
}

// sectionName says which layers a section stands for.
function sectionName(section) {
  if (!section.Layers) return [section.Name];
  const [first, ...rest] = section.Layers;
  return ["layer " + first, rest.length > 0 && el("small", { title: "layers " + ranges(section.Layers) }, ` × ${section.Layers.length}: ${ranges(section.Layers)}`)];
}

function sectionPart(c, section, groups, old, state) {
  const name = section.Layers ? "layer " + section.Layers[0] : section.Name;
  const prefix = section.Layers ? "blk." + section.Layers[0] + "." : "";
  const part = el("details", { class: "part", open: !state.shut.has(name) }, el("summary", {}, sectionName(section)));
  part.dataset.part = name;
  for (const group of groups) part.append(groupPart(c, group, prefix, old));
  // A part is opened and closed in all columns at once.
  part.addEventListener("toggle", () => {
    if (part.open === !state.shut.has(name)) return;
    part.open ? state.shut.delete(name) : state.shut.add(name);
    for (const other of document.querySelectorAll("details.part")) if (other.dataset.part === name) other.open = part.open;
  });
  return part;
}

// Parts is what a column holds, to tell what the next one changed.
class Parts {
  constructor(c) {
    this.groups = new Map();
    this.lines = new Set();
    for (const g of c.column.Sections.flat()) {
      const group = c.plan.Groups[g];
      this.groups.set(members(c, group), { group, plan: c.plan });
      for (const line of group.Ops) this.lines.add(lineKey(c, line));
    }
  }
}

// members tells which ops are together: by what they make, or between two plans by
// the call site.
function members(c, group) {
  if (c.beside) return group.Site;
  return group.Ops.map(i => parse(c.plan.Lines[i])).map(op => op.result || op.text).join(" ");
}

function lineKey(c, line) {
  const op = parse(c.plan.Lines[line]);
  if (!c.beside) return op.text;
  return op.kind + " " + op.args.filter(a => a[0] === "@").join(" ") + op.type.replace(/ at \d+$/, "");
}

// orderOf says when a group is launched, in few words.
const orderOf = g => [`stage ${g.Stage}`, g.Waits !== g.Stage && `behind ${g.Waits}`, g.Queue > 0 && `queue ${g.Queue}`, g.Early && "early"].filter(Boolean).join(", ");

function groupPart(c, group, prefix, old) {
  const same = old && old.groups.get(members(c, group));
  const call = c.plan.Calls[group.Call], oldCall = same && same.plan.Calls[same.group.Call];
  const marks = {
    ops: old && !same,
    call: call && old && (!oldCall || oldCall.Kernel !== call.Kernel || oldCall.Consts !== call.Consts || String(oldCall.Grid) !== String(call.Grid)),
    order: same && orderOf(same.group) !== orderOf(group) && !c.beside,
    site: same && same.group.Site !== group.Site,
  };
  const lines = group.Ops.map(i => opPart(c, i, prefix, old && !old.lines.has(lineKey(c, i))));
  const quiet = old && !Object.values(marks).some(Boolean) && !lines.some(l => l.classList.contains("new"));
  const single = group.Ops.length === 1 && !group.Site && !call;
  const node = el("div", { class: "group" + (single ? " single" : "") + (marks.ops ? " new" : "") + (quiet ? " quiet" : "") });
  if (group.Site) {
    const head = el("div", { class: "site" + (marks.site ? " new" : "") }, breakable(short(group.Site, prefix)),
      c.scheduled && el("span", { class: "order" + (marks.order ? " new" : "") }, orderOf(group)));
    lightable(head, keysOf(c.plan, group), call && callDetails(c.plan, group, call));
    node.append(head);
    lights.add(siteKey(group.Site), node);
  }
  if (call) node.append(el("div", { class: "call" + (marks.call ? " new" : "") }, call.Kernel, el("span", {}, "grid " + call.Grid.join("×"))));
  node.append(...lines);
  return node;
}

const callDetails = (plan, group, call) => () => [
  el("div", { class: "panel-title" }, data.Plans.length > 1 && el("b", { class: "side" }, plan.Name), el("b", {}, group.Site)),
  el("div", { class: "facts" }, call.Candidate && fact("candidate", call.Candidate), fact("kernel", el("code", {}, call.Kernel)),
    fact("grid", call.Grid.join(" × ")), fact("subgroup", call.Wave || "any"),
    fact("constants", el("code", {}, call.Consts)), call.Why && fact("why", call.Why)),
];

// short leaves out of a name what the part of the column says already.
const short = (name, prefix) => prefix && name.startsWith(prefix) ? name.slice(prefix.length) : name;

function opPart(c, line, prefix, isNew) {
  const op = parse(c.plan.Lines[line]);
  const node = el("div", { class: "op" + (isNew ? " new" : "") });
  const keys = opKeys(c.plan, op);
  const values = op.args.map(name => valuePart(c, name, prefix, [valueKey(c.plan, name)]));
  node.append(op.result ? valuePart(c, op.result, prefix, keys) : "", op.result ? " " : "", el("b", {}, op.kind), " ",
    ...values.flatMap((v, i) => i ? [" ", v] : [v]), " ", el("span", { class: "type" }, op.type),
    op.attrs ? el("span", { class: "attrs" }, op.attrs) : "");
  for (const key of keys) lights.add(key, node);
  lightable(node, keys, () => [
    el("div", { class: "panel-title" }, data.Plans.length > 1 && el("b", { class: "side" }, c.plan.Name), el("code", {}, op.text)),
  ]);
  return node;
}

// valuePart is a value's name; keys are what lights up when it is pointed at.
function valuePart(c, name, prefix, keys) {
  const bare = name.startsWith("@") ? "@" + short(name.slice(1), prefix).replace(/\.weight$/, "") : name;
  const node = el("span", { class: name[0] === "%" ? "v" : "v global", title: name }, bare);
  lights.add(valueKey(c.plan, name), node);
  node.addEventListener("pointerenter", () => lights.hover(keys));
  node.addEventListener("pointerleave", event => {
    const op = node.closest(".op");
    op.contains(event.relatedTarget) ? op.dispatchEvent(new Event("pointerenter")) : lights.leave();
  });
  node.addEventListener("click", event => {
    event.stopPropagation();
    lights.pin(keys, node);
  });
  return node;
}
