// Command mutants breaks the source in the ways that a table lists, one at a time, and runs the
// test that has to notice. The source itself stays as it is: the compiler gets the broken file in
// its place (go test -overlay).
//
//	go run ./internal/tools/mutants              all; exit code 1 if one survives
//	go run ./internal/tools/mutants barrier      those whose line contains "barrier"
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/table"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, ".", strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries the mutants whose line contains only, of the module at root.
func run(ctx context.Context, w io.Writer, root, only string) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rows := &table.Table{Columns: []string{"mutant", "test", "verdict", "seconds"}}
	survivors := 0
	for _, m := range mutants {
		if !strings.Contains(m.String(), only) {
			continue
		}
		begin := time.Now()
		verdict, err := m.try(ctx, root, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", m, verdict)
		if verdict != killed {
			survivors++
		}
		rows.Add(m.what, m.pkg+" "+m.test, verdict, int(time.Since(begin).Seconds()))
	}
	if err := rows.WriteText(w); err != nil {
		return err
	}
	if survivors > 0 {
		return fmt.Errorf("%d survive", survivors)
	}
	return nil
}

// killed is the verdict on a mutant that its test notices.
const killed = "killed"

// try runs the mutant's test on the module as it would be.
func (m mutant) try(ctx context.Context, root, dir string) (verdict string, err error) {
	path, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	broken, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(replacement, []byte(broken), 0o666); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: replacement}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o666); err != nil {
		return "", err
	}
	var out bytes.Buffer
	c := exec.CommandContext(ctx, "go", "test", "-count=1", "-overlay", list, "-run", m.test, "./"+m.pkg)
	c.Dir, c.Stdout, c.Stderr = root, &out, &out
	c.Env = append(os.Environ(), "RAPID_NOFAILFILE=true") // a failure of broken code is no case to keep
	err = c.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case strings.Contains(out.String(), "[build failed]") || strings.Contains(out.String(), "[setup failed]"):
		return "", fmt.Errorf("does not build: %s", out.String())
	case strings.Contains(out.String(), "no tests to run"):
		return "", fmt.Errorf("no test %s", m.test)
	case err == nil:
		return "SURVIVES", nil
	}
	return killed, nil
}

// apply returns the source with the mutant's change, which must fit at one place.
func (m mutant) apply(source string) (string, error) {
	if n := strings.Count(source, m.old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once", m.file, m.old, n)
	}
	return strings.Replace(source, m.old, m.new, 1), nil
}
