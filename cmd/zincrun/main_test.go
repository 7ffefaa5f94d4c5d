package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zincc-dev/zincc/internal/cli/clitest"
)

func TestHelpOfEveryCommand(t *testing.T) { clitest.CheckHelp(t, program) }

func TestOutputIsChecked(t *testing.T) { clitest.CheckStdout(t) }

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zincrun": main})
}

// TestScripts runs the scripts with the compiler of this tree on the path, and with Go
// set up to build from this tree and the module cache alone.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	if out, err := exec.Command("go", "build", "-o", bin, "../zincc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	clitest.Run(t, func(e *testscript.Env) error {
		e.Setenv("ROOT", root)
		e.Setenv("GOCACHE", cache)
		e.Setenv("GOMODCACHE", modules)
		e.Setenv("GOFLAGS", "-mod=mod")
		e.Setenv("GOPROXY", "off")
		e.Setenv("CGO_ENABLED", "0")
		e.Setenv("PATH", e.Getenv("PATH")+string(filepath.ListSeparator)+bin)
		return os.WriteFile(filepath.Join(e.WorkDir, "crlf.txt"), []byte("func main() {\r\n\tx := \"\u4e16\u754c\"\r\n"), 0o666)
	})
}
