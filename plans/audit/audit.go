// Package audit checks plans as package plans does, and reads their modules on top: whether
// the code asks for no more than the plan requires, and does with its arguments what the
// dispatches say.
package audit

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/spirv"
)

// rule is one row of the table of rules that read modules.
type rule struct {
	plans.Rule
	check func(a *auditor)
}

var rules = []rule{
	{plans.Rule{Name: "code", Doc: "entry point, workgroup size, shared memory and specialization constants of a module are those of its pipelines"}, checkCode},
	{plans.Rule{Name: "effects", Doc: "a module stores to the arguments that its dispatches declare as written, reads those that they declare as read, and reaches no other memory"}, checkEffects},
	{plans.Rule{Name: "capabilities", Doc: "the plan requires the features, extensions, subgroup operations and fragments that its modules use"}, checkCapabilities},
}

// Rules lists what Check proves: the rules of package plans, and those that read modules.
func Rules() []plans.Rule {
	list := plans.Rules()
	for _, r := range rules {
		list = append(list, r.Rule)
	}
	return list
}

// Check returns all that is wrong with p. It needs no device. A plan that breaks rule "schema"
// is checked no further, nor is a module that cannot be read.
func Check(p *plans.Plan) []plans.Problem {
	a := &auditor{plan: p, problems: plans.Check(p)}
	if slices.ContainsFunc(a.problems, func(x plans.Problem) bool { return x.Rule == "schema" }) {
		return a.problems
	}
	a.read()
	for _, r := range rules {
		r.check(a)
	}
	return a.problems
}

type auditor struct {
	plan      *plans.Plan
	pipelines []*spirv.Interface // nil where the module cannot be read
	problems  []plans.Problem
}

func (a *auditor) add(rule, entry, site, format string, args ...any) {
	a.problems = append(a.problems, plans.Problem{Rule: rule, Entry: entry, Site: site, Message: fmt.Sprintf(format, args...)})
}

// name of a pipeline, for people.
func (a *auditor) name(i int) string {
	return fmt.Sprintf("pipeline %d, %s", i, a.plan.Modules[a.plan.Pipelines[i].Module].Name)
}

// read reads the interface of every pipeline's module under its constants.
func (a *auditor) read() {
	for i, pl := range a.plan.Pipelines {
		spec := map[uint32]uint32{}
		for _, k := range pl.Consts {
			spec[k.ID] = k.Value
		}
		info, err := spirv.ReadInterface(a.plan.Modules[pl.Module].Words, spec)
		if err != nil {
			a.add("code", "", a.name(i), "%v", err)
		}
		a.pipelines = append(a.pipelines, info)
	}
}

// entryPoint is the name that runtimes call.
const entryPoint = "main"

func checkCode(a *auditor) {
	constants := map[int][]spirv.SpecConstant{} // by module
	for i, pl := range a.plan.Pipelines {
		info := a.pipelines[i]
		if info == nil {
			continue
		}
		list, ok := constants[pl.Module]
		if !ok {
			list, _ = spirv.SpecConstants(a.plan.Modules[pl.Module].Words) // ReadInterface has seen that it can
			constants[pl.Module] = list
		}
		for _, have := range list {
			at := slices.IndexFunc(pl.Consts, func(k plans.Const) bool { return k.ID == have.SpecID })
			if at < 0 {
				a.add("code", "", a.name(i), "specialization constant %d, %s, has no value", have.SpecID, have.Name)
			} else if name := pl.Consts[at].Name; have.Name != name {
				a.add("code", "", a.name(i), "specialization constant %d is %s, the module calls it %s", have.SpecID, name, have.Name)
			}
		}
		if info.EntryPoint != entryPoint {
			a.add("code", "", a.name(i), "entry point is %q, want %q", info.EntryPoint, entryPoint)
		}
		if want := [3]uint32{uint32(pl.Workgroup), 1, 1}; info.LocalSize != want {
			a.add("code", "", a.name(i), "workgroup of %d, the module has %d", pl.Workgroup, info.LocalSize)
		}
		if info.Shared != uint64(pl.Shared) {
			a.add("code", "", a.name(i), "%d bytes of shared memory, the module has %d", pl.Shared, info.Shared)
		}
	}
}

