package doctor

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/gpu"
)

// card is a graphics processor on the PCI bus.
type card struct {
	at     string // its folder, below sys
	slot   string // 0000:03:00.0
	vendor uint32
	device uint32
	driver string // of the kernel; "": none
}

// name is the card for people.
func (c *card) name() string {
	what := gpu.VendorName(c.vendor)
	if chip := gpu.Find(c.vendor, c.device); chip != nil {
		what += " " + chip.Name
	}
	return what + " at " + c.slot
}

// discrete says whether the card has a link of its own: integrated ones lie on the bus of the processor.
func (c *card) discrete() bool { return !strings.HasPrefix(c.slot, "0000:00:") }

// cards lists the graphics processors of makers whose cards run plans.
func (m *Machine) cards() []card {
	const folder = "sys/bus/pci/devices"
	entries, _ := fs.ReadDir(m.Root, folder)
	var all []card
	for _, e := range entries {
		c := card{at: path.Join(folder, e.Name()), slot: e.Name()}
		if target, err := fs.ReadLink(m.Root, c.at); err == nil {
			c.at = path.Join(folder, target)
		}
		class, vendor, device := m.hex(c.at+"/class"), m.hex(c.at+"/vendor"), m.hex(c.at+"/device")
		if base := class >> 16; base != 0x03 && base != 0x12 || gpu.VendorName(vendor) == "" { // displays, and accelerators without one
			continue
		}
		c.vendor, c.device = vendor, device
		if target, err := fs.ReadLink(m.Root, c.at+"/driver"); err == nil {
			c.driver = path.Base(target)
		}
		all = append(all, c)
	}
	return all
}

// hex is a number such as 0x10de, 0 where there is none.
func (m *Machine) hex(name string) uint32 {
	n, err := strconv.ParseUint(m.read(name), 0, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// link is one between two devices on the bus.
type link struct {
	speed float64 // GT/s
	width int64
}

func (l link) String() string { return fmt.Sprintf("x%d at %g GT/s", l.width, l.speed) }

func (l link) rate() float64 { return l.speed * float64(l.width) }

func (m *Machine) link(at, which string) (l link, ok bool) {
	speed, _, _ := strings.Cut(m.read(at+"/"+which+"_link_speed"), " ")
	l.speed, _ = strconv.ParseFloat(speed, 64)
	l.width, _ = m.number(at + "/" + which + "_link_width")
	return l, l.speed > 0 && l.width > 0
}

// links looks for the slowest link between each card and the processor: a card's own switch has fast ones behind it.
func links(m *Machine) []Finding {
	var all []Finding
	for _, c := range m.cards() {
		if !c.discrete() {
			continue
		}
		var now, most link
		for at := c.at; strings.Contains(path.Base(at), ":") && !strings.HasPrefix(path.Base(at), "pci"); at = path.Dir(at) {
			if l, ok := m.link(at, "current"); ok && (now.width == 0 || l.rate() < now.rate()) {
				now = l
			}
			if l, ok := m.link(at, "max"); ok && (most.width == 0 || l.rate() < most.rate()) {
				most = l
			}
		}
		switch {
		case now.width == 0 || most.width == 0:
		case now.width < most.width:
			all = append(all, Finding{State: Note, Found: fmt.Sprintf("%s: %s, of %s", c.name(), now, most),
				Do: "loading is slower: try another slot, no riser, and the board's settings for lanes"})
		case now.speed < most.speed:
			all = append(all, Finding{State: Note, Found: fmt.Sprintf("%s: %s, of %s", c.name(), now, most),
				Do: "a card that sleeps has a slow link: look again while it loads a model; slow then, too: the board's settings for PCIe"})
		default:
			all = append(all, Finding{State: OK, Found: fmt.Sprintf("%s: %s, the most", c.name(), now)})
		}
	}
	return all
}

// aspm looks at how links to cards sleep.
func aspm(m *Machine) []Finding {
	policy := chosen(m.read("sys/module/pcie_aspm/parameters/policy"))
	discrete := false
	for _, c := range m.cards() {
		discrete = discrete || c.discrete()
	}
	switch {
	case policy == "" || !discrete:
		return nil
	case strings.HasPrefix(policy, "power"):
		return []Finding{{State: Problem, Found: "ASPM policy " + policy + ": links to cards sleep between the steps of decoding",
			Do: "echo performance | sudo tee /sys/module/pcie_aspm/parameters/policy; for good: pcie_aspm.policy=performance on the kernel's command line"}}
	}
	return []Finding{{State: OK, Found: "ASPM policy " + policy}}
}
