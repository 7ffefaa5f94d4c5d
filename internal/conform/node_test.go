package conform

import (
	"os"
	"os/exec"
	"testing"
)

// TestNode runs the npm clients, which make conform-node installs.
func TestNode(t *testing.T) {
	if _, err := os.Stat("node/node_modules"); err != nil {
		t.Fatal("run npm ci in internal/conform/node, or make conform-node")
	}
	cmd := exec.Command("node", "node/clients.mjs", server)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}
