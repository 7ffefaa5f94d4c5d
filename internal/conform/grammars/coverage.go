package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// coverage counts which schemas are taken.
func coverage(o *options, args []string) error {
	bad := 0
	var total, all int
	keywords := map[string]int{}
	for _, path := range args {
		list, err := find([]string{path})
		if err != nil {
			return err
		}
		taken := 0
		var slowest time.Duration
		whole, err := newLibrary(path)
		if err != nil {
			return err
		}
		for _, s := range list {
			began := time.Now()
			_, _, err := grammar.Schema(whole.bundle(s), grammar.SchemaOptions{})
			slowest = max(slowest, time.Since(began))
			if err == nil {
				taken++
				continue
			}
			key, ok := refusal(err)
			if !ok {
				bad++
				key = "(an error) "
				var e *grammar.SchemaError
				if errors.As(err, &e) {
					key += e.Keyword
				}
			}
			keywords[key]++
			if o.verbose || !ok {
				fmt.Printf("%s: %v\n", s.name, err)
			}
		}
		total, all = total+taken, all+len(list)
		fmt.Printf("%5d of %5d taken, the slowest in %5d ms: %s\n", taken, len(list), slowest.Milliseconds(), filepath.Base(path))
	}
	share := 100 * float64(total) / float64(all)
	fmt.Printf("%5d of %5d taken: %.1f %%, %d with errors\n", total, all, share, bad)
	printCounts("refused", keywords)
	if share < 95 {
		return fmt.Errorf("less than 95 %% are taken")
	}
	return nil
}
