package spawn

import (
	"flag"
	"net"
	"net/http"
	"os"
	"testing"
)

// TestServes is the server that TestTakenPort starts: this program.
func TestServes(t *testing.T) {
	if flag.NArg() == 1 {
		t.Error(http.ListenAndServe("127.0.0.1:"+flag.Arg(0), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}
}

// TestTakenPort: where another program has taken the port meanwhile, the server gets another one.
func TestTakenPort(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go http.Serve(other, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	free, tries := freePort, 0
	defer func() { freePort = free }()
	freePort = func() (int, error) {
		if tries++; tries == 1 {
			return other.Addr().(*net.TCPAddr).Port, nil
		}
		return free()
	}
	s, err := Start(t.Context(), []string{os.Args[0], "-test.run=^TestServes$", "--", "PORT"})
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if tries != 2 {
		t.Errorf("%d ports were tried", tries)
	}
}
