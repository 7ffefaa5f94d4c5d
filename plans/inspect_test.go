package plans

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/table"
)

var update = flag.Bool("update", false, "write the golden files")

func TestInspect(t *testing.T) {
	p := testPlan(t, false)
	p.Weights = append(p.Weights, Weight{Name: "rope_freqs", DType: p.Weights[1].DType, Shape: []int64{4}, Layout: "raw", Bytes: 16})
	p.Pipelines[1].Machine = &Machine{Compiler: "radv 25", SGPRs: 128, VGPRs: 48, Waves: 16, Code: 2000, VALU: 200, VMEM: 10, Cycles: 900, Latency: 4000}
	var text, json strings.Builder
	tables := Inspect(p)
	if err := table.WriteText(&text, tables...); err != nil {
		t.Fatal(err)
	}
	if err := table.WriteJSON(&json, tables...); err != nil {
		t.Fatal(err)
	}
	for name, have := range map[string]string{"inspect.txt": text.String(), "inspect.json": json.String()} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(have), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if have != string(want) {
			t.Errorf("%s: have\n%s", path, have)
		}
	}
	// What a host plan says of its dispatches comes from the program, so it is the same.
	if host := Inspect(hostPlan(t))[7]; len(host.Rows) != 10 || host.Rows[1][7] != "gemv.q4_0" {
		t.Errorf("host plan: %v", host.Rows)
	}
}
