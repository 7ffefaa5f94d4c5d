package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	release "github.com/zincc-dev/zincc/internal/version"
)

// version is what --version prints: the release, the commit if Go recorded it, Go and the platform.
func version(program string) string {
	commit, changed := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = ", commit " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " with changes"
			}
		}
	}
	return fmt.Sprintf("%s %s%s%s, %s %s/%s", program, release.Release, commit, changed, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
