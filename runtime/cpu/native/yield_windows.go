package native

import "golang.org/x/sys/windows"

// yield is the address of the system's function that lets other threads run.
var yield = windows.NewLazySystemDLL("kernel32.dll").NewProc("SwitchToThread").Addr()
