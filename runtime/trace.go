package runtime

import (
	"encoding/json"
	"io"
	"time"
)

// traceEvent is a complete event of the Trace Event Format that chrome://tracing and
// Perfetto read; times are in microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Start float64        `json:"ts"`
	Dur   float64        `json:"dur"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// WriteTrace writes a profile as a trace: dispatches one after the other, with the predictions of the plan
// below them.
func WriteTrace(w io.Writer, list []SiteTime) error {
	micro := func(d time.Duration) float64 { return float64(d) / 1e3 }
	var events []traceEvent
	for tid, row := range []struct {
		name string
		time func(t SiteTime) float64
	}{
		{"dispatches", func(t SiteTime) float64 { return micro(t.Time) }},
		{"predicted", func(t SiteTime) float64 { return 1e6 * t.Predicted }},
	} {
		at := 0.0
		var own []traceEvent
		for _, t := range list {
			own = append(own, traceEvent{Name: t.Site, Cat: t.Kernel, Phase: "X", Start: at, Dur: row.time(t), TID: tid,
				Args: map[string]any{"kernel": t.Kernel, "bytes": t.Bytes, "flops": t.FLOPs}})
			at += row.time(t)
		}
		if at > 0 {
			events = append(events, traceEvent{Name: "thread_name", Phase: "M", TID: tid, Args: map[string]any{"name": row.name}})
			events = append(events, own...)
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ns"})
}
