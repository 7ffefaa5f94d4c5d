package library

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// caches are the folders of other programs.
var caches = []struct {
	name  string
	roots func() []string
	find  func(root string) []Model
}{
	{"Hugging Face", hubRoots, hubModels},
	{"Ollama", ollamaRoots, ollamaModels},
	{"LM Studio", func() []string { return atHome(".lmstudio/models", ".cache/lm-studio/models") }, studioModels},
}

func atHome(paths ...string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	var all []string
	for _, p := range paths {
		all = append(all, filepath.Join(home, filepath.FromSlash(p)))
	}
	return all
}

// hubRoots: https://huggingface.co/docs/hub/local-cache.
func hubRoots() []string {
	for _, v := range []struct{ name, below string }{
		{"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", "hub"}, {"XDG_CACHE_HOME", "huggingface/hub"},
	} {
		if dir := os.Getenv(v.name); dir != "" {
			return []string{filepath.Join(dir, filepath.FromSlash(v.below))}
		}
	}
	return atHome(".cache/huggingface/hub")
}

// hubModels reads models--ORG--REPO/snapshots/COMMIT: that of branch main, else all, the newest first: some clients
// make one for each file.
func hubModels(root string) []Model {
	dirs, _ := os.ReadDir(root)
	var all []Model
	for _, d := range dirs {
		repo, ok := strings.CutPrefix(d.Name(), "models--")
		org, name, two := strings.Cut(repo, "--")
		if !ok || !two {
			continue
		}
		for _, snapshot := range snapshots(filepath.Join(root, d.Name())) {
			all = append(all, scan(snapshot, func(rel, quant string) string { return hubName(org+"/"+name, rel, quant) })...)
		}
	}
	return all
}

func snapshots(dir string) []string {
	root := filepath.Join(dir, "snapshots")
	if commit, err := readSmall(filepath.Join(dir, "refs", "main")); err == nil {
		name := strings.TrimSpace(string(commit))
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.IsDir() && IsLocalName(name) {
			return []string{filepath.Join(root, name)}
		}
	}
	dirs, _ := os.ReadDir(root)
	changed := func(d os.DirEntry) int64 {
		info, err := d.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortStableFunc(dirs, func(a, b os.DirEntry) int { return cmp.Compare(changed(b), changed(a)) })
	var all []string
	for _, d := range dirs {
		all = append(all, filepath.Join(root, d.Name()))
	}
	return all
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// ollamaRoots are OLLAMA_MODELS, else those of the user and of Ollama's service on Linux.
func ollamaRoots() []string {
	if dir := os.Getenv("OLLAMA_MODELS"); dir != "" {
		return []string{dir}
	}
	return append(atHome(".ollama/models"), "/usr/share/ollama/.ollama/models")
}

// digest is how manifests name contents.
var digest = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// Manifest is what a registry says of a model: Ollama's reading of Docker's manifest, version 2.
type Manifest struct {
	Layers []Layer `json:"layers"`
}

// Layer is one of a model's files.
type Layer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

// Sum is the SHA-256 of the layer's bytes in hex, "" if Digest is none.
func (l Layer) Sum() string {
	m := digest.FindStringSubmatch(l.Digest)
	if m == nil {
		return ""
	}
	return m[1]
}

// The types of layers that say what a model is.
const (
	ModelLayer     = "application/vnd.ollama.image.model"
	ProjectorLayer = "application/vnd.ollama.image.projector"
	AdapterLayer   = "application/vnd.ollama.image.adapter"
)

// ollamaModels reads manifests/HOST/NAMESPACE/NAME/TAG. The model is the one layer of its type; it lies in
// blobs/sha256-SUM.
func ollamaModels(root string) []Model {
	paths, _ := filepath.Glob(filepath.Join(root, "manifests", "*", "*", "*", "*"))
	var all []Model
	for _, p := range paths[:min(len(paths), maxFiles)] {
		rel, err := filepath.Rel(filepath.Join(root, "manifests"), p)
		if err != nil {
			continue
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		raw, err := readSmall(p)
		var m Manifest
		if err != nil || json.Unmarshal(raw, &m) != nil {
			continue
		}
		i := slices.IndexFunc(m.Layers, func(l Layer) bool { return l.MediaType == ModelLayer })
		if i < 0 || m.Layers[i].Sum() == "" {
			continue
		}
		file := filepath.Join(root, "blobs", "sha256-"+m.Layers[i].Sum())
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		name := Ref{Kind: Registry, Repo: parts[1] + "/" + parts[2], Tag: parts[3]}.String()
		if contains(hubs, parts[0]) {
			name = Ref{Kind: HuggingFace, Repo: parts[1] + "/" + parts[2], Tag: parts[3]}.String()
		} else if !contains(registries, parts[0]) {
			name = parts[0] + "/" + name
		}
		all = append(all, Model{Name: name, Path: file, Bytes: info.Size(), Modified: info.ModTime(), Digest: m.Layers[i].Sum(), Stem: parts[2]})
	}
	return all
}

// studioModels reads ORG/REPO/FILE, as the files lie at Hugging Face.
func studioModels(root string) []Model {
	return scan(root, func(rel, quant string) string {
		if parts := strings.SplitN(rel, "/", 3); len(parts) == 3 {
			return hubName(parts[0]+"/"+parts[1], parts[2], quant)
		}
		return rel
	})
}
