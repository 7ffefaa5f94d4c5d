package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/internal/version"
)

// deb makes a Debian package: an ar archive of the format's version, the control files and the
// files. Source: deb(5).
func deb(arch string, bins, docs, help []file, when time.Time) ([]byte, error) {
	size := 0
	for _, f := range slices.Concat(bins, docs, help) {
		size += len(f.data)
	}
	control := fmt.Sprintf(`Package: zincc
Version: %s
Architecture: %s
Maintainer: the zincc developers <zincc@localhost>
Installed-Size: %d
Recommends: libvulkan1
Section: science
Priority: optional
Description: ahead-of-time compiler and runtime for language models
 zincc compiles a GGUF model for one device, zincrun runs it: a chat, a
 server with the OpenAI and Anthropic APIs, and tools that look inside.
`, version.Release, arch, (size+1023)/1024)
	controls, err := tarball([]file{{"./control", 0o644, []byte(control)}}, when)
	if err != nil {
		return nil, err
	}
	files := slices.Concat(under("./usr/bin", bins), under("./usr/share/doc/zincc", docs), under("./usr/share", help))
	data, err := tarball(slices.Concat(folders(files), files), when) // dpkg makes no folder that is not in the package
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []file{{"debian-binary", 0, []byte("2.0\n")}, {"control.tar.gz", 0, controls}, {"data.tar.gz", 0, data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, when.Unix(), 0, 0, "100644", len(m.data))
		b.Write(m.data)
		if len(m.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}
