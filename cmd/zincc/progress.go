package main

import (
	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/progress"
)

// watch shows how far a compilation is, until the bar is done.
func watch(what string) (*cli.Progress, codegen.Progress) {
	bar := cli.NewProgress(what, 0)
	return bar, func(part string, done, total int) {
		bar.At(progress.Report{Part: part, Done: int64(done), Total: int64(total)})
	}
}
