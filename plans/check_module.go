package plans

import "fmt"

// What rule "module" needs of SPIR-V (specification, sections 2.3 and 3).
const (
	opTypeArray   = 28
	opTypeStruct  = 30
	opTypePointer = 32
	opConstant    = 43
	opVariable    = 59
	opDecorate    = 71

	decorationSpecID      = 1
	decorationArrayStride = 6

	classUniformConstant = 0
	classUniform         = 2
	classPushConstant    = 9
	classStorageBuffer   = 12

	spirvHeader  = 5 // words before the first instruction
	addressBytes = 8 // of an argument in the push constants
)

// moduleInfo is the interface of a SPIR-V module.
type moduleInfo struct {
	specIDs     map[uint32]bool
	args        int  // addresses in the push constants, -1 if it has none
	push        int  // members of all push constant blocks
	descriptors bool // it has a variable that a descriptor set must bind
}

// readModule reads the interface of a module, whose header validate has seen.
func readModule(words []uint32) (*moduleInfo, error) {
	info := &moduleInfo{specIDs: map[uint32]bool{}, args: -1}
	structs := map[uint32][]uint32{}   // members by struct
	pointees := map[uint32][2]uint32{} // class and type by pointer
	arrays := map[uint32]uint32{}      // length by array
	addresses := map[uint32]bool{}     // arrays of the stride of addresses
	constants := map[uint32]uint32{}
	for at := spirvHeader; at < len(words); {
		n, op := int(words[at]>>16), words[at]&0xffff
		if n == 0 || n > len(words)-at {
			return nil, fmt.Errorf("instruction at word %d has %d words, %d are left", at, n, len(words)-at)
		}
		o := words[at+1 : at+n]
		at += n
		switch {
		case op == opDecorate && n == 4 && o[1] == decorationSpecID:
			info.specIDs[o[2]] = true
		case op == opDecorate && n == 4 && o[1] == decorationArrayStride && o[2] == addressBytes:
			addresses[o[0]] = true
		case op == opTypeStruct && n >= 2:
			structs[o[0]] = o[1:]
		case op == opTypePointer && n == 4:
			pointees[o[0]] = [2]uint32{o[1], o[2]}
		case op == opTypeArray && n == 4:
			arrays[o[0]] = o[2]
		case op == opConstant && n == 4:
			constants[o[1]] = o[2]
		case op == opVariable && n >= 4:
			switch o[2] {
			case classPushConstant:
				info.push += len(structs[pointees[o[0]][1]])
			case classUniformConstant, classUniform, classStorageBuffer:
				info.descriptors = true
			}
		}
	}
	for _, p := range pointees {
		if members := structs[p[1]]; p[0] == classPushConstant && len(members) == 1 && addresses[members[0]] {
			if length, ok := arrays[members[0]]; ok {
				info.args = int(constants[length])
			}
		}
	}
	return info, nil
}

// checkModules holds the SPIR-V against the pipelines and dispatches that use it.
func checkModules(c *checker) {
	infos := make([]*moduleInfo, len(c.plan.Modules))
	for i, m := range c.plan.Modules {
		info, err := readModule(m.Words)
		if err != nil {
			c.add("module", "", m.Name, "%s", err)
			continue
		}
		if infos[i] = info; info.descriptors {
			c.add("module", "", m.Name, "has descriptors; kernels reach memory through the addresses in the push constants")
		}
		if info.push > 1 {
			c.add("step-block", "", m.Name, "push constants have %d members, want the addresses of the arguments alone", info.push)
		}
	}
	for i, pl := range c.plan.Pipelines {
		for _, k := range pl.Consts {
			if info := infos[pl.Module]; info != nil && !info.specIDs[k.ID] {
				c.add("module", "", c.plan.Modules[pl.Module].Name, "has no specialization constant %d, which pipeline %d sets as %s", k.ID, i, k.Name)
			}
		}
	}
	for i := range c.sites {
		s := &c.sites[i]
		if info := infos[c.plan.Pipelines[s.Pipeline].Module]; info != nil && info.args >= 0 && info.args != len(s.Args) {
			c.addAt("module", s, "%d arguments, the module reads %d addresses", len(s.Args), info.args)
		}
	}
}
