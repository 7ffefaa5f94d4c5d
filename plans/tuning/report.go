package tuning

import "github.com/zincc-dev/zincc/internal/table"

// Report lists rows for people.
func Report(title string, rows []Row) *table.Table {
	t := &table.Table{Title: title, Columns: []string{"site", "best", "us", "next", "next us", "of", "device", "driver"}}
	for _, r := range rows {
		t.Add(r.Site, r.Best, r.Micros, r.Next, r.NextMicros, r.Of, r.Device, r.Driver)
	}
	return t
}
