// Command release builds what people install: static programs for each platform as archives, a
// Debian package, a container image, their checksums and the list of what is inside.
//
//	go run ./internal/tools/release -o dist
//
// The files depend on the source alone: the same commit gives the same bytes.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/internal/version"
)

// platform is a row of what is released.
type platform struct {
	os, arch string
	deb, oci bool
}

var platforms = []platform{
	{"linux", "amd64", true, true},
	{"linux", "arm64", true, true},
	{"windows", "amd64", false, false},
	{"darwin", "arm64", false, false},
}

// programs are the commands, in the order in which they are packed.
var programs = []string{"zincc", "zincrun"}

// file is a file of an archive.
type file struct {
	name string // with slashes
	mode int64
	data []byte
}

func main() {
	out := flag.String("o", "dist", "directory to write to")
	flag.Parse()
	if err := release(*out); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(out string) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	when, err := commitTime()
	if err != nil {
		return err
	}
	docs, err := readDocs("README.md", "LICENSE")
	if err != nil {
		return err
	}
	var made []string
	for _, p := range platforms {
		names, err := p.release(out, docs, when)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
		made = append(made, names...)
	}
	return checksums(out, made)
}

// release builds one platform and returns the names of the files.
func (p platform) release(out string, docs []file, when time.Time) ([]string, error) {
	bins, err := p.build()
	if err != nil {
		return nil, err
	}
	help, err := helpFiles()
	if err != nil {
		return nil, err
	}
	base := fmt.Sprintf("zincc-%s-%s-%s", version.Release, p.os, p.arch)
	packed := map[string][]byte{}
	all := under(base, slices.Concat(bins, docs))
	if p.os == "windows" {
		packed[base+".zip"], err = zipped(all, when)
	} else {
		packed[base+".tar.gz"], err = tarball(all, when)
	}
	if err != nil {
		return nil, err
	}
	if packed[base+".cdx.json"], err = sbom(base, bins, when); err != nil {
		return nil, err
	}
	if p.deb {
		if packed[fmt.Sprintf("zincc_%s_%s.deb", version.Release, p.arch)], err = deb(p.arch, bins, docs, help, when); err != nil {
			return nil, err
		}
	}
	if p.oci {
		// Nothing else is in the image: no dynamic linker, and no driver.
		alone, err := p.build("-tags=static")
		if err != nil {
			return nil, err
		}
		if packed[base+".oci.tar"], err = image(p.arch, alone, when); err != nil {
			return nil, err
		}
	}
	var names []string
	for name, data := range packed {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o666); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// build compiles the programs. They find drivers of graphics cards by the system's dynamic linker, unless a
// flag leaves that out.
func (p platform) build(flags ...string) ([]file, error) {
	dir, err := os.MkdirTemp("", "zincc-release-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var bins []file
	for _, name := range programs {
		if p.os == "windows" {
			name += ".exe"
		}
		args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name)}, flags...)
		c := exec.Command("go", append(args, "./cmd/"+strings.TrimSuffix(name, ".exe"))...)
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=")
		if said, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, said)
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		bins = append(bins, file{name, 0o755, data})
	}
	return bins, nil
}

// helpFiles are the man pages and the completions of shells, where Debian looks for them.
var helpFiles = sync.OnceValues(func() ([]file, error) {
	var all []file
	for _, program := range programs {
		for _, h := range []struct {
			args []string
			name string
			pack bool
		}{
			{[]string{"man"}, "man/man1/" + program + ".1.gz", true},
			{[]string{"completion", "bash"}, "bash-completion/completions/" + program, false},
			{[]string{"completion", "zsh"}, "zsh/vendor-completions/_" + program, false},
			{[]string{"completion", "fish"}, "fish/vendor_completions.d/" + program + ".fish", false},
		} {
			data, err := exec.Command("go", append([]string{"run", "./cmd/" + program}, h.args...)...).Output()
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", program, strings.Join(h.args, " "), err)
			}
			if h.pack {
				if data, err = gzipped(data); err != nil {
					return nil, err
				}
			}
			all = append(all, file{h.name, 0o644, data})
		}
	}
	return all, nil
})

// commitTime is when the commit was made: all files have that time.
func commitTime() (time.Time, error) {
	out, err := exec.Command("git", "log", "-1", "--format=%cI").Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("git log: %w", err)
	}
	t, err := time.Parse(time.RFC3339, strings.TrimSpace(string(out)))
	return t.UTC(), err
}

func readDocs(names ...string) ([]file, error) {
	var all []file
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name, 0o644, data})
	}
	return all, nil
}

// under puts files into a folder.
func under(folder string, files []file) []file {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].name = folder + "/" + moved[i].name
	}
	return moved
}

// checksums writes SHA256SUMS, which sha256sum -c reads.
func checksums(out string, names []string) error {
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(b.String()), 0o666)
}
