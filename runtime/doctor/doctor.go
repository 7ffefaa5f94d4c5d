// Package doctor looks for what keeps plans from running on a computer, or from running as fast as they could, and says
// what to do. It reads and changes nothing.
package doctor

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/runtime/device"
)

// State says how a finding is meant.
type State string

// The states of findings.
const (
	OK      State = "ok"
	Note    State = "note"    // it may cost something, or be meant so
	Problem State = "problem" // it keeps something from running, or costs speed
)

// Finding is what was found about one thing.
type Finding struct {
	Check string `json:"check"` // of Checks
	State State  `json:"state"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what to do about it
}

// Machine is what the checks look at.
type Machine struct {
	Root     fs.FS          // the files of the computer; only Linux has those that the checks read
	System   *device.System // what drivers list
	CPUs     int            // processors of the computer
	Folders  []Folder
	Compiler error // why there is no zincc
}

// Folder is one that zincrun writes to.
type Folder struct {
	Name string // of what is kept there
	Path string // "": there is none
	Set  string // how to have another, or one at all
	Free int64  // bytes on its disk; negative where that is not known
	Err  error  // why it cannot be written, or why there is none
}

// checks are all that is looked at, in order.
var checks = []struct {
	name string
	look func(m *Machine) []Finding
}{
	{"drivers", drivers},
	{"render nodes", nodes},
	{"devices", devices},
	{"matrices", matrices},
	{"PCIe link", links},
	{"PCIe power", aspm},
	{"clocks", clocks},
	{"huge pages", hugePages},
	{"limits", limits},
	{"disk", folders},
	{"compiler", compilers},
}

// Look returns what all checks find. A check that does not apply finds nothing.
func Look(m *Machine) []Finding {
	var all []Finding
	for _, c := range checks {
		for _, f := range c.look(m) {
			f.Check = c.name
			all = append(all, f)
		}
	}
	return all
}

// read returns the first line of a file, or the text up to its last line end; "" where it cannot be read.
func (m *Machine) read(path string) string {
	data, err := fs.ReadFile(m.Root, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// number is the number that a file begins with.
func (m *Machine) number(path string) (int64, bool) {
	word, _, _ := strings.Cut(m.read(path), " ")
	n, err := strconv.ParseInt(word, 10, 64)
	return n, err == nil
}

// chosen is the word in brackets, as files of the kernel mark the choice: "always [madvise] never".
func chosen(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return word
}

func (m *Machine) exists(path string) bool {
	_, err := fs.Stat(m.Root, path)
	return err == nil
}

// container says whether this is a container: devices and limits are then given by whoever started it.
func (m *Machine) container() bool {
	return m.exists(".dockerenv") || m.exists("run/.containerenv") || m.exists("run/systemd/container")
}
