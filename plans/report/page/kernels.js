// The kernels: what each pipeline is, what the target's compiler made of it, and its
// code.

// listing writes out lines whose ids are told by their distance from the last result.
function listing(patterns, indent) {
  let last = 0;
  return patterns.map(i => {
    let text = data.Patterns[i], head = "";
    const m = /^([+-]\d+) /.exec(text);
    if (m) {
      last += Number(m[1]);
      text = text.slice(m[0].length);
      head = "%" + last + " = ";
    }
    text = text.replace(/%~(-?\d+)/g, (_, n) => "%" + (last - n));
    if (!indent) return (/^BB\d+:?$/.test(text) ? "" : "  ") + head + text; // labels stand out
    if (text[0] === ";") return text;
    // Results with names of their own are in the text.
    const named = !head && /^(%\S+ = )(.*)$/.exec(text);
    return (named ? named[1] : head).padStart(indent) + (named ? named[2] : text);
  }).join("\n");
}

function kernels(r) {
  const share = new Map(), sites = new Map();
  for (const d of r.list) {
    const i = r.plan.Launches[r.entry.Dispatches[d.i].c].Pipeline;
    share.set(i, (share.get(i) || 0) + (r.predicted ? d.work.time / r.time : 1 / r.list.length));
    if (!sites.has(i)) sites.set(i, new Set());
    sites.get(i).add(folded(d.site));
  }
  const order = (r.plan.Pipelines || []).map((p, i) => i).filter(i => share.has(i)).sort((a, b) => share.get(b) - share.get(a));
  if (order.length === 0) return el("p", { class: "muted" }, "A plan for the host has no kernels: its program is evaluated.");
  return el("div", { class: "kernels" }, order.map(i => kernel(r.plan, i, percent(share.get(i)), [...sites.get(i)])));
}

function kernel(plan, i, share, sites) {
  const p = plan.Pipelines[i], module = plan.Modules[p.Module], m = p.Machine;
  const root = el("details", { class: "kernel" }, el("summary", {},
    el("span", { class: "kernel-share" }, share),
    el("span", { class: "kernel-name" }, el("code", {}, module.Name), el("small", {}, breakable(sites.join(", ")))),
    m && el("span", { class: "kernel-machine" }, `${m.VGPRs} VGPRs · ${m.Waves} waves`)));
  root.addEventListener("toggle", () => {
    if (!root.open || root.querySelector("pre")) return;
    const pre = el("pre", { tabindex: 0 });
    const show = kind => {
      pre.textContent = kind === "assembly" ? listing(p.Assembly) : listing(module.Listing, kind === "SPIR-V" && 18);
      for (const b of root.querySelectorAll(".tabs button")) b.setAttribute("aria-pressed", String(b.textContent === kind));
    };
    const kinds = p.Assembly ? ["assembly", module.Format] : [module.Format];
    root.append(
      el("div", { class: "facts" }, fact("constants", el("code", {}, p.Consts || "none")), fact("subgroup", p.Wave || "any"), fact("workgroup", p.Workgroup), fact("shared memory", bytes(p.Shared)),
        m && [fact("registers", `${m.VGPRs} vector, ${m.SGPRs} scalar, ${m.Spills} spilled`), fact("subgroups a SIMD", m.Waves), fact("code", bytes(m.Code)),
          fact("instructions", `${m.VALU} vector, ${m.VMEM} memory`), fact("cycles", `${m.Cycles} busy, ${m.Latency} latency`), fact("compiler", m.Compiler)]),
      el("div", { class: "tabs" }, kinds.map(k => el("button", { onclick: () => show(k) }, k)),
        el("small", { class: "muted" }, p.Assembly ? `The assembly is what ${plan.Assembler} makes of this pipeline; the ${module.Format} is that of its module.` : module.Open ? "The module, its specialization constants open." : "The module, with the values of its constants.")),
      pre);
    show(kinds[0]);
  });
  return root;
}
