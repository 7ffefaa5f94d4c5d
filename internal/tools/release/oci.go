package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/internal/version"
)

// descriptor is how a manifest names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// image makes a container image of nothing but the programs, as a tar of the OCI image layout
// (specification 1.1), which `docker load`, podman and skopeo read.
func image(arch string, bins []file, when time.Time) ([]byte, error) {
	var blobs []file
	blob := func(mediaType string, data []byte) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		blobs = append(blobs, file{"blobs/sha256/" + sum, 0o644, data})
		return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(data)}
	}
	files := under("usr/bin", bins)
	plain, err := tarred(slices.Concat(folders(files), files, []file{{"tmp/", 0o1777, nil}}), when)
	if err != nil {
		return nil, err
	}
	packed, err := gzipped(plain)
	if err != nil {
		return nil, err
	}
	layer := blob("application/vnd.oci.image.layer.v1.tar+gzip", packed)
	config, err := json.Marshal(map[string]any{
		"created": when.Format(time.RFC3339), "architecture": arch, "os": "linux",
		"config": map[string]any{
			"Entrypoint": []string{"/usr/bin/zincrun"}, "Cmd": []string{"--help"},
			"Env": []string{"PATH=/usr/bin", "XDG_CACHE_HOME=/cache"}, "ExposedPorts": map[string]any{"8080/tcp": struct{}{}},
			"Volumes": map[string]any{"/cache": struct{}{}, "/models": struct{}{}},
			"Labels":  map[string]string{"org.opencontainers.image.version": version.Release, "org.opencontainers.image.licenses": "Apache-2.0"},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}},
		"history": []map[string]string{{"created": when.Format(time.RFC3339), "created_by": "zincc release"}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": blob("application/vnd.oci.image.config.v1+json", config), "layers": []descriptor{layer},
	})
	if err != nil {
		return nil, err
	}
	d := blob("application/vnd.oci.image.manifest.v1+json", manifest)
	d.Platform = map[string]string{"os": "linux", "architecture": arch}
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": "zincc:" + version.Release}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []descriptor{d}})
	if err != nil {
		return nil, err
	}
	return tarred(append([]file{{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", 0o644, index}}, blobs...), when)
}
