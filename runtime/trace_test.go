package runtime

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestTrace(t *testing.T) {
	var b strings.Builder
	list := []SiteTime{
		{Site: "embed", Kernel: "embed", Dispatches: 1, Time: 2 * time.Microsecond, Predicted: 1e-6},
		{Site: "blk.0.qkv", Kernel: "gemv", Dispatches: 1, Time: 5 * time.Microsecond, Predicted: 3e-6, Bytes: 7},
	}
	if err := WriteTrace(&b, list); err != nil {
		t.Fatal(err)
	}
	var got struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	// Two rows with a name each.
	if n := len(got.TraceEvents); n != 6 {
		t.Fatalf("%d events: %s", n, b.String())
	}
	for i, want := range []traceEvent{1: {Name: "embed", Dur: 2}, 2: {Name: "blk.0.qkv", Start: 2, Dur: 5}, 4: {Name: "embed", Dur: 1, TID: 1}, 5: {Name: "blk.0.qkv", Start: 1, Dur: 3, TID: 1}} {
		e := got.TraceEvents[i]
		if want.Name != "" && (e.Name != want.Name || e.Start != want.Start || e.Dur != want.Dur || e.TID != want.TID || e.Phase != "X") {
			t.Errorf("event %d is %+v, want %+v", i, e, want)
		}
	}
}

func TestBySite(t *testing.T) {
	got := BySite([]SiteTime{
		{Site: "embed", Kernel: "embed", Dispatches: 1, Time: 3},
		{Site: "blk.0.qkv", Kernel: "gemv", Dispatches: 1, Time: 2, Bytes: 1},
		{Site: "blk.1.qkv", Kernel: "gemv", Dispatches: 1, Time: 2, Bytes: 2},
	})
	if len(got) != 2 || got[0].Site != "blk.*.qkv" || got[0].Dispatches != 2 || got[0].Time != 4 || got[0].Bytes != 3 || got[1].Site != "embed" {
		t.Errorf("%+v", got)
	}
}
