package conform

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// documents reads the YAML documents of a file of deploy.
func documents(t *testing.T, name string) []map[string]any {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []map[string]any
	for d := yaml.NewDecoder(f); ; {
		var doc map[string]any
		if err := d.Decode(&doc); err != nil {
			if err.Error() == "EOF" {
				return all
			}
			t.Fatalf("%s: %s", name, err)
		}
		all = append(all, doc)
	}
}

// at returns what stands at a path of keys and indices, as text unless it is a list or a map.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
		if v == nil {
			t.Fatalf("nothing at %v", path)
		}
	}
	return v
}

// commandLine fails unless zincrun takes these arguments, but for the models, which are not there.
func commandLine(t *testing.T, from string, args []string) {
	t.Helper()
	keys := filepath.Join(root, "deploy/keys.toml")
	for i, a := range args {
		if strings.HasSuffix(a, "keys.toml") {
			args[i] = keys
		}
		if strings.HasPrefix(a, "/") || strings.HasPrefix(a, "$") {
			args[i] = filepath.Join(t.TempDir(), "nothing.bin")
		}
	}
	out, err := exec.Command(zincrun, append([]string{"serve"}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if err == nil || !strings.Contains(string(out), "nothing.bin") {
		t.Errorf("%s: zincrun serve %s: %v %v: %s", from, strings.Join(args, " "), err, exit, out)
	}
}

func words(v any) []string {
	var all []string
	for _, x := range v.([]any) {
		all = append(all, fmt.Sprint(x))
	}
	return all
}

func TestKubernetes(t *testing.T) {
	docs := documents(t, "kubernetes/zincrun.yaml")
	kinds := map[string]map[string]any{}
	for _, d := range docs {
		kinds[d["kind"].(string)] = d
	}
	pod := at(t, kinds["Deployment"], "spec", "template", "spec")
	container := at(t, pod, "containers", 0)
	args := words(at(t, container, "args"))
	commandLine(t, "kubernetes", slices.Clone(args))
	port := args[slices.Index(args, "--port")+1]
	if got := fmt.Sprint(at(t, container, "ports", 0, "containerPort")); got != port {
		t.Errorf("the container has port %s, the server %s", got, port)
	}
	for probe, path := range map[string]string{"startupProbe": "/ready", "readinessProbe": "/ready", "livenessProbe": "/live"} {
		if got := at(t, container, probe, "httpGet", "path"); got != path {
			t.Errorf("%s asks for %v, want %s", probe, got, path)
		}
	}
	// The grace period holds preStop and the drain.
	drain := strings.TrimSuffix(args[slices.Index(args, "--drain")+1], "s")
	var seconds int
	fmt.Sscan(drain, &seconds)
	if grace := at(t, pod, "terminationGracePeriodSeconds").(int); grace < seconds+at(t, container, "lifecycle", "preStop", "sleep", "seconds").(int) {
		t.Errorf("%d seconds do not hold preStop and a drain of %d", grace, seconds)
	}
	labels := at(t, kinds["Deployment"], "spec", "template", "metadata", "labels").(map[string]any)
	pool := documents(t, "kubernetes/inferencepool.yaml")[0]
	for from, selector := range map[string]any{
		"Service": at(t, kinds["Service"], "spec", "selector"), "Deployment": at(t, kinds["Deployment"], "spec", "selector", "matchLabels"),
		"InferencePool": at(t, pool, "spec", "selector", "matchLabels"),
	} {
		for k, v := range selector.(map[string]any) {
			if labels[k] != v {
				t.Errorf("%s selects %s=%v, the pods have %v", from, k, v, labels[k])
			}
		}
	}
	if got := fmt.Sprint(at(t, pool, "spec", "targetPorts", 0, "number")); got != port {
		t.Errorf("the pool has port %s, the server %s", got, port)
	}
}

func TestUnitAndContainers(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join(root, "deploy/zincrun.service"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(unit)) {
		if args, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=/usr/bin/zincrun serve "); ok {
			commandLine(t, "unit", strings.Fields(args))
		}
	}
	file, err := os.ReadFile(filepath.Join(root, "deploy/Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	stages := 0
	for line := range strings.Lines(string(file)) {
		if args, ok := strings.CutPrefix(line, "CMD "); ok {
			var list []string
			if err := yaml.Unmarshal([]byte(args), &list); err != nil {
				t.Fatal(err)
			}
			commandLine(t, "Containerfile", list)
			stages++
		}
	}
	service := at(t, documents(t, "compose.yaml")[0], "services", "zincrun")
	if stages != 2 || !strings.Contains(string(file), "AS "+at(t, service, "build", "target").(string)+"\n") {
		t.Errorf("%d stages; compose builds %v", stages, at(t, service, "build", "target"))
	}
}
