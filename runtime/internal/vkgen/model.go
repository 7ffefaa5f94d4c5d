package main

import (
	"cmp"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// model is what is generated: the commands of the allow-list and every type
// that they reach.
type model struct {
	reg      *registry
	enums    []*goEnum
	handles  []*goHandle
	unions   []string
	structs  []*goStruct
	commands []*goCommand

	seen map[string]bool // C types already taken in
	tags map[string]bool // vendor suffixes, kept in capitals
}

type goEnum struct {
	cName  string // VkX or VkXFlags
	goType string // int32, uint32 or uint64
	values []enumerant
}

type goHandle struct {
	cName        string
	dispatchable bool // a pointer, not a 64-bit number
}

type goStruct struct {
	cName  string
	sType  string // enumerant of VkStructureType, if it has one
	source string
	fields []*goField
}

// goField is a struct member or a command parameter.
type goField struct {
	cName    string
	cType    string
	base     string // Go name of the pointed-to or plain type; "" for void
	pointers int
	length   uint64 // of an array; 0 when it is none
}

type goCommand struct {
	cName     string
	level     string // row of levels
	extension string // "" for a core command
	late      bool   // an instance-level command of a device extension
	manual    bool   // the method is written by hand
	result    string // C type
	params    []*goField
}

// levels are the tables that commands are sorted into, by the type of their
// first parameter.
var levels = []struct {
	name  string
	first []string
}{
	{"Instance", []string{"VkInstance", "VkPhysicalDevice"}},
	{"Device", []string{"VkDevice", "VkQueue", "VkCommandBuffer"}},
	{"Global", nil},
}

func newModel(reg *registry) (*model, error) {
	m := &model{reg: reg, seen: map[string]bool{}, tags: map[string]bool{}}
	for _, t := range reg.Tags {
		m.tags[t.Name] = true
	}
	for _, row := range commandRows {
		c, err := m.command(row)
		if err != nil {
			return nil, fmt.Errorf("command %s: %w", row.name, err)
		}
		m.commands = append(m.commands, c)
	}
	for _, name := range chained {
		if err := m.need(name); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(m.commands, func(a, b *goCommand) int { return cmp.Compare(a.cName, b.cName) })
	slices.SortFunc(m.structs, func(a, b *goStruct) int { return cmp.Compare(a.cName, b.cName) })
	slices.SortFunc(m.handles, func(a, b *goHandle) int { return cmp.Compare(a.cName, b.cName) })
	slices.SortFunc(m.enums, func(a, b *goEnum) int { return cmp.Compare(a.cName, b.cName) })
	slices.Sort(m.unions)
	m.keepUsedStructureTypes()
	return m, nil
}

func (m *model) command(row commandRow) (*goCommand, error) {
	c := &goCommand{cName: row.name, extension: row.extension, manual: row.extension != ""}
	if c.manual {
		c.level, c.late = "Instance", true
		return c, nil
	}
	x := m.reg.commands[row.name]
	if x == nil {
		return nil, fmt.Errorf("not in the registry")
	}
	switch src := m.reg.source[row.name]; {
	case src.extension && !extensions[src.name]:
		return nil, fmt.Errorf("its extension %s is not in the table of extensions", src.name)
	case src.extension:
		c.extension = src.name
	case src.name > "VK_VERSION_1_2":
		return nil, fmt.Errorf("is of %s, above the version that the runtime requires", src.name)
	}
	for _, p := range x.Params {
		if !forVulkan(p.API) {
			continue
		}
		f, err := m.field(p)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		if f.length != 0 || f.base == "float32" && f.pointers == 0 {
			return nil, fmt.Errorf("parameter %s: arrays and floats cannot be passed", p.Name)
		}
		c.params = append(c.params, f)
	}
	c.result = x.Proto.Type
	if err := m.need(c.result); err != nil {
		return nil, err
	}
	for _, l := range levels {
		if l.first == nil || slices.Contains(l.first, c.params[0].cType) {
			c.level = l.name
			break
		}
	}
	if c.cName == "vkGetDeviceProcAddr" {
		c.level = "Instance" // it loads the device table, so it cannot be in it
	}
	return c, nil
}

var arrayLength = regexp.MustCompile(`\[(\w*)\]`)

// field translates a C declaration and takes in the type that it names.
func (m *model) field(x *xmlField) (*goField, error) {
	f := &goField{cName: x.Name, cType: x.Type, pointers: strings.Count(x.Text, "*")}
	if strings.Contains(x.Text, ":") {
		return nil, fmt.Errorf("bit fields are not supported")
	}
	if dims := arrayLength.FindAllStringSubmatch(x.Text, -1); len(dims) > 1 {
		return nil, fmt.Errorf("arrays of arrays are not supported")
	} else if len(dims) == 1 && x.Length != "" {
		n, ok := m.reg.limits[x.Length]
		if !ok {
			return nil, fmt.Errorf("unknown array length %s", x.Length)
		}
		f.length = n
	} else if len(dims) == 1 {
		n, err := strconv.ParseUint(dims[0][1], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("array length: %w", err)
		}
		f.length = n
	}
	if x.Type == "VkAllocationCallbacks" {
		return f, nil // always passed as NULL
	}
	if err := m.need(x.Type); err != nil {
		return nil, err
	}
	f.base = m.goType(x.Type)
	return f, nil
}

// need takes in a C type and all that it reaches.
func (m *model) need(cName string) error {
	if _, ok := baseTypes[cName]; ok {
		return nil
	}
	if flags, ok := m.reg.flagsOf[cName]; ok {
		cName = flags
	}
	if m.seen[cName] {
		return nil
	}
	m.seen[cName] = true
	t := m.reg.types[cName]
	if t == nil {
		return fmt.Errorf("type %s: not in the registry", cName)
	}
	if t.Alias != "" {
		return fmt.Errorf("type %s: is an alias, use %s", cName, t.Alias)
	}
	switch t.Category {
	case "funcpointer":
		return nil
	case "handle":
		m.handles = append(m.handles, &goHandle{cName, slices.Contains(t.Inner, "VK_DEFINE_HANDLE")})
		return nil
	case "enum", "bitmask":
		return m.enum(t)
	case "union":
		if unions[cName] == "" {
			return fmt.Errorf("union %s: not in the table of unions", cName)
		}
		m.unions = append(m.unions, cName)
		return nil
	case "struct":
		return m.structure(t)
	}
	return fmt.Errorf("type %s: category %q is not supported", cName, t.Category)
}

func (m *model) enum(t *xmlType) error {
	e := &goEnum{cName: t.name(), goType: "int32"}
	valuesOf := e.cName
	if t.Category == "bitmask" {
		e.goType = "uint32"
		if slices.Contains(t.Inner, "VkFlags64") {
			e.goType = "uint64"
		}
		valuesOf = cmp.Or(t.Requires, t.BitVals)
	}
	have := map[string]bool{}
	for _, v := range m.reg.values[valuesOf] {
		core := strings.HasPrefix(v.source, "VK_VERSION_")
		if (core || extensions[v.source] || wholeEnums[e.cName]) && !have[v.name] {
			have[v.name] = true
			e.values = append(e.values, v)
		}
	}
	slices.SortStableFunc(e.values, func(a, b enumerant) int { return cmp.Compare(a.value, b.value) })
	m.enums = append(m.enums, e)
	return nil
}

func (m *model) structure(t *xmlType) error {
	s := &goStruct{cName: t.name(), source: m.reg.source[t.name()].name}
	m.structs = append(m.structs, s)
	for _, x := range t.Members {
		if !forVulkan(x.API) {
			continue
		}
		f, err := m.field(x)
		if err != nil {
			return fmt.Errorf("struct %s: member %s: %w", s.cName, x.Name, err)
		}
		s.fields = append(s.fields, f)
		if x.Name == "sType" {
			s.sType = x.Values
		}
	}
	return nil
}

// keepUsedStructureTypes drops the several hundred enumerants of
// VkStructureType that belong to structs which are not generated.
func (m *model) keepUsedStructureTypes() {
	used := map[string]bool{}
	for _, s := range m.structs {
		used[s.sType] = true
	}
	for _, e := range m.enums {
		if e.cName == "VkStructureType" {
			e.values = slices.DeleteFunc(e.values, func(v enumerant) bool { return !used[v.name] })
		}
	}
}

// goType is the Go name of a C type; "" for void.
func (m *model) goType(cName string) string {
	if g, ok := baseTypes[cName]; ok {
		return g
	}
	if flags, ok := m.reg.flagsOf[cName]; ok {
		cName = flags
	}
	if strings.HasPrefix(cName, "PFN_") {
		return "uintptr"
	}
	return strings.TrimPrefix(cName, "Vk")
}

// goConstant turns VK_BUFFER_USAGE_TRANSFER_SRC_BIT_KHR into
// BufferUsageTransferSrcBitKHR.
func (m *model) goConstant(cName string) string {
	var b strings.Builder
	words := strings.Split(strings.TrimPrefix(cName, "VK_"), "_")
	for i, w := range words {
		if i < len(words)-1 || !m.tags[w] {
			w = w[:1] + strings.ToLower(w[1:])
		}
		b.WriteString(w)
	}
	return b.String()
}

// bit is the position of the only set bit of v, or -1.
func bit(v int64) int {
	if v <= 0 || v&(v-1) != 0 {
		return -1
	}
	return bits.TrailingZeros64(uint64(v))
}

// exported is the Go field name of a C member: pNext becomes PNext.
func exported(cName string) string {
	return strings.ToUpper(cName[:1]) + cName[1:]
}
