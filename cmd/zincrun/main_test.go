package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zincc-dev/zincc/internal/cli/clitest"
)

func TestHelpOfEveryCommand(t *testing.T) { clitest.CheckHelp(t, program) }

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zincrun": main})
}

// TestScripts runs the scripts with the compiler of this tree on the path.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../zincc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	clitest.Run(t, func(e *testscript.Env) error {
		e.Setenv("PATH", e.Getenv("PATH")+string(filepath.ListSeparator)+bin)
		return os.WriteFile(filepath.Join(e.WorkDir, "crlf.txt"), []byte("func main() {\r\n\tx := \"\u4e16\u754c\"\r\n"), 0o666)
	})
}