func checkEffects(a *auditor) {
	for i, info := range a.pipelines {
		if info != nil && info.Stray != "" {
			a.add("effects", "", a.name(i), "%s", info.Stray)
		}
	}
	for _, e := range a.plan.Entries {
		for _, d := range e.Dispatches {
			if d.Pipeline < 0 || a.pipelines[d.Pipeline] == nil {
				continue
			}
			info := a.pipelines[d.Pipeline]
			for i, arg := range d.Args {
				for _, way := range []struct {
					name     string
					declared bool
					have     map[int]bool
				}{{"read", arg.Read, info.Loads}, {"written", arg.Write, info.Stores}} {
					switch have := way.have[i]; {
					case have && !way.declared:
						a.add("effects", e.Name, d.Site, "argument %q is %s by the module, which the dispatch does not say", arg.Name, way.name)
					case way.declared && !have:
						a.add("effects", e.Name, d.Site, "argument %q is never %s by the module", arg.Name, way.name)
					}
				}
			}
			for _, have := range []map[int]bool{info.Loads, info.Stores} {
				for i := range have {
					if i >= len(d.Args) {
						a.add("effects", e.Name, d.Site, "the module reaches argument %d of %d", i, len(d.Args))
					}
				}
			}
		}
	}
}

// capability is what a plan must require for a capability of SPIR-V; nothing for a zero.
type capability struct {
	feature  string // of Vulkan
	subgroup string // class of subgroup operations
}

// capabilities are those that modules of plans may have.
var capabilities = map[spirv.Capability]capability{
	spirv.CapabilityShader:                         {},
	spirv.CapabilityGroupNonUniform:                {}, // in every other class
	spirv.CapabilityPhysicalStorageBufferAddresses: {feature: "bufferDeviceAddress"},
	spirv.CapabilityVulkanMemoryModel:              {feature: "vulkanMemoryModel"},
	spirv.CapabilityInt16:                          {feature: "shaderInt16"},
	spirv.CapabilityStorageBuffer16BitAccess:       {feature: "storageBuffer16BitAccess"},
	spirv.CapabilityFloat16:                        {feature: "shaderFloat16"},
	spirv.CapabilityDotProduct:                     {feature: "shaderIntegerDotProduct"},
	spirv.CapabilityDotProductInput4x8BitPacked:    {feature: "shaderIntegerDotProduct"},
	spirv.CapabilityCooperativeMatrixKHR:           {feature: "cooperativeMatrix"},
	spirv.CapabilityGroupNonUniformVote:            {subgroup: "vote"},
	spirv.CapabilityGroupNonUniformArithmetic:      {subgroup: "arithmetic"},
	spirv.CapabilityGroupNonUniformShuffle:         {subgroup: "shuffle"},
}

// extensions are Vulkan's for those of SPIR-V; empty for those that a feature stands for.
var extensions = map[string]string{
	"SPV_KHR_cooperative_matrix":  "VK_KHR_cooperative_matrix",
	"SPV_KHR_integer_dot_product": "",
}

func checkCapabilities(a *auditor) {
	r := &a.plan.Require
	lacks := func(list []string, name string) bool { return name != "" && !slices.Contains(list, name) }
	done := map[string]bool{}
	for i, info := range a.pipelines {
		name := a.plan.Modules[a.plan.Pipelines[i].Module].Name
		if info == nil || done[name] {
			continue
		}
		done[name] = true
		groups := false
		for _, c := range info.Capabilities {
			need, ok := capabilities[c]
			groups = groups || c == spirv.CapabilityGroupNonUniform
			switch {
			case !ok:
				a.add("capabilities", "", name, "capability %d is none that plans may use", c)
			case lacks(r.Features, need.feature):
				a.add("capabilities", "", name, "needs feature %s, which the plan does not require", need.feature)
			case lacks(r.SubgroupOps, need.subgroup):
				a.add("capabilities", "", name, "needs subgroup operations of class %s, which the plan does not require", need.subgroup)
			}
		}
		if groups && len(r.SubgroupOps) == 0 {
			a.add("capabilities", "", name, "needs subgroup operations, of which the plan requires none")
		}
		for _, x := range info.Extensions {
			need, ok := extensions[x]
			if !ok {
				a.add("capabilities", "", name, "extension %s is none that plans may use", x)
			} else if lacks(r.Extensions, need) {
				a.add("capabilities", "", name, "needs extension %s, which the plan does not require", need)
			}
		}
		if info.Fragments && !r.Dealt {
			a.add("capabilities", "", name, "relies on which elements of a matrix a lane holds, which the plan does not require")
		}
	}
}
