package device_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/trust"
	"github.com/zincc-dev/zincc/runtime/device"
)

// TestUnknown checks that no device takes a plan that nobody has made, checked or accepted.
func TestUnknown(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var file bytes.Buffer
	err := plans.Write(&file, &plans.Plan{
		Header: plans.Header{Target: "host", KV: "none", Ctx: 1, Slots: 1, MaxRows: 1, Ring: 1, Model: plans.Model{Fingerprint: "00", Shards: 1}},
		Memory: plans.Memory{Arena: 64}, Require: plans.Requirements{Backend: plans.Host},
		Program: &ir.Program{Name: "p", Stage: ir.Place, Target: "host", Ctx: 1, Slots: 1, Source: "00"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"host", "auto"} {
		p, err := plans.Decode(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		_, err = device.Open(t.Context(), name, p, nil, device.Options{})
		var unknown *trust.UnknownError
		if !errors.As(err, &unknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeepElsewhere checks that a folder for a processor's weights is refused where another device was asked for by
// name, and hinders no plan that goes to its own.
func TestKeepElsewhere(t *testing.T) {
	const refusal = "weights are kept for the processor alone, and this plan runs on cuda"
	plan := &plans.Plan{Require: plans.Requirements{Backend: plans.CUDA}} // which runs nowhere
	for _, name := range []string{"cuda", "cuda:0", "auto"} {
		var said string
		_, err := device.Open(t.Context(), name, plan, nil, device.Options{Keep: t.TempDir(), Said: func(line string) { said += line }})
		if err == nil {
			t.Fatalf("%s: an empty plan runs", name)
		}
		refused, told := strings.Contains(err.Error(), refusal), strings.Contains(said, refusal)
		if byName := name != "auto"; refused != byName || told == byName {
			t.Errorf("%s: %v, said %q", name, err, said)
		}
	}
}
