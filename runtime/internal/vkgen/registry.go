package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// registry is the part of the Khronos registry file vk.xml that the generator
// reads, with look-up tables beside the decoded elements. The format is
// described in the Khronos document "The Khronos Vulkan API Registry".
type registry struct {
	Tags       []xmlTag       `xml:"tags>tag"`
	Types      []*xmlType     `xml:"types>type"`
	Enums      []*xmlEnums    `xml:"enums"`
	Commands   []*xmlCommand  `xml:"commands>command"`
	Features   []*xmlProvider `xml:"feature"`
	Extensions []*xmlProvider `xml:"extensions>extension"`

	types    map[string]*xmlType    // by C name
	commands map[string]*xmlCommand // by C name
	flagsOf  map[string]string      // VkXFlagBits -> VkXFlags
	source   map[string]source      // what provides a command or type
	values   map[string][]enumerant // enum or FlagBits name -> constants
	limits   map[string]uint64      // API constants, such as VK_UUID_SIZE
}

type xmlTag struct {
	Name string `xml:"name,attr"`
}

type xmlType struct {
	API      string      `xml:"api,attr"`
	Category string      `xml:"category,attr"`
	NameAttr string      `xml:"name,attr"`
	NameElem string      `xml:"name"`
	Alias    string      `xml:"alias,attr"`
	Requires string      `xml:"requires,attr"`
	BitVals  string      `xml:"bitvalues,attr"`
	Inner    []string    `xml:"type"`
	Members  []*xmlField `xml:"member"`
}

// xmlField is a struct member or a command parameter: C text with the type
// and the name marked in it.
type xmlField struct {
	API    string `xml:"api,attr"`
	Values string `xml:"values,attr"`
	Type   string `xml:"type"`
	Name   string `xml:"name"`
	Length string `xml:"enum"`      // array length given by an API constant
	Text   string `xml:",chardata"` // the C text between the marked parts
}

type xmlEnums struct {
	Name   string     `xml:"name,attr"`
	Type   string     `xml:"type,attr"`
	Values []*xmlEnum `xml:"enum"`
}

type xmlEnum struct {
	API     string `xml:"api,attr"`
	Name    string `xml:"name,attr"`
	Value   string `xml:"value,attr"`
	BitPos  string `xml:"bitpos,attr"`
	Alias   string `xml:"alias,attr"`
	Extends string `xml:"extends,attr"`
	Offset  string `xml:"offset,attr"`
	ExtNum  string `xml:"extnumber,attr"`
	Dir     string `xml:"dir,attr"`
}

type xmlCommand struct {
	API   string `xml:"api,attr"`
	Alias string `xml:"alias,attr"`
	Proto struct {
		Type string `xml:"type"`
		Name string `xml:"name"`
	} `xml:"proto"`
	Params []*xmlField `xml:"param"`
}

// xmlProvider is a <feature> (a core version) or an <extension>.
type xmlProvider struct {
	API       string `xml:"api,attr"`
	Name      string `xml:"name,attr"`
	Number    string `xml:"number,attr"`
	Kind      string `xml:"type,attr"` // "instance" or "device", extensions only
	Supported string `xml:"supported,attr"`
	Require   []struct {
		API      string     `xml:"api,attr"`
		Enums    []*xmlEnum `xml:"enum"`
		Types    []xmlTag   `xml:"type"`
		Commands []xmlTag   `xml:"command"`
	} `xml:"require"`
}

// source is the core version or the extension that provides something.
type source struct {
	name      string // VK_VERSION_1_0 or VK_KHR_...
	extension bool
	device    bool // a device extension
}

type enumerant struct {
	name   string
	value  int64
	source string // name of the providing core version or extension
}

// extensionEnumBase is where the numbers of extension enumerants begin; each
// extension has a block of 1000 (style guide, "Assigning extension token values").
const extensionEnumBase = 1000000000

