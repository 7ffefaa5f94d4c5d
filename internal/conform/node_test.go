package conform

import (
	"os"
	"os/exec"
	"testing"
)

// TestNode runs the npm clients; make conform-node installs them and asks for it.
func TestNode(t *testing.T) {
	if os.Getenv("CONFORM_NODE") == "" {
		t.Skip("make conform-node runs it")
	}
	cmd := exec.Command("node", "node/clients.mjs", server)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}
