package main

import (
	"hash/crc32"
	"os"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/codegen/objects"
)

// TestNothingIsMissing holds the objects in the program against the kernels of today: a change of a kernel wants `make
// objects`. Of the machines that have the same kernels, each kernel has its turn on one, so that a change of a machine
// shows, too. -short has those of each tenth program.
func TestNothingIsMissing(t *testing.T) {
	archives := map[string]*objects.Archive{} // this program embeds one
	for _, arch := range []string{"amd64", "arm64"} {
		var err error
		if archives[arch], err = objects.Open(os.DirFS(archiveOf("../../..", arch))); err != nil {
			t.Fatal(err)
		}
	}
	every := 1
	if testing.Short() {
		every = 10
	}
	list, err := wanted(t.Context(), "../../..", processors(""), every, func(kernel string, machines []*llvm.Machine) []*llvm.Machine {
		turn := crc32.ChecksumIEEE([]byte(kernel)) % uint32(len(machines))
		return machines[turn:][:1]
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d objects", len(list))
	missing := 0
	for _, w := range list {
		code, err := archives[w.Machine.Arch].Find(w.key)
		if err != nil {
			t.Fatal(err)
		}
		if code == nil {
			if missing++; missing <= 5 {
				t.Errorf("kernel %q for %s is not held: `make objects` writes the objects anew", w.Kernel, w.Machine.Name)
			}
		}
	}
	if missing > 5 {
		t.Errorf("%d of %d kernels are not held", missing, len(list))
	}
}