func readRegistry(path string) (*registry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &registry{
		types:    map[string]*xmlType{},
		commands: map[string]*xmlCommand{},
		flagsOf:  map[string]string{},
		source:   map[string]source{},
		values:   map[string][]enumerant{},
		limits:   map[string]uint64{},
	}
	if err := xml.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, t := range r.Types {
		if !forVulkan(t.API) {
			continue
		}
		name := t.name()
		r.types[name] = t
		if t.Category == "bitmask" {
			for _, bits := range []string{t.Requires, t.BitVals} {
				if bits != "" {
					r.flagsOf[bits] = name
				}
			}
		}
	}
	for _, c := range r.Commands {
		if forVulkan(c.API) && c.Alias == "" {
			r.commands[c.Proto.Name] = c
		}
	}
	if err := r.readEnums(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// forVulkan says whether an element with this api attribute is of Vulkan
// proper; later registries list Vulkan SC in the same file.
func forVulkan(api string) bool {
	if api == "" {
		return true
	}
	for a := range strings.SplitSeq(api, ",") {
		if a == "vulkan" {
			return true
		}
	}
	return false
}

func (t *xmlType) name() string {
	if t.NameAttr != "" {
		return t.NameAttr
	}
	return t.NameElem
}

func (r *registry) readEnums() error {
	for _, e := range r.Enums {
		for _, v := range e.Values {
			if v.Alias != "" || !forVulkan(v.API) {
				continue
			}
			if e.Name == "API Constants" {
				if n, err := strconv.ParseUint(v.Value, 0, 32); err == nil {
					r.limits[v.Name] = n
				}
				continue
			}
			n, err := v.number("")
			if err != nil {
				return fmt.Errorf("enum %s: %w", v.Name, err)
			}
			r.values[e.Name] = append(r.values[e.Name], enumerant{v.Name, n, "VK_VERSION_1_0"})
		}
	}
	for _, f := range r.Features {
		if err := r.readProvider(f, source{name: f.Name}); err != nil {
			return err
		}
	}
	for _, x := range r.Extensions {
		src := source{name: x.Name, extension: true, device: x.Kind == "device"}
		if err := r.readProvider(x, src); err != nil {
			return err
		}
	}
	return nil
}

func (r *registry) readProvider(p *xmlProvider, src source) error {
	if !forVulkan(p.API) || p.Supported == "disabled" || (p.Supported != "" && !forVulkan(p.Supported)) {
		return nil
	}
	for _, req := range p.Require {
		if !forVulkan(req.API) {
			continue
		}
		for _, names := range [][]xmlTag{req.Types, req.Commands} {
			for _, n := range names {
				if _, ok := r.source[n.Name]; !ok {
					r.source[n.Name] = src
				}
			}
		}
		for _, v := range req.Enums {
			if v.Extends == "" || v.Alias != "" || !forVulkan(v.API) {
				continue
			}
			n, err := v.number(p.Number)
			if err != nil {
				return fmt.Errorf("%s: enum %s: %w", p.Name, v.Name, err)
			}
			r.values[v.Extends] = append(r.values[v.Extends], enumerant{v.Name, n, p.Name})
		}
	}
	return nil
}

// number is the value of an enumerant; extension is the number of the
// extension that lists it, used unless the enumerant names another.
func (v *xmlEnum) number(extension string) (int64, error) {
	switch {
	case v.Value != "":
		return strconv.ParseInt(v.Value, 0, 64)
	case v.BitPos != "":
		bit, err := strconv.ParseUint(v.BitPos, 10, 6)
		return 1 << bit, err
	case v.Offset != "":
		if v.ExtNum != "" {
			extension = v.ExtNum
		}
		ext, err := strconv.ParseInt(extension, 10, 32)
		if err != nil {
			return 0, err
		}
		off, err := strconv.ParseInt(v.Offset, 10, 32)
		n := extensionEnumBase + (ext-1)*1000 + off
		if v.Dir == "-" {
			n = -n
		}
		return n, err
	}
	return 0, fmt.Errorf("neither value, bitpos nor offset")
}
