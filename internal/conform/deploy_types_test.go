package conform

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// inferencePool is inference.networking.k8s.io/v1 as its description has it: no Go types of it are to be had.
type inferencePool struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		TargetPorts []struct {
			Number int32 `json:"number"`
		} `json:"targetPorts"`
		EndpointPickerRef struct {
			Group string `json:"group"`
			Kind  string `json:"kind"`
			Name  string `json:"name"`
			Port  struct {
				Number int32 `json:"number"`
			} `json:"port"`
			FailureMode string `json:"failureMode"`
		} `json:"endpointPickerRef"`
	} `json:"spec"`
}

// TestKubernetesTypes: every field of the manifests is one of the API's Go types.
func TestKubernetesTypes(t *testing.T) {
	types := map[string]func() any{
		"v1 ConfigMap": func() any { return new(core.ConfigMap) }, "v1 Service": func() any { return new(core.Service) },
		"apps/v1 Deployment":                           func() any { return new(apps.Deployment) },
		"gateway.networking.k8s.io/v1 HTTPRoute":       func() any { return new(gateway.HTTPRoute) },
		"inference.networking.k8s.io/v1 InferencePool": func() any { return new(inferencePool) },
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy/kubernetes/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
			var kind meta.TypeMeta
			if err := yaml.Unmarshal(doc, &kind); err != nil {
				t.Fatalf("%s: %s", name, err)
			}
			what := kind.APIVersion + " " + kind.Kind
			seen[what] = true
			if types[what] == nil {
				t.Errorf("%s: there is no %s", name, what)
			} else if err := yaml.UnmarshalStrict(doc, types[what]()); err != nil {
				t.Errorf("%s: %s: %s", name, what, err)
			}
		}
	}
	if len(seen) != len(types) {
		t.Errorf("of %d kinds only %v are there", len(types), seen)
	}
}

// TestCompose loads the files as docker compose does, which holds them against the specification.
func TestCompose(t *testing.T) {
	for _, names := range [][]string{{"compose.yaml"}, {"compose.yaml", "compose.cuda.yaml"}} {
		var files []types.ConfigFile
		for _, name := range names {
			files = append(files, types.ConfigFile{Filename: filepath.Join(root, "deploy", name)})
		}
		project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: filepath.Join(root, "deploy"), ConfigFiles: files},
			func(o *loader.Options) { o.SetProjectName("zincrun", true) })
		if err != nil {
			t.Fatal(err)
		}
		s, err := project.GetService("zincrun")
		if err != nil || len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || len(s.Volumes) != 3 {
			t.Errorf("%s: %+v, %v", names, s, err)
		}
		target := "host"
		if len(names) > 1 {
			target = "cuda"
			if devices := s.Deploy.Resources.Reservations.Devices; len(devices) != 1 || devices[0].Driver != "nvidia" || devices[0].Count != 1 {
				t.Errorf("%s: devices %+v", names, devices)
			}
		}
		file, err := os.ReadFile(filepath.Join(root, "deploy/Containerfile"))
		if err != nil || s.Build.Target != target || !strings.Contains(string(file), "AS "+target+"\n") {
			t.Errorf("%s: builds %s, %v", names, s.Build.Target, err)
		}
	}
}

// TestUnit has systemd read the unit, with the program that was built.
func TestUnit(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "deploy/zincrun.service"))
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "zincrun.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(data), "/usr/bin/zincrun", zincrun)), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify (of package systemd): %v: %s", err, out)
	}
}
