package library

import (
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

// hubModels reads models--ORG--REPO/snapshots/COMMIT: that of branch main, else the newest.
func hubModels(root string) []Model {
	dirs, _ := os.ReadDir(root)
	var all []Model
	for _, d := range dirs {
		repo, ok := strings.CutPrefix(d.Name(), "models--")
		org, name, two := strings.Cut(repo, "--")
		if !ok || !two {
			continue
		}
		dir := filepath.Join(root, d.Name())
		if snapshot := newest(dir); snapshot != "" {
			all = append(all, scan(snapshot, func(rel, quant string) string { return hubName(org+"/"+name, rel, quant) })...)
		}
	}
	return all
}

func newest(dir string) string {
	snapshots := filepath.Join(dir, "snapshots")
	if commit, err := readSmall(filepath.Join(dir, "refs", "main")); err == nil {
		name := strings.TrimSpace(string(commit))
		if info, err := os.Stat(filepath.Join(snapshots, name)); err == nil && info.IsDir() && IsLocalName(name) {
			return filepath.Join(snapshots, name)
		}
	}
	dirs, _ := os.ReadDir(snapshots)
	best, found := int64(0), ""
	for _, d := range dirs {
		if info, err := d.Info(); err == nil && info.IsDir() && (found == "" || info.ModTime().UnixNano() > best) {
			best, found = info.ModTime().UnixNano(), filepath.Join(snapshots, d.Name())
		}
	}
	return found
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

// ollamaModels reads manifests/HOST/NAMESPACE/NAME/TAG. The model is the one layer of its type; it lies in blobs/sha256-SUM.
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
