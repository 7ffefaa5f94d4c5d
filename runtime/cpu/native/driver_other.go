//go:build !amd64 && !arm64

package native

// There is no driver for this processor: TheDriver fails.
var driverObject []byte

func flush([]byte) {}

func invoke(fn, stack uintptr, args *[6]uintptr, blocks bool) uintptr { panic("native: no driver") }

func relaxAddress() uintptr { return 0 }

func stampAddress() uintptr { return 0 }
