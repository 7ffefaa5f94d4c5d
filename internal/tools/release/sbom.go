package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/version"
)

// component is a module, or a program, of a bill of materials.
type component struct {
	Type    string              `json:"type"`
	Name    string              `json:"name"`
	Version string              `json:"version,omitempty"`
	PURL    string              `json:"purl,omitempty"`
	Hashes  []map[string]string `json:"hashes,omitempty"`
}

// sbom lists what Go says that the programs are made of, in CycloneDX 1.5.
func sbom(name string, bins []file, when time.Time) ([]byte, error) {
	modules := map[string]component{}
	var all []component
	for _, bin := range bins {
		info, err := buildinfo.Read(bytes.NewReader(bin.data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", bin.name, err)
		}
		all = append(all, component{Type: "file", Name: bin.name, Hashes: []map[string]string{{"alg": "SHA-256", "content": fmt.Sprintf("%x", sha256.Sum256(bin.data))}}})
		goVersion := strings.TrimPrefix(info.GoVersion, "go")
		modules["stdlib"] = component{Type: "library", Name: "stdlib", Version: goVersion, PURL: "pkg:golang/stdlib@" + goVersion}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			modules[m.Path] = component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
		}
	}
	for _, m := range modules {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.Type+a.Name, b.Type+b.Name) })
	return json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"timestamp": when.Format(time.RFC3339), "component": component{Type: "application", Name: name, Version: version.Release}},
		"components": all,
	}, "", "  ")
}
