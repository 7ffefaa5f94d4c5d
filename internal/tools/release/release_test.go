package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	when  = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	bins  = []file{{"zincc", 0o755, []byte("first")}, {"zincrun", 0o755, []byte("second program")}}
	notes = []file{{"README.md", 0o644, []byte("read")}}
)

// TestDeb has dpkg read the package.
func TestDeb(t *testing.T) {
	data, err := deb("amd64", bins, notes, []file{{"man/man1/zincrun.1.gz", 0o644, []byte("page")}}, when)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "zincc.deb")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flag string
		want []string
	}{
		{"--info", []string{"Package: zincc", "Architecture: amd64", "Recommends: libvulkan1"}},
		{"--contents", []string{"./usr/bin/zincrun", "root/root", "./usr/share/doc/zincc/README.md", "-rwxr-xr-x"}},
	} {
		out, err := exec.Command("dpkg-deb", c.flag, path).CombinedOutput()
		if err != nil {
			t.Fatalf("dpkg-deb %s: %v: %s", c.flag, err, out)
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("dpkg-deb %s: no %q in %s", c.flag, want, out)
			}
		}
	}
	// dpkg installs into an empty root, which takes the folders in the package.
	root := t.TempDir()
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("dpkg", "--root="+root, "--force-not-root", "--force-architecture", "--log="+filepath.Join(root, "log"), "-i", path)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("dpkg -i: %v: %s", err, out)
	}
	for name, want := range map[string]string{"usr/bin/zincrun": "second program", "usr/share/doc/zincc/README.md": "read", "usr/share/man/man1/zincrun.1.gz": "page"} {
		if have, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(have) != want {
			t.Errorf("installed %s: %q, %v", name, have, err)
		}
	}
}

// TestStatic: what a container of nothing is to run needs no dynamic linker.
func TestStatic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zincrun")
	build := exec.Command("go", "build", "-tags=static", "-o", path, "../../../cmd/zincrun")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program wants a dynamic linker")
		}
	}
}

// TestImage walks from the index to the layer by the digests.
func TestImage(t *testing.T) {
	data, err := image("arm64", bins, when)
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, data)
	blob := func(d descriptor) []byte {
		b := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if fmt.Sprintf("sha256:%x", sha256.Sum256(b)) != d.Digest || len(b) != d.Size {
			t.Fatalf("blob %s: %d bytes", d.Digest, len(b))
		}
		return b
	}
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct {
		Architecture string
		RootFS       struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	for _, step := range []struct {
		data func() []byte
		to   any
	}{
		{func() []byte { return files["index.json"] }, &index},
		{func() []byte { return blob(index.Manifests[0]) }, &manifest},
		{func() []byte { return blob(manifest.Config) }, &config},
	} {
		if err := json.Unmarshal(step.data(), step.to); err != nil {
			t.Fatal(err)
		}
	}
	layer := gunzip(t, blob(manifest.Layers[0]))
	if config.Architecture != "arm64" || config.RootFS.DiffIDs[0] != fmt.Sprintf("sha256:%x", sha256.Sum256(layer)) {
		t.Errorf("config %+v", config)
	}
	if got := string(untar(t, layer)["usr/bin/zincrun"]); got != "second program" {
		t.Errorf("the program is %q", got)
	}
}

func TestArchives(t *testing.T) {
	packed, err := tarball(under("zincc-1", bins), when)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(untar(t, gunzip(t, packed))["zincc-1/zincc"]); got != "first" {
		t.Errorf("tar: %q", got)
	}
	again, _ := tarball(under("zincc-1", bins), when)
	if !bytes.Equal(packed, again) {
		t.Error("the same files give other bytes")
	}
	packed, err = zipped(bins, when)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil || len(r.File) != 2 || r.File[1].Name != "zincrun" {
		t.Errorf("zip: %v, %v", r, err)
	}
}

// TestSBOM lists the modules of this test.
func TestSBOM(t *testing.T) {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	data, err := sbom("zincc-1", []file{{"test", 0o755, self}}, when)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"CycloneDX"`, `"pkg:golang/stdlib@1.`, `"SHA-256"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in %s", want, data)
		}
	}
	if _, err := sbom("zincc-1", bins, when); err == nil {
		t.Error("files that are no programs have a list")
	}
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func gunzip(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}
